package host

import (
	"context"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/store"
)

// passes is what Credit says about an update in passes besides a pass's batch.
type passes struct {
	turns       []int // with the batch of the first
	corrections []run.CorrectionRow
}

// nextPass corrects the signal of rows for a pass after the first, and gives the rows' scores in the
// state with which the pass begins.
func (h *Host) nextPass(ctx context.Context, in activities.CreditInput, rows []episode.TrajectoryRow, signal *run.TrainingSignal,
	of *passes) ([]episode.ScoreRow, error) {
	scores := func(ref store.Ref) ([]episode.ScoreRow, error) {
		table, err := run.ReadScores(ctx, h.Store, &ref, "scores of a pass", in.Settings.Credit)
		return run.ScoresOf(rows, table), err
	}
	before, err := scores(in.Pass.Before)
	if err != nil {
		return nil, err
	}
	after, err := scores(in.Pass.After)
	if err != nil {
		return nil, err
	}
	last, err := run.SideTable[run.CorrectionRow](ctx, h.Store, in.Pass.Corrections, "corrections of the pass before")
	if err != nil {
		return nil, err
	}
	if of.corrections, err = run.Corrections(rows, before, after, last, in.Pass.Updated, in.Settings.Update.Passes); err != nil {
		return nil, err
	}
	signal.Correct(of.corrections)
	signal.Metrics = run.CorrectionMetrics(in.Pass.Updated, of.corrections)
	return after, nil
}
