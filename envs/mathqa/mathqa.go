// Package mathqa asks the questions of a file and compares answers with the file's, by value
// where both are numbers, or as texts, as RAGEN's MetaMathQA does. There are several attempts: the first is worth
// 1, each later one half of the one before.
//
// Questions are text from outside. Like every observation they are encoded without
// special tokens, so that none can imitate the system.
package mathqa

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"math"
	"slices"
	"strconv"
	"sync"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/board"
	"github.com/reprise-rl/reprise/model/draw"
)

// Name is the environment's name in a spec.
const Name = "mathqa"

func init() { envs.Register(Name, summary, New) }

// MathQA is the environment with its options resolved.
type MathQA struct {
	options   Options
	table     *envs.Options
	digest    string // of the file or the sample
	questions []Question
	held      bool // the file has questions that are for tests

	exampleOnce sync.Once
	example     string
}

// Name implements envs.Environment.
func (m *MathQA) Name() string { return Name }

// Instructions implements envs.Environment.
func (m *MathQA) Instructions() string {
	return "Answer the question. The answer is the result alone, without words around it."
}

// Actions implements envs.Environment: nil, since an action is any answer.
func (m *MathQA) Actions() []string { return nil }

// ActionForm implements envs.FreeForm.
func (m *MathQA) ActionForm() string { return "an answer, such as 42" }

// Examples implements envs.Exemplary: the least number from 42 on that answers no question of the file.
func (m *MathQA) Examples(envs.Episode) []string {
	m.exampleOnce.Do(func() {
		answers := make(map[string]bool, len(m.questions))
		for _, q := range m.questions {
			answers[q.Answer] = true
			if whole, ok := wholeNumber(q.Answer); ok && m.options.Compare == Numbers {
				answers[whole] = true
			}
		}
		n := 42
		for answers[strconv.Itoa(n)] {
			n++
		}
		m.example = strconv.Itoa(n)
	})
	return []string{m.example}
}

// MaxActions implements envs.Environment: one an attempt.
func (m *MathQA) MaxActions() int { return m.options.Attempts }

// MaxActionsPerTurn implements envs.Environment.
func (m *MathQA) MaxActionsPerTurn() int { return 1 }

// Certain implements envs.Certain.
func (*MathQA) Certain() bool { return true }

// Reset implements envs.Environment. The instance draws the question; the chance
// is not looked at.
func (m *MathQA) Reset(instance, _ draw.Address) envs.Episode {
	at := 0
	if n := m.options.Instances; n > 0 {
		at = int(board.Instance(instance, n, m.options.Pool).Group)
	} else {
		at = board.Instance(instance, 0, 0).Rand().IntN(len(m.questions))
	}
	return m.episode(at)
}

func (m *MathQA) episode(at int) *episode {
	return &episode{question: &m.questions[at], attempts: m.options.Attempts, numbers: m.options.Compare == Numbers}
}

// maxCases is how many questions are cases if there are more.
const maxCases = 64

// Cases implements envs.Environment: all questions, or 64 spread over them.
func (m *MathQA) Cases() []envs.Episode {
	n := min(len(m.questions), maxCases)
	cases := make([]envs.Episode, n)
	for i := range cases {
		cases[i] = m.episode(i * len(m.questions) / n)
	}
	return cases
}

// slack is how many tokens two texts may differ in the order of their widths,
// by what tokenizers merge at their ends.
const slack = 4

