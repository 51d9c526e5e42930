package iteration

import (
	"fmt"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/steps"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// commit makes the iteration count: one conditional PUT of its manifest.
func (it *Iteration) commit() []Call {
	return []Call{call(steps.Commit, "", it.commitInput(), func(out activities.CommitResult) {
		it.committed = &out
	}).shown(it.label("commit"), it.label("commit"))}
}

// commitInput is everything that the iteration's manifest says.
func (it *Iteration) commitInput() activities.CommitInput {
	updated := it.updated()
	in := activities.CommitInput{
		Run: it.Run, Branch: it.Branch, Iteration: it.Number, Parent: it.headRef(), Settings: it.Settings,
		Fingerprint: it.Fingerprint, Device: it.Device, Programs: it.Programs, Frozen: it.Frozen,
		StateBefore: it.Policy, StateAfter: updated.State,
		Turns: it.turns(), Rollout: it.Shared, RolledOutBy: it.RolledOutBy, Trajectories: it.Selected.Trajectories, Scores: it.scores(),
		Tables: it.tables().With(it.Selected.Tables), Update: updated.Counts, Snapshot: it.State.Snapshot, Evaluations: it.Evaluations,
		Metrics: it.Metrics, Detected: it.Detected, Opened: it.Opened, Timings: it.Timings, Lost: it.Lost,
	}
	if next := it.Next; next != nil {
		in.NextRollout = &activities.NextRollout{Settings: next.Settings, Turns: next.Rollout.Turns,
			By: store.VersionRef{Version: it.Number, State: it.Policy}}
	}
	if it.Credited != nil {
		in.Batch, in.Tables = it.Credited.Batch, in.Tables.With(it.Credited.Tables)
		if len(it.Passes) > 0 {
			in.Batch, in.Passes = nil, it.recorded()
		}
	}
	return in
}

// Commit takes the result of a commit that was made without its call.
func (it *Iteration) Commit(out activities.CommitResult) error {
	if !it.open(manifest) {
		return fmt.Errorf("commit of iteration %d of run %s: %s", it.Number, it.Run.ID, it.missing())
	}
	it.committed = &out
	return nil
}

// Committed is what the next iteration continues from, once the manifest is written;
// nil before. newest is the version of the newest snapshot before the iteration.
func (it *Iteration) Committed(newest int) *activities.Head {
	if it.committed == nil {
		return nil
	}
	passes := max(len(it.Passes)-1, 0)
	if it.Head != nil {
		passes += it.Head.Passes
	}
	if it.State.Snapshot != nil {
		newest, passes = it.State.Snapshot.Version, 0
	}
	in := it.commitInput()
	batches := it.replayed()
	if in.Batch != nil {
		batches = append([]store.Ref{*in.Batch}, batches...)
	}
	head := activities.HeadOf(in, it.committed.Manifest).Carried()
	head.Snapshot, head.Passes, head.Batches = newest, passes, batches[:min(len(batches), it.Plan.Freshness.ReplayIterations)]
	return head
}

// Ahead is the next iteration with the settings of now, as far as it can run beside the commit: its
// first samples need the policy that the update has made, and nothing of the manifest. It is nil
// where the next iteration begins otherwise, or where the detectors have decided that it does not
// follow.
func (it *Iteration) Ahead(now spec.Settings) *Iteration {
	in := it.commitInput()
	if in.Next() != nil || it.Plan.Lag > 0 || it.Plan.Foreign || it.Apart != "" || it.leaves() || it.spent() {
		return nil
	}
	return New(Start{Run: it.Run, Plan: it.Plan, Branch: it.Branch, Number: it.Number + 1, Policy: in.StateAfter}, Begin(now, nil))
}
