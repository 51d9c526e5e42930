// Package guess is the example of a new environment: a number to be found.
package guess

import (
	"fmt"
	"strconv"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/model/draw"
)

func init() { envs.Register("guess", "Find a number; each guess says higher or lower.", newGuess) }

// guess is the environment: find a number in as few guesses as you can.
type guess struct {
	most int
}

// newGuess declares the options and makes the environment of their values.
func newGuess(o *envs.Options) envs.Environment {
	g := &guess{}
	o.Int("most", &g.most, 9, 2, 100, "the greatest possible number: {range}")
	return g
}

func (g *guess) Name() string           { return "guess" }
func (g *guess) Instructions() string   { return fmt.Sprintf("Find a number from 1 to %d.", g.most) }
func (g *guess) Actions() []string      { return g.numbers() }
func (g *guess) MaxActions() int        { return 5 }
func (g *guess) MaxActionsPerTurn() int { return 1 }

func (g *guess) numbers() []string {
	names := make([]string, g.most)
	for i := range names {
		names[i] = strconv.Itoa(i + 1)
	}
	return names
}

// Certain implements envs.Certain.
func (*guess) Certain() bool { return true }

// Reset draws the number from the instance: it is the group's. Nothing here is drawn
// from the chance, which is the member's.
func (g *guess) Reset(instance, _ draw.Address) envs.Episode {
	instance.Member = 0
	return &guessing{env: g, number: 1 + instance.Rand().IntN(g.most), hint: "Guess."}
}

// Cases has the widest text, which comes later: all beginnings read the same.
func (g *guess) Cases() []envs.Episode {
	return []envs.Episode{&guessing{env: g, number: 1, hint: "The number is higher."}}
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
