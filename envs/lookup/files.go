package lookup

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/board"
	"github.com/reprise-rl/reprise/envs/rows"
	"github.com/reprise-rl/reprise/model/draw"
)

// Limits of the files, beside those of package rows.
const (
	maxName      = 100 // bytes of a field's name
	maxRows      = 1 << 20
	maxQuestion  = 8192 // bytes
	maxAnswers   = 64   // of a question
	testShare    = 8    // one question of a file of so many is for tests
	keptAtOnce   = 4
	splitField   = "split"
	questionFile = "a file of questions"
	corpusFile   = "a file of documents"
)

// kept holds the values that were made last, the newest first: every step of a run makes its environment, and to make a
// world or read a corpus each time would cost more than the step.
type kept[K comparable, V any] struct {
	sync.Mutex
	values []keptValue[K, V]
}

type keptValue[K comparable, V any] struct {
	key   K
	value V
	err   error
}

// get gives a value, which is made if it is not kept. An error is not kept.
func (c *kept[K, V]) get(key K, make func() (V, error)) keptValue[K, V] {
	c.Lock()
	defer c.Unlock()
	at := slices.IndexFunc(c.values, func(v keptValue[K, V]) bool { return v.key == key })
	var found keptValue[K, V]
	if at >= 0 {
		found = c.values[at]
		c.values = slices.Delete(c.values, at, at+1)
	} else {
		found.key = key
		if found.value, found.err = make(); found.err != nil {
			return found
		}
	}
	c.values = slices.Insert(c.values, 0, found)
	c.values = c.values[:min(len(c.values), keptAtOnce)]
	return found
}

// worldOf names a generated world.
type worldOf struct {
	size string
	seed int
}

// readBy names how the contents of a file are read.
type readBy struct{ digest, question, answers string }

var (
	worlds    kept[worldOf, *world]
	corpora   kept[readBy, []envs.Document]
	questions kept[readBy, []asking]
)

// asking is a question of a file, and what it is for.
type asking struct {
	question question
	split    string
}

// load reads the files and keeps the questions that the options ask for.
func (l *Lookup) load(table *envs.Options) {
	o := &l.options
	content, ok := rows.OpenPinned(table, "questions", o.questions.path, &o.questions.digest, questionFile)
	if !ok {
		return
	}
	read := questions.get(readBy{o.questions.digest, o.QuestionField, o.AnswersField}, func() ([]asking, error) {
		return readQuestions(content, o.QuestionField, o.AnswersField)
	})
	if read.err != nil {
		table.WrongFile("questions", o.questions.path, read.err, questionFile)
		return
	}
	if o.corpus.path != "" {
		content, ok := rows.OpenPinned(table, "corpus", o.corpus.path, &o.corpus.digest, corpusFile)
		if !ok {
			return
		}
		corpus := corpora.get(readBy{digest: o.corpus.digest}, func() ([]envs.Document, error) { return rows.Documents(content) })
		if corpus.err != nil {
			table.WrongFile("corpus", o.corpus.path, corpus.err, corpusFile)
			return
		}
		l.corpus = corpus.value
	}
	f := &fromFile{corpus: l.corpus, all: read.value, options: *o}
	for _, a := range read.value {
		f.tests = f.tests || a.split == Test
		if o.Split == All || o.Split == a.split {
			f.chosen = append(f.chosen, a.question)
		}
	}
	switch n := len(f.chosen); {
	case n == 0:
		table.Wrong("split", fmt.Sprintf("another one: none of the %d questions is in it", len(read.value)))
	case o.Instances > n:
		table.Wrong("instances", fmt.Sprintf("at most %d, the questions there are", n))
	case o.Instances > 0:
		f.chosen = board.Some(f.chosen, o.Instances, o.Pool)
	}
	l.asks = f
}

