package host

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/infra/store/tables"
	"github.com/reprise-rl/reprise/model/batch"
	"github.com/reprise-rl/reprise/model/credit"
	"github.com/reprise-rl/reprise/model/draw"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// Credit gives every selected row its advantages and stores the batch: all that
// Update reads. Without a row to learn from there is no batch.
func (h *Host) Credit(ctx context.Context, in activities.CreditInput) (_ activities.CreditResult, err error) {
	defer run.Edge(ctx, &err, "credit of iteration %d of run %s", in.Iteration, in.Run.ID)
	defer run.Heartbeat(ctx)()
	return h.credit(ctx, in)
}

// credit computes the advantages, for Credit or as part of Select.
func (h *Host) credit(ctx context.Context, in activities.CreditInput) (activities.CreditResult, error) {
	start := time.Now()
	rc, err := h.Contexts.Read(ctx, h.Store, in.Run)
	if err != nil {
		return activities.CreditResult{}, err
	}
	all, err := run.ReadTrajectories(ctx, h.Store, in.Trajectories, in.Tables.Ref(activities.ComponentsTable))
	if err != nil {
		return activities.CreditResult{}, err
	}
	dir := store.IterationDir(in.Run.ID, in.Branch, in.Iteration)
	side := activities.Tables{}
	agents, err := run.AgentsOf(rc, in.Settings.Credit, all)
	if err != nil {
		return activities.CreditResult{}, err
	}
	past, err := run.ObserveStates(ctx, h.Store, in, dir, all, agents, side)
	if err != nil {
		return activities.CreditResult{}, err
	}
	if err := run.PutTable(ctx, h.Store, dir, side, activities.AgentsTable, agents); err != nil {
		return activities.CreditResult{}, err
	}
	branches, err := run.ReadTable[episode.BranchRow](ctx, h.Store, in.Tables, activities.BranchesTable)
	if err != nil {
		return activities.CreditResult{}, err
	}
	rows, passes, metrics, err := h.batch(ctx, rc, in, all, past, agents, branches)
	if err != nil {
		return activities.CreditResult{}, err
	}
	out := activities.CreditResult{Tables: side, Metrics: metrics, Turns: passes.turns}
	if passes.corrections != nil {
		ref, err := tables.Put(ctx, h.Store, dir, run.CorrectionsArtifact, passes.corrections)
		if err != nil {
			return activities.CreditResult{}, err
		}
		out.Corrections = &ref
	}
	if len(rows) > 0 {
		body, err := batch.Encode(rows, rc.Train.Update.MicroBatch)
		if err != nil {
			return activities.CreditResult{}, fmt.Errorf("encode the batch: %w", err)
		}
		ref, err := store.PutArtifact(ctx, h.Store, dir, "batch", "safetensors", body)
		if err != nil {
			return activities.CreditResult{}, err
		}
		out.Batch = &ref
	}
	out.Telemetry.Seconds = time.Since(start).Seconds()
	return out, nil
}

