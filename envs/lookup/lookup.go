// Package lookup asks questions whose answers are in a corpus, and compares answers as Search-R1 does. The corpus is
// generated with its questions, of one to four hops, or both are files.
//
// An episode is one answer. A policy that knows nothing of the corpus has to search it first, with the tool retrieve,
// which asks the environment for its documents (envs.Library).
package lookup

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/board"
	"github.com/reprise-rl/reprise/model/draw"
)

// Name is the environment's name in a spec.
const Name = "lookup"

func init() { envs.Register(Name, summary, New) }

// Lookup is the environment with its options resolved.
type Lookup struct {
	options Options
	table   *envs.Options
	asks    bank
	corpus  []envs.Document

	examplesOnce sync.Once
	examples     []string
}

// bank has the questions of the options.
type bank interface {
	// at draws the question of an instance.
	at(instance draw.Address) question
	// cases are questions that show what questions are like, at most 64.
	cases() []question
	// longest gives questions, one of which is the widest. See envs.Measured.
	longest(width func(string) (int, error)) ([]question, error)
	// held says that there are questions for tests.
	held() bool
	// answers draws so many examples of answers to a question, normalized; fewer if there are fewer.
	answers(q question, r *rand.Rand, n int) []string
	// solves reports whether an answer, normalized, solves any question.
	solves(answer, reward string) bool
}

// question is what is asked.
type question struct {
	text string
	// right are the answers that solve it, normalized; there is at least one.
	right []string
	// about is the entity that a generated question names, and asks the kind of its answer. seek are the names whose documents have
	// to be found, in their order.
	about int32
	asks  int
	seek  []string
}

// Name implements envs.Environment.
func (l *Lookup) Name() string { return Name }

// Instructions implements envs.Environment.
func (l *Lookup) Instructions() string {
	return "Answer the question. The answer is a name or a number alone, without words around it."
}

// Actions implements envs.Environment: nil, since an action is any answer.
func (l *Lookup) Actions() []string { return nil }

// ActionForm implements envs.FreeForm.
func (l *Lookup) ActionForm() string { return "an answer, such as a name or a year" }

// Examples implements envs.Exemplary: an answer that solves no question.
func (l *Lookup) Examples(envs.Episode) []string {
	l.examplesOnce.Do(func() {
		const tries = 1000
		words := []string{"nothing", "unknown", "nobody"}
		for n := range tries {
			answer := words[n%len(words)]
			if again := n / len(words); again > 0 {
				answer += fmt.Sprintf(" %d", again)
			}
			if !l.asks.solves(answer, l.options.Reward) {
				l.examples = []string{answer}
				return
			}
		}
	})
	return slices.Clone(l.examples)
}

// MaxActions implements envs.Environment: the answer.
func (l *Lookup) MaxActions() int { return 1 }

// MaxActionsPerTurn implements envs.Environment.
func (l *Lookup) MaxActionsPerTurn() int { return 1 }

// Certain implements envs.Certain.
func (*Lookup) Certain() bool { return true }

// Corpus implements envs.Library: the generated documents, or those of the file corpus.
func (l *Lookup) Corpus() []envs.Document { return l.corpus }

// Reset implements envs.Environment. The instance draws the question; the chance is not looked at.
func (l *Lookup) Reset(instance, _ draw.Address) envs.Episode {
	return l.begin(l.asks.at(board.Instance(instance, l.options.Instances, l.options.Pool)))
}

func (l *Lookup) begin(q question) *episode { return &episode{env: l, question: q} }

// Cases implements envs.Environment: a pool's first 64 instances, or 64 fixed ones.
func (l *Lookup) Cases() []envs.Episode { return l.each(l.asks.cases()) }

func (l *Lookup) each(questions []question) []envs.Episode {
	episodes := make([]envs.Episode, len(questions))
	for i, q := range questions {
		episodes[i] = l.begin(q)
	}
	return episodes
}

// Longest implements envs.Measured.
func (l *Lookup) Longest(width func(string) (int, error)) ([]envs.Episode, error) {
	questions, err := l.asks.longest(width)
	return l.each(questions), err
}

// episode is the state of a member's episode.
type episode struct {
	env      *Lookup
	question question
	answer   string // normalized; "" before it
	solved   bool
}

// Observation implements envs.Episode: the question.
func (e *episode) Observation() string { return e.question.text }

// maxAnswer is the most bytes of a normalized answer.
const maxAnswer = 256

// canonical is the form in which answers are compared. It is not ok for an answer without a word, or with too many.
func canonical(answer string) (string, bool) {
	if len(answer) > 16*maxAnswer { // only by its punctuation and blanks could it be an answer
		return "", false
	}
	normal := Normalize(answer)
	return normal, normal != "" && len(normal) <= maxAnswer && envs.Writable(normal)
}

// Legal implements envs.Episode: any text that has more than articles and punctuation.
func (e *episode) Legal(action string) (string, bool) {
	normal, ok := canonical(action)
	if !ok {
		return "", false
	}
	return normal, true
}

// exampleAnswers is how many examples of answers an episode gives.
const exampleAnswers = 8

// answersPurpose is the stream of an episode's examples, which follow from its question.
const answersPurpose draw.Purpose = "lookup/answers"

func (e *episode) rand(purpose draw.Purpose) *rand.Rand {
	digest := sha256.Sum256([]byte(e.question.text))
	return draw.Address{Seed: binary.BigEndian.Uint64(digest[:8]), Purpose: purpose}.Rand()
}

// Choices implements envs.Episode: answers to questions of the same kind, drawn without a look at the right one, which is
// among them as often as chance has it.
func (e *episode) Choices() []string {
	return e.env.asks.answers(e.question, e.rand(answersPurpose), exampleAnswers)
}

// Step implements envs.Episode.
func (e *episode) Step(action string) envs.Outcome {
	answer, ok := canonical(action)
	if !ok || e.Done() {
		panic(fmt.Sprintf("lookup: step %q is not legal (done: %t)", action, e.Done()))
	}
	o := envs.Outcome{Done: true, Effective: true, Text: "That is wrong."}
	o.Reward, o.Success = score(e.env.options.Reward, answer, e.question.right)
	e.answer, e.solved = answer, o.Success
	if o.Success {
		o.Text = "That is right."
	}
	return o
}

// StateKey implements envs.Episode.
func (e *episode) StateKey() string {
	digest := sha256.Sum256([]byte(e.question.text + "\x00" + strings.Join(e.question.right, "\x00")))
	return fmt.Sprintf("question=%x answered=%t right=%t", digest[:6], e.Done(), e.solved)
}

// Done implements envs.Episode.
func (e *episode) Done() bool { return e.answer != "" }

// Success implements envs.Episode.
func (e *episode) Success() bool { return e.solved }

// Advice implements envs.Advised: the first of the right answers.
func (e *episode) Advice(n int) []string {
	if n < 1 || e.Done() {
		return nil
	}
	return []string{e.question.right[0]}
}

// Seek implements envs.Seeking: the names on the way to the answer to a generated question.
func (e *episode) Seek() []string { return e.question.seek }

// BestSuccess implements envs.Advised.
func (e *episode) BestSuccess(n int) float64 {
	if e.solved || len(e.Advice(n)) > 0 {
		return 1
	}
	return 0
}

// BestReward implements envs.Valued.
func (e *episode) BestReward(n int) float64 { return float64(len(e.Advice(n))) }
