package report

import (
	"encoding/json"
	"math"
	"unicode/utf16"

	"github.com/reprise-rl/reprise/workers/report/episodes"
)

// partBytes is about how large a part of a rollout's trajectories is: what a phone
// reads at once. A part ends with the first episode that reaches it.
const partBytes = 1 << 19

// part is some of a rollout's episodes, as the page reads them. Texts repeat a lot
// (boards, prompts, answers), so each is stored once, in Strings, and named by its place.
type part struct {
	ID       string        `json:"id"`
	Strings  []string      `json:"strings"`
	Episodes []episodePage `json:"episodes"`
}

type episodePage struct {
	Row    int   `json:"r"`
	Reward point `json:"s"`
	Return point `json:"t"`
	// Flags are the result of flagsOf.
	Flags int `json:"f"`
	// Advantage is the mean; null if the update did not learn from the episode.
	Advantage point `json:"a"`
	// Environment, Key, Prompt and Board name strings: the label, the initial state's
	// key, the first prompt and the first board.
	Environment int        `json:"v"`
	Key         int        `json:"k"`
	Prompt      int        `json:"p"`
	Board       int        `json:"b"`
	Turns       []turnPage `json:"turns"`
}

type turnPage struct {
	// Text, After and Actions name strings.
	Text    int `json:"x"`
	After   int `json:"o"`
	Actions int `json:"u"`
	// Lengths, LogProbs and Advantages are by token: see packLengths, packLogProbs and
	// runs.
	Lengths    string  `json:"w"`
	LogProbs   string  `json:"l"`
	Advantages []point `json:"d,omitempty"`
	Reward     point   `json:"R"`
	Penalty    point   `json:"P"`
	Counts     [3]int  `json:"e"` // executed, effective, invalid
	// Parts are the rewards in parts: [string of the name, weight, value] of each, in turn.
	Parts []point `json:"c,omitempty"`
}

// point is a number that JSON can carry: null if it is not finite.
type point float64

// MarshalJSON implements json.Marshaler.
func (p point) MarshalJSON() ([]byte, error) { return appendPoint(nil, float64(p)), nil }

// The flags of an episode.
const (
	flagSuccess = 1 << iota
	flagSelected
	flagValid
	flagTruncated
)

func flagsOf(e *episodes.Episode) int {
	f := 0
	for _, x := range []struct {
		set  bool
		flag int
	}{{e.Success, flagSuccess}, {e.Selected, flagSelected}, {e.Valid, flagValid}, {e.Truncated, flagTruncated}} {
		if x.set {
			f |= x.flag
		}
	}
	return f
}

// parts cuts a rollout's episodes into files: first are the rows they begin with.
func parts(id string, all []episodes.Episode) (files []file, first []int, err error) {
	var p *packer
	done := func() error {
		if p == nil {
			return nil
		}
		body, err := json.Marshal(p.part) // HTML-escaped: safe everywhere
		if err != nil {
			return err
		}
		files = append(files, file{name: "data/" + p.part.ID + ".js", body: call(body)})
		p = nil
		return nil
	}
	for i := range all {
		if p == nil {
			first = append(first, all[i].Row)
			p = newPacker(partName(id, len(files)))
		}
		p.add(&all[i])
		if p.bytes >= partBytes {
			if err := done(); err != nil {
				return nil, nil, err
			}
		}
	}
	return files, first, done()
}

// file is a file of a report.
type file struct {
	name string
	body []byte
}

// call makes a program of a JSON value: it hands it to the page.
func call(body []byte) []byte {
	out := make([]byte, 0, len(body)+16)
	out = append(append(out, "reprise("...), body...)
	return append(out, ")\n"...)
}

type packer struct {
	part   part
	places map[string]int
	bytes  int
}

func newPacker(id string) *packer {
	return &packer{part: part{ID: id, Strings: []string{}}, places: map[string]int{}}
}

// text gives the place of a string.
func (p *packer) text(s string) int {
	at, ok := p.places[s]
	if !ok {
		at = len(p.part.Strings)
		p.places[s] = at
		p.part.Strings = append(p.part.Strings, s)
		p.bytes += len(s) + 3
	}
	return at
}

func (p *packer) add(e *episodes.Episode) {
	out := episodePage{
		Row: e.Row, Reward: point(e.Reward), Return: point(e.Return), Flags: flagsOf(e), Advantage: point(absent),
		Environment: p.text(e.Environment), Key: p.text(e.StateKey), Prompt: p.text(""), Board: p.text(""), Turns: make([]turnPage, len(e.Turns)),
	}
	if a, ok := e.Advantage(); ok {
		out.Advantage = point(a)
	}
	if len(e.Turns) > 0 {
		out.Prompt, out.Board = p.text(e.Turns[0].Prompt), p.text(e.Turns[0].Before)
	}
	for k, t := range e.Turns {
		turn := turnPage{
			Text: p.text(t.Text), After: p.text(t.After), Actions: p.text(t.Actions), Lengths: packLengths(t.Tokens),
			LogProbs:   packLogProbs(t.Tokens),
			Advantages: runs(t.Tokens), Reward: point(t.Reward), Penalty: point(t.Penalty), Counts: [3]int{t.Executed, t.Effective, t.Invalid},
		}
		for _, c := range t.Parts {
			turn.Parts = append(turn.Parts, point(p.text(c.Name)), point(c.Weight), point(c.Value))
			p.bytes += 24
		}
		out.Turns[k] = turn
		p.bytes += len(turn.Lengths) + len(turn.LogProbs) + 12*len(turn.Advantages) + 80
	}
	p.bytes += 100
	p.part.Episodes = append(p.part.Episodes, out)
}

// digits write numbers that a JSON string holds without escapes.
const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

// packLengths writes the tokens' lengths in UTF-16 units, which is how a page counts:
// a digit each, and after every digit of 63 what is left.
func packLengths(tokens []episodes.Token) string {
	out := make([]byte, 0, len(tokens))
	for _, t := range tokens {
		n := 0
		for _, r := range t.Text {
			n += utf16.RuneLen(r)
		}
		for ; n >= 63; n -= 63 {
			out = append(out, digits[63])
		}
		out = append(out, digits[n])
	}
	return string(out)
}

// logProbUnit is the least difference of log-probs that is kept, in nats.
const logProbUnit = 1.0 / 256

// packLogProbs writes −log-prob of each token in two digits, at most 4095 units.
func packLogProbs(tokens []episodes.Token) string {
	out := make([]byte, 0, 2*len(tokens))
	for _, t := range tokens {
		v := math.Round(-float64(t.LogProb) / logProbUnit)
		if math.IsNaN(v) || v > 4095 {
			v = 4095
		}
		n := int(max(v, 0))
		out = append(out, digits[n>>6], digits[n&63])
	}
	return string(out)
}

// runs are the advantages as counts and values, in turn: they are mostly the same all
// over a turn. Nil if the update did not learn from it.
func runs(tokens []episodes.Token) []point {
	var out []point
	for i := 0; i < len(tokens); {
		if !tokens[i].HasAdvantage {
			return nil
		}
		n := 1
		for i+n < len(tokens) && tokens[i+n].Advantage == tokens[i].Advantage {
			n++
		}
		out = append(out, point(n), point(tokens[i].Advantage))
		i += n
	}
	return out
}
