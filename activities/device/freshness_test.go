package device

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/infra/store/tables"
	"github.com/reprise-rl/reprise/model/batch"
	"github.com/reprise-rl/reprise/model/draw"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// fresh is a run of several turns and iterations with the edits.
func fresh(t *testing.T, edits ...string) *testRun {
	t.Helper()
	return freshIn(t, store.NewMemory(), edits...)
}

func freshIn(t *testing.T, s *store.Memory, edits ...string) *testRun {
	t.Helper()
	return begunIn(t, s, "fresh", tinySpec(t, append([]string{
		`environment.name="` + walkName + `"`, "rollout.turns=2", "rollout.group_size=4", "evaluation.every=0", "iterations=5", "snapshot.every=5",
	}, edits...)...))
}

// rebuilt checks that the state is the same from the batches alone.
func (r *testRun) rebuilt(t *testing.T) {
	t.Helper()
	state := r.state
	r.forget(t)
	require.Equal(t, state, r.restore(t, activities.RestoreInput{}).State)
}

func (r *testRun) batch(t *testing.T, in activities.CommitInput) []batch.Row {
	t.Helper()
	rc, err := r.Host.Contexts.Read(t.Context(), r.store, r.Run)
	require.NoError(t, err)
	rows, err := rc.ReadBatch(t.Context(), r.store, *in.Batch)
	require.NoError(t, err)
	return rows
}

// A rollout of twice as many groups serves two iterations: each learns from its own
// half, with the log-probs of the policy that rolled out.
func TestOnline(t *testing.T) {
	t.Parallel()
	r := fresh(t, "freshness.online=2")
	first, second, third := r.iterate(t), r.iterate(t), r.iterate(t)
	require.Len(t, first.Turns, 4)
	require.Equal(t, []int{0, 0, 1, 1}, []int{first.Turns[0].Round, first.Turns[1].Round, first.Turns[2].Round, first.Turns[3].Round})
	require.Contains(t, first.Turns[2].Step.Key, "round-2.turn-1.step")
	require.Equal(t, &store.RolloutRef{Updates: 2, Rows: []int{8, 8}}, first.Rollout)
	require.Equal(t, canon.Float(2), first.Metrics["rollout/rounds"])
	require.Equal(t, canon.Float(16), first.Metrics["rollout/trajectories"])

	require.Empty(t, second.Turns)
	require.Equal(t, first.Trajectories, second.Trajectories)
	require.Equal(t, first.Scores, second.Scores)
	require.Equal(t, 1, second.Rollout.Update)
	require.NotEqual(t, first.Batch.Digest, second.Batch.Digest)
	require.NotEqual(t, first.StateAfter, second.StateAfter)
	require.Zero(t, first.Metrics["actor/ratio_max"])
	require.Positive(t, second.Metrics["actor/ratio_max"], "the policy has moved on")
	require.Zero(t, first.Metrics["training/staleness_max"])
	require.Equal(t, canon.Float(1), second.Metrics["training/staleness_mean"])
	require.NotContains(t, second.Metrics, "reward/mean")

	require.Equal(t, 2, third.Rollout.Iteration, "the third rolls out again")
	require.Len(t, third.Turns, 4)
	var groups []int32
	rows, err := tables.Get[episode.TrajectoryRow](t.Context(), r.store, first.Trajectories)
	require.NoError(t, err)
	for i, row := range rows {
		require.EqualValues(t, i, row.Row)
		if row.Member == 0 {
			groups = append(groups, row.Group)
		}
	}
	require.Equal(t, []int32{0, 1, 2, 3}, groups)
	for i, row := range r.batch(t, second) {
		require.EqualValues(t, 8+i, row.Row)
		require.Zero(t, row.Origin)
	}
	r.rebuilt(t)
	head, err := run.FindHead(t.Context(), r.Host.Store, r.Run.ID, nil)
	require.NoError(t, err)
	require.Equal(t, r.rolled(), head.Rolled, "who finds the run goes on with the second half")
	require.Equal(t, 1, head.Rolled.Update)
}

// The groups of a round are others: the same run rolled out in one round has the
// first ones.
func TestRoundsContinueTheIndex(t *testing.T) {
	r := fresh(t, "freshness.online=2")
	rc, err := r.Host.Contexts.Read(t.Context(), r.store, r.Run)
	require.NoError(t, err)
	second := rc.Address(rc.Training, 0, activities.Rollout{Round: 1}, 0, 3)
	require.Equal(t, rc.Address(rc.Training, 0, activities.Rollout{}, 2, 3), second)
	require.NotEqual(t, rc.Address(rc.Training, 0, activities.Rollout{}, 0, 3), second)
}

func TestReuse(t *testing.T) {
	t.Parallel()
	r := fresh(t, "freshness.reuse=2", `credit.algorithm="gae"`)
	first, second := r.iterate(t), r.iterate(t)
	require.Equal(t, first.Batch.Digest, second.Batch.Digest, "the same batch")
	require.NotEqual(t, first.StateAfter, second.StateAfter)
	require.Equal(t, []int{8, 8}, first.Rollout.Rows)
	require.Len(t, first.Turns, 2)
	require.Equal(t, canon.Float(1), second.Metrics["training/staleness_max"])
	require.Nil(t, r.rolled())
	r.rebuilt(t)
}

