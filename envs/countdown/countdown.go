// Package countdown is the numbers game as RAGEN has it: reach a target with an
// expression that uses each of a few numbers once. One turn, one action, which is
// the expression; or two turns, the second of which may correct the first (SCoRe, arXiv
// 2409.12917); or, with a calculator, turns before it in which the calculator is called.
//
// RAGEN reads instances from a table of which it keeps those that + and - alone
// solve, and gives the answer to Python to compute. Here instances are drawn,
// solvable by construction, and expressions are parsed and computed exactly.
package countdown

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/arithmetic"
	"github.com/reprise-rl/reprise/envs/board"
	"github.com/reprise-rl/reprise/model/draw"
)

// Name is the environment's name in a spec.
const Name = "countdown"

// Rewards of an answer (RAGEN).
const (
	// Right is for the target's value with exactly the given numbers.
	Right = 1.0
	// RightNumbers is for exactly the given numbers with another value, or none.
	RightNumbers = 0.1
)

func init() { envs.Register(Name, summary, New) }

// Countdown is the environment with its options resolved.
type Countdown struct {
	options   Options
	table     *envs.Options
	generator generator
	// spare is used if an address gives no instance in all attempts.
	spare instance

	casesOnce sync.Once
	cases     []instance
}

// Name implements envs.Environment.
func (c *Countdown) Name() string { return Name }

// Instructions implements envs.Environment.
func (c *Countdown) Instructions() string {
	const rules = "Reach the target with an expression that uses each number exactly once. You may use + - * / and parentheses, as in (1 + 2) * 3."
	if c.options.Calls == 0 {
		return rules
	}
	return rules + " An action " + Calculator + " (1 + 2) * 3 gives the value first. An expression alone is the answer."
}

// Actions implements envs.Environment: nil, since an action is any expression.
func (c *Countdown) Actions() []string { return nil }

// ActionForm implements envs.FreeForm.
func (c *Countdown) ActionForm() string {
	if c.options.Calls == 0 {
		return "an expression, such as (1 + 2) * 3"
	}
	return "an expression, such as (1 + 2) * 3, or " + Calculator + " and an expression"
}

// Examples implements envs.Exemplary: an expression of a greater number than any instance has, so that it
// solves none; before it, where the calculator may be called, a call.
func (c *Countdown) Examples(episode envs.Episode) []string {
	expression := fmt.Sprintf("%d - 2 + 3", c.options.MaxNumber+1)
	return envs.LegalOf(episode, Calculator+" "+expression, expression)
}

// MaxActions implements envs.Environment: the answers, and the calls before them.
func (c *Countdown) MaxActions() int { return c.options.Attempts + c.options.Calls }

// MaxActionsPerTurn implements envs.Environment.
func (c *Countdown) MaxActionsPerTurn() int { return 1 }

// HidesRewards implements envs.Reticent: a second attempt does not know whether the first was
// right, unless the options say so.
func (c *Countdown) HidesRewards() bool { return c.options.Attempts > 1 && !c.options.Verdict }

// Certain implements envs.Certain.
func (*Countdown) Certain() bool { return true }

// Reset implements envs.Environment. The instance draws numbers and target; the
// chance is not looked at.
func (c *Countdown) Reset(address, _ draw.Address) envs.Episode {
	return c.begin(c.instance(board.Instance(address, c.options.Instances, c.options.Pool)))
}

func (c *Countdown) begin(in instance) *episode {
	return &episode{
		instance: in, operators: c.options.Operators,
		attempts: c.options.Attempts, verdict: c.options.Verdict, calls: c.options.Calls,
	}
}

func (c *Countdown) instance(addr draw.Address) instance {
	if in, ok := c.generator.generate(addr); ok {
		return in
	}
	return c.spare
}

// Cases implements envs.Environment: a pool's first 64 instances, or 64 fixed ones.
func (c *Countdown) Cases() []envs.Episode {
	c.casesOnce.Do(func() {
		for _, addr := range board.Cases(c.options.Instances, c.options.Pool) {
			c.cases = append(c.cases, c.instance(addr))
		}
	})
	episodes := make([]envs.Episode, len(c.cases))
	for i, in := range c.cases {
		episodes[i] = c.begin(in)
	}
	return episodes
}

// Widest implements envs.Bounded: as many numbers of as many digits as there can be, and
// with a calculator each of its widest results.
func (c *Countdown) Widest() []envs.Episode {
	widest := func(most int) int64 {
		nines := int64(9)
		for nines < int64(most) {
			nines = 10*nines + 9
		}
		return nines
	}
	in := instance{
		numbers: slices.Repeat([]int64{widest(c.options.MaxNumber)}, c.options.MaxNumbers),
		target:  widest(c.options.MaxTarget),
	}
	out := []envs.Episode{c.begin(in)}
	if c.options.Attempts > 1 { // the longest state is after an answer
		for _, success := range []bool{false, true} {
			answered := c.begin(in)
			answered.answers, answered.success = []string{""}, success
			out = append(out, answered)
		}
	}
	if c.options.Calls > 0 {
		for _, result := range widestResults() {
			called := c.begin(in)
			called.result = result
			out = append(out, called)
		}
	}
	return out
}

