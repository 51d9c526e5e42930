package faults

import (
	"fmt"

	"github.com/reprise-rl/reprise/activities"
)

// occurrences numbers activities from 1, under each name that a fault may give
// them: a kind alone, or with an iteration, a turn, a suite or the last two; of any
// run, and of theirs.
type occurrences map[string]int

// count numbers an occurrence under its names.
func (p *Plan) count(of occurrences, run, kind string, input any) occurrences {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := occurrences{}
	for _, name := range namesOf(kind, input) {
		for _, name := range []string{name, run + "!" + name} {
			of[name]++
			out[name] = of[name]
		}
	}
	return out
}

// namesOf are the names under which an activity counts.
func namesOf(kind string, input any) []string {
	names := []string{kind}
	of := func(iteration int) []string { return append(names, fmt.Sprintf("%s#%d", kind, iteration)) }
	switch in := input.(type) {
	case activities.GenerateInput:
		return append(names, places(kind, in.Rollout, in.Turn)...)
	case activities.BlockInput:
		return append(names, places(kind, in.Rollout, in.Turn)...)
	case activities.PublishInput:
		return of(in.Policy.Version)
	case activities.StepInput:
		return append(names, places(kind, in.Rollout, in.Turn)...)
	case activities.ChooseInput:
		return append(names, places(kind, in.Rollout, len(in.Turns))...)
	case activities.MeasureInput:
		if e := in.Rollout.Evaluation; e != nil {
			return append(names, kind+"@"+e.Suite)
		}
	case activities.SelectInput:
		return of(in.Rollout.Iteration)
	case activities.ScoreInput:
		return of(in.Iteration)
	case activities.DiagnoseInput:
		return of(in.Iteration)
	case activities.GradeInput:
		return of(in.Rollout.Iteration)
	case activities.CreditInput:
		return of(in.Iteration)
	case activities.UpdateInput:
		return of(in.Policy.Version) // iteration n makes version n+1 of version n
	case activities.CommitInput:
		return of(in.Iteration)
	}
	return names
}

func places(kind string, rollout activities.Rollout, turn int) []string {
	if e := rollout.Evaluation; e != nil {
		return []string{kind + "@" + e.Suite, fmt.Sprintf("%s@%s:%d", kind, e.Suite, turn)}
	}
	return []string{fmt.Sprintf("%s@%d", kind, turn), fmt.Sprintf("%s#%d", kind, rollout.Iteration)}
}

// first is an activity's input: each has one.
func first(arguments []any) any {
	if len(arguments) == 0 {
		return nil
	}
	return arguments[0]
}