// batch is what an iteration learns from: the selected rows of its part of the rollout that are
// worth a step, replayed rows and supervised ones. It is empty if no selected row is worth a step, or if
// only successes are wanted and none exists. With passes it holds one pass's rows.
func (h *Host) batch(ctx context.Context, rc *run.Context, in activities.CreditInput, all []episode.TrajectoryRow,
	past []credit.StateValue, agents []run.AgentRow, branches []episode.BranchRow) ([]batch.Row, passes, activities.Metrics, error) {
	var none passes
	scores, err := run.ReadScores(ctx, h.Store, in.Scores, "scores", rc.Train.Credit)
	if err != nil {
		return nil, none, nil, err
	}
	selected := episode.SelectedOf(all)
	rows, scores, err := sharedPart(rc, in.Rollout, selected, run.ScoresOf(selected, scores))
	if err != nil || len(rows) == 0 {
		return nil, none, nil, err
	}
	l := run.NewCreditInput(rows)
	l.ByAgents(rows, agents)
	l.ByTrees(rows, rc.Training.Trees)
	if rc.Train.Credit.BySubgoals() {
		l.BySubgoals(rows, rc.Tokenizer)
	}
	if in.Settings.Credit.ReadsOpen() {
		open, err := run.ReadTable[run.OpenRow](ctx, h.Store, in.Tables, activities.OpenTable)
		if err != nil {
			return nil, none, nil, err
		}
		if err := l.ByOpen(rows, open); err != nil {
			return nil, none, nil, err
		}
	}
	if rc.Train.Credit.ReadsCriteria() {
		if err := l.ByCriteria(rc, in.Settings, rows); err != nil {
			return nil, none, nil, err
		}
	}
	if err := l.Scored(rows, scores, rc.Train.Update.Reference(), rc.Train.Credit); err != nil {
		return nil, none, nil, err
	}
	signal, err := l.TrainingSignal(in.Settings, rows, past)
	if err != nil {
		return nil, none, nil, err
	}
	rows, scores = worthAStep(rows, scores, &signal)
	if len(rows) == 0 {
		return nil, none, signal.Metrics, nil
	}
	var of passes
	if in.Pass != nil {
		if scores, err = h.nextPass(ctx, in, rows, &signal, &of); err != nil {
			return nil, none, nil, err
		}
	}
	trained, err := episode.Trained(rows, branches)
	if err != nil {
		return nil, none, nil, err
	}
	out := batchRows(rc, rows, signal, scores, trained, origin(in))
	if weight := rc.Training.Method.Weight; weight != nil {
		if err := run.WeighBranches(rc.Training.Trees, out, weight(rc.Train.Update.Own)); err != nil {
			return nil, none, nil, err
		}
	}
	earlier, err := h.earlier(ctx, rc, in)
	if err != nil {
		return nil, none, nil, err
	}
	if !in.Settings.Update.Supervised.Alone() {
		out = append(out, replayed(rc, in, earlier, len(out))...)
	}
	if in.Settings.Update.Supervised.On() {
		if out, err = supervise(rc, in, out, all, earlier, signal.Metrics); err != nil {
			return nil, none, nil, err
		}
	}
	if f := rc.Train.Freshness; len(out) > 0 && (f.Updates() > 1 || f.ReplayIterations > 0 || rc.Train.Rollout.Lag > 0) {
		staleness(out, in, signal.Metrics)
	}
	switch {
	case in.Pass != nil:
		out = run.OfTurn(out, in.Pass.Turn)
	case in.Settings.Update.Passes.On():
		of.turns = run.TurnsBackwards(out)
		out = run.OfTurn(out, of.turns[0])
	}
	return out, of, signal.Metrics, nil
}

// origin is the iteration that rolled out what this one learns from.
func origin(in activities.CreditInput) int {
	if in.Rollout != nil {
		return in.Rollout.Iteration
	}
	return in.Iteration
}

// worthAStep leaves out the rows that the signal calls not worth a step, and counts them.
func worthAStep(rows []episode.TrajectoryRow, scores []episode.ScoreRow,
	signal *run.TrainingSignal) ([]episode.TrajectoryRow, []episode.ScoreRow) {
	if signal.Worth == nil {
		return rows, scores
	}
	worth, n := signal.Worth, len(rows)
	signal.Keep(worth)
	rows, scores = run.Kept(rows, worth), run.Kept(scores, worth)
	signal.Metrics["rollout/small_advantages"] = canon.Float(n - len(rows))
	return rows, scores
}

// sharedPart takes the rows that an iteration learns from, and their scores, if it shares the
// rollout: all of them, or its own groups.
func sharedPart(rc *run.Context, r *store.RolloutRef, rows []episode.TrajectoryRow,
	scores []episode.ScoreRow) ([]episode.TrajectoryRow, []episode.ScoreRow, error) {
	if len(scores) != len(rows) {
		return nil, nil, fmt.Errorf("%d scores for %d selected rows: %w", len(scores), len(rows), store.ErrInvalid)
	}
	if r == nil || rc.Train.Freshness.Online == 1 {
		return rows, scores, nil
	}
	var own []episode.TrajectoryRow
	var ownScores []episode.ScoreRow
	for i, row := range rows {
		if int(row.Group)/rc.Training.Groups == r.Update {
			own, ownScores = append(own, row), append(ownScores, scores[i])
		}
	}
	return own, ownScores, nil
}

// batchRows lays the training signal of trajectories out in the batch's rows, one a
// stretch. trained says which turns the update learns from, [rows][turns]; nil is all.
func batchRows(rc *run.Context, rows []episode.TrajectoryRow, l run.TrainingSignal, scores []episode.ScoreRow, trained [][]bool,
	origin int) []batch.Row {
	width := rc.Shapes(rc.Training, 1).Sequence
	var out []batch.Row
	for _, p := range episode.Stretches(rows) {
		r := batch.Row{Row: p.Row, Origin: int32(origin), Length: int32(len(p.Ids)), IDs: make([]int32, width), Turns: make([]int32, width),
			Mask: make([]bool, width)}
		copy(r.IDs, p.Ids)
		copy(r.Turns, p.Turns)
		copy(r.Mask, p.Sampled)
		r.Place(columns(rc, rows[p.Of], l, p.Of, scores[p.Of]), p.Sampled, p.First, rc.Train.Credit.Values())
		for t, sampled := range p.Sampled {
			if sampled && trained != nil && !trained[p.Of][p.Turns[t]-1] {
				r.Leave(t)
			}
		}
		out = append(out, r)
	}
	return out
}

