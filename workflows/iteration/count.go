package iteration

import (
	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/steps"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// Counts are how many activities an iteration takes where nothing is tried again: every
// episode plays all turns, rows are selected, and no group is drawn again.
type Counts struct {
	// Iteration is one that does nothing besides; the mean of those that share a rollout.
	Iteration float64
	// Snapshot, Evaluation and Diagnosis come besides where they are due.
	Snapshot, Evaluation, Diagnosis int
}

// Count counts the activities of a plan's iterations, whose steps are made in pieces, by
// doing them with invented results.
func Count(plan activities.Plan, pieces spec.Pieces) (Counts, error) {
	diagnosed := plan
	plan.Diagnostics.Every, diagnosed.Diagnostics.Every = 0, 1
	plain, err := activitiesOf(plan, pieces, Due{})
	if err != nil {
		return Counts{}, err
	}
	var out Counts
	for _, n := range plain {
		out.Iteration += float64(n) / float64(len(plain))
	}
	for _, besides := range []struct {
		count *int
		plan  activities.Plan
		due   Due
	}{
		{&out.Snapshot, plan, Due{Snapshot: true}}, {&out.Evaluation, plan, Due{Evaluate: len(plan.Suites) > 0}},
		{&out.Diagnosis, diagnosed, Due{}},
	} {
		with, err := activitiesOf(besides.plan, pieces, besides.due)
		if err != nil {
			return Counts{}, err
		}
		*besides.count = with[0] - plain[0]
	}
	return out, nil
}

// activitiesOf counts those of the iterations that share a rollout.
func activitiesOf(plan activities.Plan, pieces spec.Pieces, due Due) ([]int, error) {
	var counts []int
	start := Start{Plan: plan, Due: due, Policy: "version"}
	for n := range plan.Freshness.Updates() {
		start.Number = n + 1 // version 0 is evaluated once a run
		var shared *activities.Rolled
		if start.Head != nil {
			shared = start.Head.Rolled
		}
		it := New(start, Begin(plan.Settings, shared))
		counted := 0
		for !it.Done() {
			calls, err := it.Ready()
			if err != nil {
				return nil, err
			}
			if calls[0].Place != steps.Local {
				counted++
			}
			it.Apply(calls[0], invented(calls[0], plan, pieces))
		}
		counts = append(counts, counted)
		start.Head = it.Committed(0)
	}
	return counts, nil
}

// invented is a result that leaves out no step and no piece.
func invented(c Call, plan activities.Plan, pieces spec.Pieces) any {
	result, updates := c.NewResult(), plan.Freshness.Updates()
	switch out := result.(type) {
	case *activities.GenerateResult:
		if in, ok := c.Input.(activities.GenerateInput); ok {
			out.More = len(in.Blocks) == 0 && len(in.Pieces)+1 < pieces.Generate(rowsOf(plan, in.Rollout))
		}
	case *activities.TakeCallsResult:
		// As many calls one after the other as an episode may have; the last look finds the ends.
		in := c.Input.(activities.TakeCallsInput)
		if out.Table = (&store.Ref{}); len(in.Taken) < turnsOf(plan, in.Rollout) {
			out.Calls, out.Playing = 1, 1
		}
	case *activities.ArrangeResult:
		out.Turns = make([]store.TurnRefs, turnsOf(plan, c.Input.(activities.ArrangeInput).Rollout))
	case *activities.BlockResult:
		out.Table.Key = c.Key
	case *activities.StepResult:
		out.Alive = 1
	case *activities.SelectResult:
		out.Rows = updates
		if plan.ScoredBySampler {
			out.Scored, out.Credited = &activities.ScoreResult{}, &activities.CreditResult{Batch: &store.Ref{}, Turns: inventedPasses(plan)}
		}
		if updates > 1 {
			for range updates {
				out.Parts = append(out.Parts, 1)
			}
		}
	case *activities.ScoreResult:
		out.More = len(c.Input.(activities.ScoreInput).Pieces)+1 < pieces.Score
	case *activities.JudgeResult:
		in := c.Input.(activities.JudgeInput)
		if last := in.Turns[len(in.Turns)-1]; plan.Questions > 0 && last.Questions == nil {
			out.Questions = make([]store.Ref, pieces.Generate(plan.Questions))
		}
	case *activities.DiagnoseResult:
		if len(c.Input.(activities.DiagnoseInput).Pieces)+1 < pieces.Diagnose {
			out.Piece = &store.Ref{}
		}
	case *activities.SnapshotResult:
		begun := activities.BegunSnapshot{}
		if in := c.Input.(activities.SnapshotInput); in.Begun != nil {
			begun.Sent = in.Begun.Sent + 1
		}
		if begun.Sent+1 < pieces.Snapshot {
			out.Begun = &begun
		}
	case *activities.UpdateResult:
		begun := activities.BegunUpdate{Done: 1}
		if in := c.Input.(activities.UpdateInput); in.Begun != nil {
			begun.Done += in.Begun.Done
		}
		if begun.Done < pieces.Update {
			out.Begun = &begun
		}
	case *activities.CreditResult:
		out.Batch = &store.Ref{}
		if c.Input.(activities.CreditInput).Pass == nil {
			out.Turns = inventedPasses(plan)
		}
	}
	return result
}

// inventedPasses are the turns that an update has passes of.
func inventedPasses(plan activities.Plan) (turns []int) {
	for turn := plan.Turns; turn > 0 && plan.Settings.Update.Passes.On(); turn-- {
		turns = append(turns, turn)
	}
	return turns
}

// turnsOf is the most turns of an episode in a rollout of the plan.
func turnsOf(plan activities.Plan, r activities.Rollout) int {
	if r.Evaluation != nil {
		for _, s := range plan.Suites {
			if s.Name == r.Evaluation.Suite {
				return s.Turns
			}
		}
	}
	return plan.Turns
}

// rowsOf is how many rows a rollout of the plan has.
func rowsOf(plan activities.Plan, r activities.Rollout) int {
	if r.Evaluation != nil {
		for _, s := range plan.Suites {
			if s.Name == r.Evaluation.Suite {
				return s.Rows
			}
		}
	}
	return plan.Rows
}