func TestReplayBuffer(t *testing.T) {
	t.Parallel()
	r := fresh(t, "freshness.replay_iterations=2", "freshness.replay_share=0.5")
	require.Equal(t, 3, spec.Freshness{ReplayIterations: 1, ReplayShare: 0.25}.Replayed(9))
	var commits []activities.CommitInput
	for range 4 {
		commits = append(commits, r.iterate(t))
	}
	require.Len(t, r.batch(t, commits[0]), 8, "there is nothing to replay")
	require.Zero(t, commits[0].Metrics["training/staleness_max"])
	origins := map[int32]int{}
	for _, row := range r.batch(t, commits[3]) {
		origins[row.Origin]++
	}
	require.Equal(t, 8, origins[3])
	require.Equal(t, 8, origins[1]+origins[2], "of the two iterations before, and no row that was replayed there: %v", origins)
	require.Equal(t, canon.Float(2), commits[3].Metrics["training/staleness_max"])
	require.NotZero(t, commits[3].Metrics["actor/ratio_max"])
	require.Len(t, commits[3].Turns, 2, "it rolls out all the same")
	r.rebuilt(t)
	recent, err := run.RecentBatches(t.Context(), r.store, r.Run.ID, r.head, 2)
	require.NoError(t, err)
	require.Equal(t, []store.Ref{*commits[3].Batch, *commits[2].Batch}, recent)
}

// An iteration whose update is skipped has no batch: the buffer is the same for a run
// that continues and for a run that is resumed.
func TestReplayBufferPassesSkippedUpdates(t *testing.T) {
	t.Parallel()
	r := fresh(t, "freshness.replay_iterations=2", "freshness.replay_share=0.5")
	first, second := r.iterate(t), r.iterate(t)
	before := r.Settings.Selection
	r.Settings.Selection.DropFlat, r.Settings.Selection.Floor = true, 100
	skipped := r.iterate(t)
	require.Nil(t, skipped.Batch)
	r.Settings.Selection = before
	recent, err := run.RecentBatches(t.Context(), r.store, r.Run.ID, r.head, 2)
	require.NoError(t, err)
	require.Equal(t, []store.Ref{*second.Batch, *first.Batch}, recent)
	origins := map[int32]int{}
	for _, row := range r.batch(t, r.iterate(t)) {
		origins[row.Origin]++
	}
	require.Equal(t, 8, origins[3])
	require.Equal(t, 8, origins[0]+origins[1])
}

// Branches of a run with common random numbers share every draw; others have none in
// common.
func TestCommonRandomNumbers(t *testing.T) {
	for _, common := range []bool{false, true} {
		r := fresh(t, fmt.Sprintf("common_random=%t", common))
		rc, err := r.Host.Contexts.Read(t.Context(), r.store, r.Run)
		require.NoError(t, err)
		for _, p := range []draw.Purpose{draw.Shuffle, draw.Replay, draw.Diagnose} {
			require.Equal(t, common, rc.Drawn(p, 0, 3) == rc.Drawn(p, 1, 3), p)
			require.NotEqual(t, rc.Drawn(p, 1, 2), rc.Drawn(p, 1, 3))
		}
		require.Equal(t, common, rc.Address(rc.Training, 0, activities.Rollout{}, 1, 2) == rc.Address(rc.Training, 1, activities.Rollout{}, 1, 2))
	}
}

// If groups do not vary, others are rolled out, in at most so many rounds.
func TestResample(t *testing.T) {
	r := fresh(t, "selection.resample=3", "selection.floor=100")
	in := r.iterate(t)
	require.True(t, in.Update.Skipped, "nothing varies by more than the floor")
	require.Equal(t, canon.Float(3), in.Metrics["rollout/rounds"])
	require.Len(t, in.Turns, 6)
	require.Nil(t, in.Rollout)

	rc, err := r.Host.Contexts.Read(t.Context(), r.store, r.Run)
	require.NoError(t, err)
	s := r.Settings.Selection
	s.Floor, s.Method = 0, "all"
	rows := func(returns ...float64) []episode.TrajectoryRow {
		var out []episode.TrajectoryRow
		for i, v := range returns {
			out = append(out, episode.TrajectoryRow{Row: int32(i), Group: int32(i / 4), Rewards: []float64{v}, Penalties: []float64{0}})
		}
		return out
	}
	flat, varied := []float64{1, 1, 1, 1}, []float64{0, 1, 0, 1}
	got, err := run.Choose(rc, s, rows(append(flat, varied...)...), rc.Training)
	require.NoError(t, err)
	require.True(t, got.More, "one of two varies")
	got, err = run.Choose(rc, s, rows(append(append(append(flat[:4:4], varied...), varied...), varied...)...), rc.Training)
	require.NoError(t, err)
	require.False(t, got.More)
	require.Equal(t, []bool{false, true, true, false}, got.Kept, "the first two that vary")
	require.Equal(t, []float64{0, 1, 1, 0}, got.Weights)
}