// readQuestions reads questions. Errors are a *rows.Error.
func readQuestions(content []byte, questionField, answersField string) ([]asking, error) {
	form := rows.Form{
		Columns: []rows.Column{{Name: questionField}, {Name: answersField, List: true, Numbers: true}, {Name: splitField, Optional: true}},
		Noun:    "question", Example: `{"question":"…","answers":["…"]}`, Most: maxRows,
	}
	var all []asking
	err := rows.Read(content, form, func(values [][]string) (column, want string) {
		a := asking{question: question{text: strings.TrimSpace(values[0][0])}}
		switch {
		case a.question.text == "":
			return questionField, fmt.Sprintf("a question in the field %q", questionField)
		case len(a.question.text) > maxQuestion:
			return questionField, fmt.Sprintf("a question of at most %d bytes", maxQuestion)
		case len(values[1]) == 0 || len(values[1]) > maxAnswers:
			return answersField, fmt.Sprintf("1 to %d answers in the field %q", maxAnswers, answersField)
		}
		for _, answer := range values[1] {
			normal, ok := canonical(answer)
			if !ok {
				const want = "answers in the field %q that have more than articles and punctuation, and at most %d bytes"
				return answersField, fmt.Sprintf(want, answersField, maxAnswer)
			}
			if !slices.Contains(a.question.right, normal) {
				a.question.right = append(a.question.right, normal)
			}
		}
		a.split = hashSplit(a.question.text)
		if len(values[2]) > 0 {
			if a.split = values[2][0]; a.split != Train && a.split != Test {
				return splitField, fmt.Sprintf("%s or %s in the field %q", Train, Test, splitField)
			}
		}
		all = append(all, a)
		return "", ""
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// hashSplit says what a question without a mark is for, by the question alone.
func hashSplit(text string) string {
	digest := sha256.Sum256([]byte("reprise/lookup/1 " + text))
	if binary.BigEndian.Uint64(digest[:8])%testShare == 0 {
		return Test
	}
	return Train
}

// fromFile are the questions of a file.
type fromFile struct {
	options Options
	corpus  []envs.Document
	all     []asking
	chosen  []question // those of the options
	tests   bool

	distinctOnce sync.Once
	distinct     []string // first answers of all questions, in the order of the file
}

func (f *fromFile) at(instance draw.Address) question {
	if n := f.options.Instances; n > 0 {
		return f.chosen[instance.Group] // board.Instance gives a member of the pool
	}
	return f.chosen[instance.Rand().IntN(len(f.chosen))]
}

// maxCases is how many questions are cases if there are more.
const maxCases = 64

// cases are all questions, or 64 spread over them.
func (f *fromFile) cases() []question {
	n := min(len(f.chosen), maxCases)
	out := make([]question, n)
	for i := range out {
		out[i] = f.chosen[i*len(f.chosen)/n]
	}
	return out
}

func (f *fromFile) held() bool { return f.tests }

func (f *fromFile) answers(_ question, r *rand.Rand, n int) []string {
	f.distinctOnce.Do(func() {
		seen := map[string]bool{}
		for _, a := range f.all {
			if first := a.question.right[0]; !seen[first] {
				seen[first] = true
				f.distinct = append(f.distinct, first)
			}
		}
	})
	return draws(r, n, len(f.distinct), func(at int) string { return f.distinct[at] })
}

// draws are n different ones of some, or all of them if there are fewer.
func draws(r *rand.Rand, n, of int, at func(int) string) []string {
	n = min(n, of)
	out := make([]string, 0, n)
	seen := make(map[int]bool, n)
	for len(out) < n {
		if k := r.IntN(of); !seen[k] {
			seen[k] = true
			out = append(out, at(k))
		}
	}
	return out
}

func (f *fromFile) solves(answer, reward string) bool {
	return slices.ContainsFunc(f.all, func(a asking) bool {
		_, solved := score(reward, answer, a.question.right)
		return solved
	})
}

// longest measures the questions that can be the widest by their bytes.
func (f *fromFile) longest(width func(string) (int, error)) ([]question, error) {
	order := slices.Clone(f.chosen)
	bounds := make(map[string]int, len(order))
	for _, q := range order {
		bounds[q.text] = envs.MostTokens(q.text)
	}
	slices.SortStableFunc(order, func(a, b question) int { return cmp.Compare(bounds[b.text], bounds[a.text]) })
	around, err := width("")
	if err != nil {
		return nil, err
	}
	most := 0
	var all []measured[question]
	for _, q := range order {
		if around+bounds[q.text]+slack < most {
			break
		}
		n, err := width(q.text)
		if err != nil {
			return nil, err
		}
		all = append(all, measured[question]{q, n})
		most = max(most, n)
	}
	return widest(all), nil
}
