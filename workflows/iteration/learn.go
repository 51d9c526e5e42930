package iteration

import (
	"fmt"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/steps"
	"github.com/reprise-rl/reprise/infra/store"
)

// label names a step of the iteration to people.
func (it *Iteration) label(step string) string {
	return fmt.Sprintf("iteration %d · %s", it.Number, step)
}

func (it *Iteration) score() []Call {
	piece := pieceAfter(it.Scoring)
	scored := it.Selected
	if scored == nil {
		scored = it.Everything // before the selection
	}
	return []Call{call(steps.Score, piece, activities.ScoreInput{
		Policy: it.before(), Iteration: it.Number, Settings: it.Settings, Trajectories: scored.Trajectories, Pieces: it.Scoring,
		Reference: it.tables().Ref(activities.ReferenceTable), Under: it.Plan.Under(),
	}, func(out activities.ScoreResult) {
		it.Record("score", out.Telemetry)
		if out.More {
			it.Scoring = append(it.Scoring, out.Scores)
			return
		}
		it.add(&out.Metrics)
		it.Scored, it.Scoring = &out, nil // the table has the rows of all pieces
	}).shown(it.label("score"), it.label(fmt.Sprintf("old log-probs of %d rows%s", scored.Rows, piece)))}
}

func (it *Iteration) diagnose() []Call {
	piece := pieceAfter(it.Diagnosing)
	return []Call{call(steps.Diagnose, piece, activities.DiagnoseInput{
		Policy: it.before(), Iteration: it.Number, Settings: it.Settings, Trajectories: it.Selected.Trajectories,
		Before: activities.Averages(it.Previous), Pieces: it.Diagnosing,
	}, func(out activities.DiagnoseResult) {
		it.Record("diagnose", out.Telemetry)
		if out.Piece != nil {
			it.Diagnosing = append(it.Diagnosing, *out.Piece)
			return
		}
		it.add(&out.Metrics)
		it.Diagnosed, it.Diagnosing = true, nil
	}).shown(it.label("diagnose"), it.label("mutual information of prompts and reasonings"+piece))}
}

func (it *Iteration) credit() []Call {
	return []Call{call(steps.Credit, "", it.creditInput().Of(*it.Selected, it.Shared), it.credited).shown(it.label("credit"), it.label("advantages"))}
}

// credited takes the batch of the update, or of its first pass.
func (it *Iteration) credited(out activities.CreditResult) {
	it.Record("credit", out.Telemetry)
	it.add(&out.Metrics)
	it.Credited = &out
}

// creditInput asks for the batch of the update, or of its first pass. The caller adds what was
// selected, with Of.
func (it *Iteration) creditInput() activities.CreditInput {
	return activities.CreditInput{
		Run: it.Run, Branch: it.Branch, Iteration: it.Number, Settings: it.Settings, Scores: it.scores(), RolledOutBy: it.RolledOutBy,
		Replay: it.replayed(), Tables: it.tables(),
	}
}

// tables are the side tables that the iteration begins with.
func (it *Iteration) tables() activities.Tables {
	if it.Head == nil {
		return nil
	}
	return it.Head.Tables
}

// replayed are the batches that a replay buffer draws from.
func (it *Iteration) replayed() []store.Ref {
	if it.Head == nil {
		return nil
	}
	return it.Head.Batches
}

func (it *Iteration) update() []Call {
	if calls := it.beforePass(); calls != nil {
		return calls
	}
	piece := ""
	if u := it.Updating; u != nil && u.Done > 0 {
		piece = fmt.Sprintf(" · from micro-batch %d of %d", u.Done+1, u.Of)
	}
	of := it.ofPass(it.passOn())
	// Its summary is that of all pieces: what fails in one piece after another is one step,
	// because a lost worker has to make all of them again.
	return []Call{call(steps.Update, of+piece, activities.UpdateInput{
		Policy: it.passed(), Batch: *it.batch(), Settings: it.Settings, Begun: it.Updating, MaxSeconds: it.Plan.ActivitySeconds / 2,
	}, func(out activities.UpdateResult) {
		it.Record("update", out.Telemetry)
		if it.Updating = out.Begun; it.Updating != nil {
			return
		}
		if len(it.Credited.Turns) > 0 && !it.lastPass(&out) {
			return
		}
		it.add(&out.Metrics)
		it.Updated = &out
	}).shown(it.label("update")+piece, it.label(fmt.Sprintf("update on %d rows%s", it.rows(), of)))}
}

// updated is what the update made; without a selected row the version before stays.
func (it *Iteration) updated() activities.UpdateResult {
	if it.Updated == nil {
		return activities.UpdateResult{State: it.Policy, Counts: store.UpdateCounts{Skipped: true, SkippedTotal: 1}}
	}
	return *it.Updated
}

func (it *Iteration) snapshot() []Call {
	piece := ""
	if it.Storing != nil {
		piece = fmt.Sprintf(" · from file %d of %d", it.Storing.Sent+1, len(it.Storing.Snapshot.Files))
	}
	return []Call{call(steps.Snapshot, piece, activities.SnapshotInput{Policy: it.after(), Begun: it.Storing},
		func(out activities.SnapshotResult) {
			it.Record("snapshot", out.Telemetry)
			if it.Storing = out.Begun; it.Storing == nil {
				it.Snapshot = &out.Snapshot
			}
		}).shown(it.label("snapshot"), fmt.Sprintf("snapshot of version %d%s", it.Number+1, piece))}
}

// detect lets the detectors look at the iteration before it is committed, so that its
// manifest says what they saw and what is done about it.
func (it *Iteration) detect() []Call {
	return []Call{call(steps.Detect, "", struct{}{}, func(activities.Detected) {
		it.Plan.Smooth(it.Previous, it.Metrics)
		it.Plan.CountStops(it.Previous, it.Metrics)
		it.Detected = it.Plan.Detect(it.Before, it.Number, it.Metrics, it.Evaluations)
		it.detected = true
	})}
}
