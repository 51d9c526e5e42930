package envs_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/model/draw"
)

// What follows up to the end of the example is in docs/environments.md, letter for letter.

func init() { envs.Register("guess", newGuess) }

// guess is the environment: find a number in as few guesses as you can.
type guess struct {
	Most int `json:"most"`
}

func newGuess(raw json.RawMessage) (envs.Environment, error) {
	g := &guess{Most: 9} // the defaults
	problems := envs.DecodeOptions(raw, g)
	if g.Most < 2 || g.Most > 100 {
		problems = append(problems, envs.Problem{Path: "most", Found: strconv.Itoa(g.Most), Want: "from 2 to 100"})
	}
	if len(problems) > 0 {
		return nil, &envs.OptionsError{Environment: "guess", Problems: problems}
	}
	return g, nil
}

func (g *guess) Name() string           { return "guess" }
func (g *guess) Instructions() string   { return fmt.Sprintf("Find a number from 1 to %d.", g.Most) }
func (g *guess) Actions() []string      { return g.numbers() }
func (g *guess) MaxActions() int        { return 5 }
func (g *guess) MaxActionsPerTurn() int { return 1 }

func (g *guess) numbers() []string {
	names := make([]string, g.Most)
	for i := range names {
		names[i] = strconv.Itoa(i + 1)
	}
	return names
}

// The number is the group's: it is drawn from the instance. Nothing here is
// drawn from the chance, which is the member's.
func (g *guess) Reset(instance, _ draw.Address) envs.Episode {
	instance.Member = 0
	return &guessing{env: g, number: 1 + instance.Rand().IntN(g.Most), hint: "Guess."}
}

// All beginnings read the same; the widest text comes later, so it is a case too.
func (g *guess) Cases() []envs.Episode {
	return []envs.Episode{&guessing{env: g, number: 1, hint: "The number is higher."}}
}

func (g *guess) Describe() envs.Description {
	return envs.Description{Name: "guess", Summary: "Find a number; each guess says higher or lower.",
		Options: []envs.Option{{Name: "most", Type: "integer", Default: 9, Doc: "the greatest number there may be"}}}
}

// guessing is an episode.
type guessing struct {
	env    *guess
	number int
	hint   string
	found  bool
}

func (e *guessing) Observation() string           { return e.hint }
func (e *guessing) Legal(a string) (string, bool) { return envs.Lookup(e.Choices(), a) }
func (e *guessing) Choices() []string             { return e.env.numbers() }
func (e *guessing) StateKey() string              { return fmt.Sprint(e.number, e.hint) }
func (e *guessing) Done() bool                    { return e.found }
func (e *guessing) Success() bool                 { return e.found }

func (e *guessing) Step(action string) envs.Outcome {
	number, err := strconv.Atoi(action)
	if err != nil || e.found {
		panic("guess: not a legal step: " + action)
	}
	before := e.hint
	switch {
	case number < e.number:
		e.hint = "The number is higher."
	case number > e.number:
		e.hint = "The number is lower."
	default:
		e.found, e.hint = true, "Found."
		return envs.Outcome{Reward: 1, Done: true, Success: true, Effective: true}
	}
	return envs.Outcome{Reward: -0.1, Effective: e.hint != before}
}

// The end of the example.

func TestExample(t *testing.T) {
	env, err := envs.New("guess", json.RawMessage(`{"most":100}`))
	require.NoError(t, err)
	e := env.Reset(draw.Address{Group: 1}, draw.Address{})
	low, high := 1, 100
	for !e.Done() {
		middle := (low + high) / 2
		e.Step(strconv.Itoa(middle))
		if strings.Contains(e.Observation(), "higher") {
			low = middle + 1
		} else {
			high = middle - 1
		}
	}
	require.True(t, e.Success())
	_, err = envs.New("guess", json.RawMessage(`{"most":1}`))
	require.ErrorContains(t, err, "most: found 1, want from 2 to 100")
}

// The documentation shows the code that this test runs.
func TestExampleIsDocumented(t *testing.T) {
	source, err := os.ReadFile("example_test.go")
	require.NoError(t, err)
	_, example, ok := strings.Cut(string(source), "letter for letter.\n\n")
	require.True(t, ok)
	example, _, ok = strings.Cut(example, "\n// The end of the example.")
	require.True(t, ok)
	doc, err := os.ReadFile("../docs/environments.md")
	require.NoError(t, err)
	require.Contains(t, string(doc), example)
}
