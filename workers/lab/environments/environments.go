// Package environments measures the speed of environments and of the turn protocol on a
// host's core, compared with gym-sokoban and gymnasium.
package environments

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/reprise-rl/reprise/workers/lab/medians"
)

// Speeds is the speed of one core of a host worker at the work between the policy's turns.
type Speeds struct {
	// Generation is instances made per second (rooms, lakes).
	Generation []Rate `json:"generation"`
	// Steps is actions per second of random play.
	Steps []Rate `json:"steps"`
	// Replays is states per second rebuilt from the actions of four turns, including the
	// instance: each row of a Step activity begins with that.
	Replays []Rate      `json:"replays"`
	Text    []TextSpeed `json:"text"`
	Step    []HostStep  `json:"step"`
	Python  Python      `json:"python"`
}

// Options select what Measure measures, and for how long.
type Options struct {
	// Models are the tokenizers that texts are measured with.
	Models []Model
	// Rounds is how often each kind is measured, at least 1; figures are medians.
	Rounds int
	// Least and LeastPython are how long each kind is measured in a round, here and
	// by Python, whose 8×8 rooms take up to 80 ms each; 0 means once.
	Least, LeastPython time.Duration
	// Python is the Python to compare with, a path or a name on PATH; "" for none.
	Python string
}

// figures is a kind of work with its section and its rate in each round.
type figures struct {
	section, name string
	work          work
	here          []float64
}

// Measure measures on one core (GOMAXPROCS is 1 meanwhile), in turns with Python if there
// is one. say receives progress.
func Measure(ctx context.Context, o Options, say func(string)) (Speeds, error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	out := Speeds{Text: make([]TextSpeed, len(o.Models))}
	all, err := playFigures()
	if err != nil {
		return out, err
	}
	var text []*figures
	var into []*float64
	iterations := make([]*iterationOnHost, len(o.Models))
	steps := make([][]HostStep, len(o.Models))
	for i, m := range o.Models {
		works, fields, err := textWorks(m, &out.Text[i])
		if err != nil {
			return out, err
		}
		for _, w := range works {
			text = append(text, &figures{section: "text", name: m.Name, work: w})
		}
		into = append(into, fields...)
		if iterations[i], err = newIterationOnHost(ctx, m); err != nil {
			return out, fmt.Errorf("an iteration with the tokenizer of %s: %w", m.Name, err)
		}
	}
	python := findPython(o.Python)
	for round := range o.Rounds + 1 {
		least := o.Least
		if round == 0 {
			least = 0 // warms up
		} else {
			say(fmt.Sprintf("environments, round %d of %d", round, o.Rounds))
		}
		for _, f := range slices.Concat(all, text) {
			rate, err := f.work.rate(ctx, least)
			if err != nil {
				return out, fmt.Errorf("%s of %s: %w", f.section, f.name, err)
			}
			if round > 0 {
				f.here = append(f.here, rate)
			}
		}
		for i, it := range iterations {
			step, err := it.round(ctx)
			if err != nil {
				return out, fmt.Errorf("steps with the tokenizer of %s: %w", o.Models[i].Name, err)
			}
			if round > 0 {
				steps[i] = append(steps[i], step)
			}
		}
		if round > 0 {
			if err := python.round(ctx, o.LeastPython); err != nil {
				return out, err
			}
		}
	}
	sections := map[string]*[]Rate{"generation": &out.Generation, "steps": &out.Steps, "replays": &out.Replays}
	for _, f := range all {
		rates := sections[f.section]
		*rates = append(*rates, rateOf(f.section, f.name, f.here, python.rates(f.section, f.name)))
	}
	for i, f := range text {
		*into[i] = medians.Of(f.here)
	}
	for i, m := range o.Models {
		step := medianStep(steps[i])
		step.Tokenizer = m.Name
		step.calculate(PolicyRate)
		out.Step = append(out.Step, step)
	}
	out.Python = python.Python
	return out, nil
}

// playFigures lists the kinds of work that need no tokenizer.
func playFigures() ([]*figures, error) {
	var all []*figures
	for _, g := range games {
		of, err := newGame(g.environment, g.options)
		if err != nil {
			return nil, err
		}
		if g.generated {
			all = append(all, &figures{section: "generation", name: g.name, work: of.generation()})
		}
		if g.played {
			all = append(all, &figures{section: "steps", name: g.name, work: of.steps()},
				&figures{section: "replays", name: g.name, work: of.replays()})
		}
	}
	shop, err := shopFigures()
	return append(all, shop...), err
}
