package validate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/workflows/spec"
	"github.com/reprise-rl/reprise/workflows/sweep"
)

// Sweep is what validate has to say of a sweep.
type Sweep struct {
	problems   spec.Problems // nothing else is known where there are any
	definition sweep.Definition
	trials     []sweep.Trial
}

// OK says that there are no problems.
func (v Sweep) OK() bool { return len(v.problems) == 0 }

// IsSweep says whether a document can only be a sweep: no spec has a base, or what
// varies, so that a base that was forgotten is what is told.
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

// CheckSweep checks a sweep as its start does, each trial's spec included.
func CheckSweep(b []byte) (Sweep, error) {
	var v Sweep
	var err error
	if v.definition, v.trials, err = sweep.Decode(b, activities.KnownSweep()); err != nil && !errors.As(err, &v.problems) {
		return v, err
	}
	return v, nil
}

// iterations are those of all trials, and shared how many warm starts they share.
func (v Sweep) iterations() (all, shared int) {
	seen := map[string]bool{}
	for _, t := range v.trials {
		all += t.Iterations
		if t.Shared != "" {
			seen[t.Shared] = true
		}
	}
	return all, len(seen)
}

// Print writes it for people; name is the document's.
func (v Sweep) Print(out io.Writer, name string) error {
	if !v.OK() {
		_, err := fmt.Fprintf(out, "%s: %v\n", name, v.problems)
		return err
	}
	var text bytes.Buffer
	d := v.definition
	all, shared := v.iterations()
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	row := func(name string, value any) { fmt.Fprintf(w, "%s\t%v\n", name, value) }
	row("trials", len(v.trials))
	row("iterations of all", all)
	row("at once, at most", d.Parallel)
	row("warm starts, each made once", shared)
	row("when a trial fails, the others", map[string]string{sweep.Continue: "go on", sweep.Stop: "are cancelled"}[d.OnFailure])
	row("judged by", fmt.Sprintf("%s, %s", d.Metrics[0], d.Goal))
	if d.Stopping != nil {
		row("stopped early by", fmt.Sprintf("%s, after %v iterations", d.Stopping.Method, d.Stopping.Rungs(d.MaxIterations)))
	}
	fmt.Fprint(w, "\ntrial\titerations\n")
	for _, t := range v.trials {
		fmt.Fprintf(w, "%s\t%d\n", t.Label, t.Iterations)
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("format the trials: %w", err)
	}
	_, err := out.Write(text.Bytes())
	return err
}

// PrintJSON writes it for programs.
func (v Sweep) PrintJSON(out io.Writer) error {
	var report struct {
		OK       bool           `json:"ok"`
		Problems []spec.Problem `json:"problems"`
		// Definition is the sweep with its defaults, Trials what it expands to.
		Definition *sweep.Definition `json:"definition,omitempty"`
		Trials     []sweep.Trial     `json:"trials,omitempty"`
	}
	report.OK = v.OK()
	report.Problems = append([]spec.Problem{}, v.problems...)
	if report.OK {
		report.Definition, report.Trials = &v.definition, v.trials
	}
	return printJSON(out, report)
}
