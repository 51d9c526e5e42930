package validate

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/reprise-rl/reprise/activities/sweeps"
	"github.com/reprise-rl/reprise/workflows/spec"
	"github.com/reprise-rl/reprise/workflows/sweep"
)

// Sweep is the result of checking a sweep.
type Sweep struct {
	Verdict
	// Definition is the sweep with its defaults, Trials its expansion.
	Definition *sweep.Definition `json:"definition,omitempty"`
	Trials     []sweep.Trial     `json:"trials,omitempty"`
	// Card is which trials fit the device that was named, nil without one.
	Card *SweepCard `json:"card,omitempty"`
}

// Fits reports whether all trials fit the device that was named.
func (v Sweep) Fits() bool { return v.Card == nil || v.Card.DoNotFit == 0 }

// IsSweep reports whether a document has a key that only sweeps have. A sweep without its
// base is therefore reported as such, not as a spec with unknown keys.
func IsSweep(b []byte) bool {
	var doc map[string]json.RawMessage
	if json.Unmarshal(b, &doc) != nil {
		return false
	}
	for _, key := range []string{"base", "grid", "list", "random", "seeds"} {
		if _, ok := doc[key]; ok {
			return true
		}
	}
	return false
}

// CheckSweep checks a sweep and each trial's spec as the start of a sweep does, and whether
// the trials fit a device with card bytes of memory; 0 is none. describe is as in CheckTrain.
func CheckSweep(b []byte, card int64, describe Describe) (Sweep, error) {
	definition, trials, err := sweep.Decode(b, sweeps.KnownSweep())
	if problems, ok := errors.AsType[spec.Problems](err); ok {
		return Sweep{Verdict: verdictOf(problems)}, nil
	}
	out := Sweep{Verdict: verdictOf(nil), Definition: &definition, Trials: trials}
	if err != nil || card == 0 {
		return out, err
	}
	out.Card = &SweepCard{}
	for _, t := range trials {
		trial, err := CheckTrain(t.Spec, Machine{Card: card}, describe)
		if err == nil && !trial.Sound() {
			err = trial.Problems
		}
		if err != nil {
			return out, fmt.Errorf("trial %s: %w", t.Label, err)
		}
		out.Card.add(t.Label, trial.Card)
	}
	return out, nil
}

// iterations is the number of iterations of all trials, shared the number of warm starts
// that trials share.
func (v Sweep) iterations() (all, shared int) {
	seen := map[string]bool{}
	for _, t := range v.Trials {
		all += t.Iterations
		if t.Shared != "" {
			seen[t.Shared] = true
		}
	}
	return all, len(seen)
}

func (v Sweep) text(string) (string, error) {
	var text strings.Builder
	d := v.Definition
	all, shared := v.iterations()
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	row := func(name string, value any) { fmt.Fprintf(w, "%s\t%v\n", name, value) }
	row("trials", len(v.Trials))
	row("iterations of all", all)
	row("at once, at most", d.Parallel)
	row("warm starts, each made once", shared)
	row("when a trial fails, the others", map[string]string{sweep.Continue: "go on", sweep.Stop: "are cancelled"}[d.OnFailure])
	row("judged by", fmt.Sprintf("%s, %s", d.Metrics[0], d.Goal))
	if d.Stopping != nil {
		row("stopped early by", fmt.Sprintf("%s, after %v iterations", d.Stopping.Method, d.Stopping.Rungs(d.MaxIterations)))
	}
	fmt.Fprint(w, "\ntrial\titerations\n")
	for _, t := range v.Trials {
		fmt.Fprintf(w, "%s\t%d\n", t.Label, t.Iterations)
	}
	if err := w.Flush(); err != nil {
		return "", fmt.Errorf("format the trials: %w", err)
	}
	if v.Card != nil {
		text.WriteString(v.Card.text(len(v.Trials)))
	}
	return text.String(), nil
}
