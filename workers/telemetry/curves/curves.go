// Package curves turns a run's table into the curves that trackers of experiments keep:
// for each branch the steps in order, each step once, with its numbers by name.
package curves

import (
	"cmp"
	"slices"
	"strings"

	"github.com/reprise-rl/reprise/workers/telemetry/iterations"
)

// Branch is one branch of a run.
type Branch struct {
	// Number is the branch's.
	Number int
	// Abandoned is true if the branch's last row does not lead to the run's newest iteration.
	Abandoned bool
	// Settings is the digest of the settings of the branch's first iteration.
	Settings string
	// Manifest is the digest of the branch's newest manifest.
	Manifest string
	// Steps ascend, and each number of a step has a name of its own.
	Steps []Step
}

// Step is what was measured at one step.
type Step struct {
	// Number is an iteration, or for evaluations the policy version that was measured.
	Number int64
	// Values are in the order of the table's columns; those of evaluations may come first.
	Values []Value
}

// Value is one number; it may be NaN or infinite.
type Value struct {
	Name   string
	Number float64
}

// Evaluation is the prefix of the names of an evaluation's numbers.
const Evaluation = "evaluation/"

const (
	evaluationBefore = "evaluation_before/"
	update           = "update."
)

// Of are the curves of a run's table, a branch each, by number. An iteration's metrics
// have the iteration as their step, an evaluation the version it measured: the one made
// in iteration n is at step n+1.
func Of(t iterations.Table) []Branch {
	at := map[int64]*collected{}
	for _, row := range t.Rows {
		addRow(at, t.Columns, row)
	}
	out := make([]Branch, 0, len(at))
	for _, c := range at {
		slices.SortFunc(c.Steps, func(a, b Step) int { return cmp.Compare(a.Number, b.Number) })
		out = append(out, c.Branch)
	}
	slices.SortFunc(out, func(a, b Branch) int { return cmp.Compare(a.Number, b.Number) })
	return out
}

// collected is a branch while its rows are read.
type collected struct {
	Branch
	steps map[int64]int // index in Steps
	last  int64         // newest iteration
}

func addRow(at map[int64]*collected, columns []iterations.Column, row []any) {
	var branch, iteration int64
	var abandoned bool
	var settings, manifest string
	for i, c := range columns {
		switch c.Name {
		case "branch":
			branch, _ = row[i].(int64)
		case "iteration":
			iteration, _ = row[i].(int64)
		case "abandoned":
			abandoned, _ = row[i].(bool)
		case "settings_digest":
			settings, _ = row[i].(string)
		case "manifest":
			manifest, _ = row[i].(string)
		}
	}
	b := at[branch]
	if b == nil {
		b = &collected{Branch: Branch{Number: int(branch), Settings: settings}, steps: map[int64]int{}, last: -1}
		at[branch] = b
	}
	if iteration >= b.last {
		b.last, b.Abandoned, b.Manifest = iteration, abandoned, manifest
	}
	for i, c := range columns {
		if step, v, ok := Point(c, row[i], iteration); ok {
			b.add(step, v)
		}
	}
}

// Point is a cell of an iteration's row as a point of a curve, with its step; ok is false if trackers do not show the column,
// or the cell is empty.
func Point(c iterations.Column, cell any, iteration int64) (step int64, v Value, ok bool) {
	n, ok := number(cell)
	if !ok {
		return 0, Value{}, false
	}
	if rest, before := strings.CutPrefix(c.Name, evaluationBefore); before {
		return iteration, Value{Evaluation + rest, n}, true
	}
	if strings.HasPrefix(c.Name, Evaluation) {
		return iteration + 1, Value{c.Name, n}, true
	}
	return iteration, Value{c.Name, n}, c.Kind == iterations.Number || strings.HasPrefix(c.Name, update)
}

// add keeps the first number of a name: the evaluation of a version that two rows tell is told once.
func (c *collected) add(step int64, v Value) {
	i, ok := c.steps[step]
	if !ok {
		i = len(c.Steps)
		c.steps[step] = i
		c.Steps = append(c.Steps, Step{Number: step})
	}
	s := &c.Steps[i]
	if !slices.ContainsFunc(s.Values, func(have Value) bool { return have.Name == v.Name }) {
		s.Values = append(s.Values, v)
	}
}

// number is a cell as trackers show it: a truth is 0 or 1.
func number(cell any) (float64, bool) {
	switch v := cell.(type) {
	case float64:
		return v, true
	case int64:
		return float64(v), true
	case bool:
		if v {
			return 1, true
		}
		return 0, true
	}
	return 0, false
}
