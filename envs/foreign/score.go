package foreign

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/reprise-rl/reprise/infra/strict"
)

// CallScore is the name of the call to a judge, a server that scores recorded episodes:
//
//	EnvScore {"options":{…},"components":[…],"episodes":[{"id":…,"environment":…,"instructions":…,
//	     "turns":[{"observation":…,"reply":…,"actions":[…],"reward":…}…],"observation":…,"reward":…,"success":…}…]}
//	  → {"model":…,"prompt":…,"episodes":[{"id":…,"components":{NAME:number…},"verdict":…,"raw":…}…]}
//
// An episode's verdict may also be {"id":…,"error":{"kind":"broken"|"busy","message":…}}. A judge
// need not be a pure function: its first answer is recorded and counts.
//
// With "level":"turn" beside the options each component is an array with a number for each turn of the
// episode, in their order. Without "level" the judge is asked about episodes.
const CallScore = "EnvScore"

// MaxComponents is the most components of a verdict.
const MaxComponents = 16

// ScoredTurn is a recorded turn, as a judge sees it.
type ScoredTurn struct {
	// Observation is the state before the turn.
	Observation string `json:"observation"`
	// Reply is the whole text that the policy wrote.
	Reply string `json:"reply"`
	// Actions are those that were executed, and Reward is the environment's for them.
	Actions []string `json:"actions"`
	Reward  float64  `json:"reward"`
}

// Scored is a recorded episode, as a judge sees it.
type Scored struct {
	// ID is the SHA-256 of the rest of it; Identify fills it in.
	ID           string `json:"id"`
	Environment  string `json:"environment"`
	Instructions string `json:"instructions"`
	// Turns are in their order, Observation is the state after the last of them.
	Turns       []ScoredTurn `json:"turns"`
	Observation string       `json:"observation"`
	// Reward is the sum of the environment's rewards.
	Reward  float64 `json:"reward"`
	Success bool    `json:"success"`
}

// Identify names the episode by what is in it.
func (s *Scored) Identify() {
	s.ID = ""
	s.ID = digest(string(encode(s)))
}

// Verdict is what a judge says of an episode.
type Verdict struct {
	// Model names what judged, and Prompt is the SHA-256 of its prompt; "" for a judge without one.
	Model, Prompt string
	// Values are the components', in the order in which they were asked for. From a judge by turn they are
	// those of all turns: each component's, in the order of the turns, one component after the other.
	Values []float64
	// Text explains them, and Raw is the reply that they were read from. Each may be empty.
	Text, Raw string
	// Err is nil, or wraps ErrBroken or ErrBusy; then the other fields are zero.
	Err error
}

// Judge is a judge with its options, behind a transport. Several goroutines may use it.
type Judge struct {
	Name string
	// Options are its own.
	Options json.RawMessage
	// Components are the names of what a verdict has.
	Components []string
	// ByTurn says that it gives a number for each turn of an episode, and not one for the episode.
	ByTurn bool
	Call   Call
}

// levelTurn is the level of a request to a judge by turn. A request without a level is about episodes.
const levelTurn = "turn"

// level is what a request says of ByTurn.
func (j Judge) level() string {
	if j.ByTurn {
		return levelTurn
	}
	return ""
}