// Longest implements envs.Measured: the questions that are widest after a wrong
// attempt, when the observation says most.
func (m *MathQA) Longest(width func(string) (int, error)) ([]envs.Episode, error) {
	bound := make([]int, len(m.questions))
	order := make([]int, len(m.questions))
	for i, q := range m.questions {
		order[i], bound[i] = i, envs.MostTokens(q.Text)
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(bound[b], bound[a]) })
	around, err := width(feedback(false, true) + prompt)
	if err != nil {
		return nil, err
	}
	most := 0
	widths := make([]int, 0, len(order))
	for _, at := range order {
		if around+bound[at]+slack < most {
			break
		}
		w, err := width(m.wrongOnce(at).Observation())
		if err != nil {
			return nil, fmt.Errorf("question %d: %w", at+1, err)
		}
		widths = append(widths, w)
		most = max(most, w)
	}
	var longest []envs.Episode
	for i, w := range widths {
		if w+slack >= most {
			longest = append(longest, m.wrongOnce(order[i]))
		}
	}
	return longest, nil
}

func (m *MathQA) wrongOnce(at int) *episode {
	e := m.episode(at)
	e.made = 1
	e.attempts = 2 // a third attempt is asked for in the same words
	return e
}

// episode is the state of a member's episode.
type episode struct {
	question *Question
	attempts int  // there are
	numbers  bool // are compared by value
	made     int
	right    bool
}

// prompt is the text before a question.
const prompt = "Question: "

// feedback is the environment's answer after an attempt.
func feedback(right, again bool) string {
	switch {
	case right:
		return "That is right.\n"
	case again:
		return "That is wrong. Try again.\n"
	}
	return "That is wrong.\n"
}

// Observation implements envs.Episode: the question, and before it how the last
// attempt went.
func (e *episode) Observation() string {
	s := ""
	if e.made > 0 {
		s = feedback(e.right, !e.Done())
	}
	return s + prompt + e.question.Text
}

// Legal implements envs.Episode: any text, in the form in which answers are compared.
func (e *episode) Legal(action string) (string, bool) {
	canonical, ok := canonicalFor(action, e.numbers)
	if !ok {
		return "", false
	}
	return canonical, true
}

// examples are numbers in which every digit occurs three times.
var examples = []string{
	"0", "1", "2", "3", "4", "5", "6", "7", "8", "9",
	"10", "21", "32", "43", "54", "65", "76", "87", "98", "90",
}

// Choices implements envs.Episode: numbers, the same for every question.
func (e *episode) Choices() []string { return slices.Clone(examples) }

// Step implements envs.Episode.
func (e *episode) Step(action string) envs.Outcome {
	canonical, ok := canonicalFor(action, e.numbers)
	if !ok || e.Done() {
		panic(fmt.Sprintf("mathqa: step %q is not legal (done: %t)", action, e.Done()))
	}
	o := envs.Outcome{Effective: true}
	if e.right = canonical == e.question.Answer || e.numbers && equal(e.question.Answer, canonical); e.right {
		o.Reward, o.Success = e.worth(), true
	}
	e.made++
	o.Done = e.Done()
	o.Text = feedback(e.right, !o.Done)
	o.Text = o.Text[:len(o.Text)-1]
	return o
}

// StateKey implements envs.Episode.
func (e *episode) StateKey() string {
	digest := sha256.Sum256([]byte(e.question.Text + "\x00" + e.question.Answer))
	return fmt.Sprintf("question=%x attempts=%d right=%t", digest[:6], e.made, e.right)
}

// Done implements envs.Episode.
func (e *episode) Done() bool { return e.right || e.made == e.attempts }

// Success implements envs.Episode.
func (e *episode) Success() bool { return e.right }

// Advice implements envs.Advised: the file's answer.
func (e *episode) Advice(n int) []string {
	if n < 1 || e.Done() {
		return nil
	}
	return []string{e.question.Answer}
}

// BestSuccess implements envs.Advised.
func (e *episode) BestSuccess(n int) float64 {
	if e.right || len(e.Advice(n)) > 0 {
		return 1
	}
	return 0
}

// BestReward implements envs.Valued: what the next attempt is worth.
func (e *episode) BestReward(n int) float64 {
	if len(e.Advice(n)) > 0 {
		return e.worth()
	}
	return 0
}

// worth is the reward of a right answer now: one half of what it was before.
func (e *episode) worth() float64 { return math.Ldexp(1, -e.made) }