// columns are those of a trajectory's sampled tokens, in order, which is the i-th of the signal's.
func columns(rc *run.Context, row episode.TrajectoryRow, l run.TrainingSignal, i int, s episode.ScoreRow) batch.RowColumns {
	out := batch.RowColumns{batch.OldLogProbs: s.LogProbs, batch.Advantages: narrow(l.Advantages[i])}
	if l.Returns != nil {
		out[batch.Returns], out[batch.OldValues] = narrow(l.Returns[i]), s.Values
	}
	if l.Learns != nil {
		out[batch.ReturnsMask] = batch.Flags(l.Learns[i])
	}
	if rc.Train.Update.KLIn == spec.KLLoss {
		out[batch.RefLogProbs] = s.RefLogProbs
	}
	switch rc.Train.Update.Mismatch.Regime {
	case spec.Decoupled:
		out[batch.RolloutLogProbs] = row.RolloutLogProbs
	case spec.Bypass:
		out[batch.OldLogProbs] = row.RolloutLogProbs
	}
	return out
}

// narrow rounds numbers to float32.
func narrow(numbers []float64) []float32 {
	out := make([]float32, len(numbers))
	for i, v := range numbers {
		out[i] = float32(v)
	}
	return out
}

// earlier are the rows of recent batches that were fresh there: what a replay buffer holds. A batch
// that reuses the previous rollout adds no fresh rows.
func (h *Host) earlier(ctx context.Context, rc *run.Context, in activities.CreditInput) ([]batch.Row, error) {
	if rc.Train.Freshness.ReplayIterations == 0 {
		return nil, nil
	}
	var buffer, newest []batch.Row
	for _, ref := range in.Replay { // newest first
		rows, err := rc.ReadBatch(ctx, h.Store, ref)
		if err != nil {
			return nil, fmt.Errorf("replay buffer: %w", err)
		}
		rows = newestOf(rows)
		if len(newest) > 0 && newest[0].Origin != rows[0].Origin {
			buffer = append(buffer, newest...)
		}
		newest = rows
	}
	return append(buffer, newest...), nil
}

// newestOf are the rows of a batch that were rolled out last.
func newestOf(rows []batch.Row) []batch.Row {
	newest := int32(0)
	for _, r := range rows {
		newest = max(newest, r.Origin)
	}
	var out []batch.Row
	for _, r := range rows {
		if r.Origin == newest {
			out = append(out, r)
		}
	}
	return out
}

// replayed draws rows from the replay buffer, with the log-probs and the advantages that they
// had.
func replayed(rc *run.Context, in activities.CreditInput, buffer []batch.Row, fresh int) []batch.Row {
	var pool []batch.Row
	for _, r := range buffer {
		if !r.Supervised {
			pool = append(pool, r)
		}
	}
	wanted := min(rc.Train.Freshness.Replayed(fresh), len(pool))
	if wanted == 0 {
		return nil
	}
	var out []batch.Row
	for _, at := range some(rc.Drawn(draw.Replay, in.Branch, in.Iteration), wanted, len(pool)) {
		row := pool[at]
		if row.Columns[batch.RolloutLogProbs] == nil && rc.Train.Update.Mismatch.Regime == spec.Decoupled {
			// Of a run that this one continues, which kept only what Score gave when it rolled out.
			row.Columns[batch.RolloutLogProbs] = row.Columns[batch.OldLogProbs]
		}
		out = append(out, row)
	}
	return out
}

// some draws so many of the numbers below n, in ascending order.
func some(at draw.Address, wanted, n int) []int {
	drawn := at.Permutation(n)[:wanted]
	slices.Sort(drawn)
	return drawn
}

// staleness says how many updates ago the version was made that sampled the rows of a batch.
func staleness(rows []batch.Row, in activities.CreditInput, metrics activities.Metrics) {
	var ages []float64
	most := 0.0
	for _, r := range rows {
		age := float64(in.Iteration - int(r.Origin))
		if by := in.RolledOutBy; by != nil {
			age += float64(in.Iteration - by.Version)
		}
		ages, most = append(ages, age), max(most, age)
	}
	metrics["training/staleness_mean"], metrics["training/staleness_max"] = canon.Float(run.Mean(ages)), canon.Float(most)
}