// Score asks about episodes, at most MaxEpisodes, which have their IDs. The answers are checked.
// Errors are of the kinds ErrAnswer and ErrOther, and those of the transport. Where the episodes are
// too many for the transport, it asks about each half of them.
func (j Judge) Score(ctx context.Context, episodes []Scored) ([]Verdict, error) {
	if len(episodes) == 0 || len(episodes) > MaxEpisodes {
		return nil, fmt.Errorf("ask judge %q: %d episodes, want 1 to %d", j.Name, len(episodes), MaxEpisodes)
	}
	out, err := j.Call(ctx, CallScore, encode(struct {
		Options    json.RawMessage `json:"options"`
		Components []string        `json:"components"`
		Level      string          `json:"level,omitempty"` // requests about episodes keep their bytes
		Episodes   []Scored        `json:"episodes"`
	}{orEmpty(j.Options), j.Components, j.level(), episodes}))
	if half := len(episodes) / 2; half > 0 && errors.Is(err, ErrFlood) {
		verdicts, err := j.Score(ctx, episodes[:half])
		if err != nil {
			return nil, err
		}
		rest, err := j.Score(ctx, episodes[half:])
		return append(verdicts, rest...), err
	}
	if err != nil {
		return nil, fmt.Errorf("ask judge %q: %w", j.Name, err)
	}
	verdicts, err := j.readVerdicts(out, episodes)
	if err != nil {
		return nil, fmt.Errorf("ask judge %q: %w", j.Name, err)
	}
	return verdicts, nil
}

// readVerdicts reads the answer to EnvScore.
func (j Judge) readVerdicts(b []byte, episodes []Scored) ([]Verdict, error) {
	r, root, err := open(b)
	if err != nil {
		return nil, err
	}
	at := r.object(root, "", "model", "prompt", "episodes")
	model, prompt := at.text("model", 200), at.text("prompt", 64)
	items := at.items("episodes", MaxEpisodes)
	if len(r.problems) == 0 && model == "" {
		r.wrong("model", `""`, "the name of the model or the program that judges")
	}
	if len(r.problems) == 0 && prompt != "" && (len(prompt) != 64 || strings.Trim(prompt, "0123456789abcdef") != "") {
		r.wrong("prompt", strict.Quote(prompt), `the SHA-256 of the prompt in 64 hexadecimal digits, or "" without a prompt`)
	}
	if err := r.err(); err != nil {
		return nil, err
	}
	if len(items) != len(episodes) {
		return nil, fmt.Errorf("%w: %d verdicts, asked for were %d", ErrOther, len(items), len(episodes))
	}
	verdicts := make([]Verdict, len(items))
	for i, item := range items {
		path := strict.Index("episodes", i)
		v, id := r.verdict(item, path, j, len(episodes[i].Turns))
		if err := r.err(); err != nil {
			return nil, err
		}
		if id != episodes[i].ID {
			return nil, fmt.Errorf("%w: %s is about episode %s, asked was %s", ErrOther, path, strict.Quote(id), episodes[i].ID)
		}
		if verdicts[i] = v; v.Err == nil {
			verdicts[i].Model, verdicts[i].Prompt = model, prompt
		}
	}
	return verdicts, nil
}

// verdict reads what a judge says of one episode of so many turns.
func (r *reader) verdict(n strict.Node, path string, j Judge, turns int) (Verdict, string) {
	for _, m := range n.Members() {
		if m.Key == "error" {
			at := r.object(n, path, "id", "error")
			return Verdict{Err: r.failure(m.Value, strict.Join(path, "error"))}, at.text("id", 64)
		}
	}
	at := r.object(n, path, "id", "components", "verdict", "raw")
	v := Verdict{Text: at.said("verdict"), Raw: at.said("raw")}
	inside := r.object(at.at["components"], strict.Join(path, "components"), j.Components...)
	for _, name := range j.Components {
		if j.ByTurn {
			v.Values = append(v.Values, inside.numbers(name, MaxReward, turns)...)
			continue
		}
		value, _ := inside.number(name, MaxReward)
		v.Values = append(v.Values, value)
	}
	return v, at.text("id", 64)
}

// said is a text as a model may write it: unlike other texts of an answer it may have any
// characters, of which U+0000 becomes U+FFFD.
func (m members) said(key string) string {
	n, ok := m.at[key]
	if !ok {
		return ""
	}
	text, ok := n.Text()
	switch {
	case !ok:
		m.wrong(strict.Join(m.path, key), n.Found(), "a string")
		return ""
	case len(text) > MaxText:
		m.wrong(strict.Join(m.path, key), strconv.Itoa(len(text))+" bytes", fmt.Sprintf("at most %d bytes", MaxText))
		return ""
	}
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
}