// episode is the state of a member's episode.
type episode struct {
	instance  instance
	operators string
	attempts  int
	verdict   bool
	calls     int    // of the calculator that are left
	result    string // of the last call; "" before the first
	answers   []string
	success   bool // of the newest answer
}

// Observation implements envs.Episode.
func (e *episode) Observation() string {
	text := fmt.Sprintf("Numbers: %s\nTarget: %d", e.instance.list(), e.instance.target)
	if e.result != "" {
		text += "\nResult: " + e.result
	}
	if len(e.answers) == 0 || e.attempts == 1 {
		return text
	}
	if e.verdict {
		text += "\nThe answer is " + map[bool]string{true: "right", false: "wrong"}[e.success]
	}
	return text + "\nSecond attempt: correct the answer, or give it again"
}

// Legal implements envs.Episode: whatever parses, in its canonical form, also
// with other numbers. While calls are left, a call is legal whatever it asks for: the
// calculator says what is wrong.
func (e *episode) Legal(action string) (string, bool) {
	if text, called := callText(action); called {
		return canonicalCall(text), e.calls > 0
	}
	expression, err := arithmetic.Parse(action)
	if err != nil {
		return "", false
	}
	return expression.String(), true
}

// choices is how many examples Choices gives: a multiple of most counts of
// numbers, so that each of them comes first as often as another.
const choices = 12

// Choices implements envs.Episode: the numbers in several orders, with the
// operators of the options in turn between them; while calls are left, a call of each of
// them too.
func (e *episode) Choices() []string {
	out := make([]string, choices, 2*choices)
	n := len(e.instance.numbers)
	for k := range out {
		var s strings.Builder
		for i := range n {
			if i > 0 {
				s.WriteByte(e.operators[(k%n+i+k/n/2)%len(e.operators)])
			}
			at := (k + i) % n
			if k/n%2 == 1 {
				at = n - 1 - at
			}
			s.WriteString(strconv.FormatInt(e.instance.numbers[at], 10))
		}
		out[k] = s.String()
	}
	if e.calls > 0 {
		for _, expression := range out[:choices] {
			out = append(out, Calculator+" "+expression)
		}
	}
	return out
}

// Step implements envs.Episode.
func (e *episode) Step(action string) envs.Outcome {
	if text, called := callText(action); called && e.calls > 0 && !e.Done() {
		return e.call(text)
	}
	expression, err := arithmetic.Parse(action)
	if err != nil || e.Done() {
		panic(fmt.Sprintf("countdown: step %q is not legal (answered: %q)", action, e.answers))
	}
	answer := expression.String()
	e.answers, e.success = append(e.answers, answer), false
	o := envs.Outcome{Done: e.Done(), Effective: true}
	value, err := expression.Value()
	right := err == nil && value.Cmp(new(big.Rat).SetInt64(e.instance.target)) == 0
	switch {
	case !sameNumbers(expression.Numbers(), e.instance.numbers):
		o.Text = answer + " does not use each number once"
	case !right:
		o.Reward, o.Text = RightNumbers, fmt.Sprintf("%s is not %d", answer, e.instance.target)
	default:
		o.Reward, o.Text = Right, fmt.Sprintf("%s is %d", answer, e.instance.target)
		e.success = true
	}
	o.Success = e.success
	return o
}

func sameNumbers(a, b []int64) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// StateKey implements envs.Episode.
func (e *episode) StateKey() string {
	key := fmt.Sprintf("numbers=%s target=%d answer=%s", e.instance.list(), e.instance.target, strings.Join(e.answers, "; "))
	if e.calls > 0 || e.result != "" {
		key += fmt.Sprintf(" calls=%d result=%s", e.calls, e.result)
	}
	return key
}

// Done implements envs.Episode.
func (e *episode) Done() bool { return len(e.answers) == e.attempts }

// Success implements envs.Episode: of the newest answer.
func (e *episode) Success() bool { return e.success }

// Advice implements envs.Advised: the expression that the instance was made from. If there
// is time, the calculator checks it first, once.
func (e *episode) Advice(n int) []string {
	if n < 1 || e.Done() {
		return nil
	}
	if n > 1 && e.calls > 0 && e.result == "" {
		return []string{Calculator + " " + e.instance.solution, e.instance.solution}
	}
	return []string{e.instance.solution}
}

// BestSuccess implements envs.Advised.
func (e *episode) BestSuccess(n int) float64 {
	if e.success || len(e.Advice(n)) > 0 {
		return 1
	}
	return 0
}

// BestReward implements envs.Valued: each attempt that is left can be right.
func (e *episode) BestReward(n int) float64 {
	return Right * float64(max(min(n, e.attempts-len(e.answers)), 0))
}
