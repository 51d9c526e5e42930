package iteration

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/store"
)

// With a lag, an iteration makes the next one's rollout by the version that it updates, before the
// update. The first iteration makes two rollouts, and the last one none.
func TestLag(t *testing.T) {
	sc := everything()
	sc.start.Plan.Lag, sc.start.Plan.Iterations, sc.start.Due = 1, 3, Due{}
	start := sc.start
	for n := range 3 {
		start.Number, start.NextSettings = n, start.Plan.NextSettings(sc.settings, n)
		it := New(start, BeginAfter(start.Head, sc.settings))
		var sampled, updated []activities.Version
		var of []int
		in, err := it.ToCommit(func(c Call) (any, error) {
			switch in := c.Input.(type) {
			case activities.GenerateInput:
				require.Empty(t, updated, "samples come before the update")
				if in.Turn == 1 {
					sampled, of = append(sampled, in.Policy), append(of, in.Rollout.Iteration)
				}
			case activities.SelectInput:
				require.Equal(t, n, in.Rollout.Iteration)
			case activities.ScoreInput:
				require.Equal(t, n, in.Policy.Version)
			case activities.UpdateInput:
				updated = append(updated, in.Policy)
			}
			return sc.result(c), nil
		})
		require.NoError(t, err)
		require.Equal(t, [][]int{{0, 1}, {2}, nil}[n], of)
		for _, v := range sampled {
			require.Equal(t, activities.Version{Run: start.Run, Version: n, State: start.Policy}, v)
		}
		require.Len(t, updated, 1)
		if n > 0 {
			require.Equal(t, &store.VersionRef{Version: n - 1, State: start.Head.NextRollout.By.State}, in.RolledOutBy)
			require.Equal(t, start.Head.NextRollout.Turns, in.Turns)
		} else {
			require.Nil(t, in.RolledOutBy)
		}
		if n == 2 {
			require.Nil(t, in.NextRollout)
			continue
		}
		require.Equal(t, store.VersionRef{Version: n, State: start.Policy}, in.NextRollout.By)
		require.NoError(t, it.Commit(activities.CommitResult{Manifest: ref("manifest", n)}))
		require.Nil(t, it.Ahead(sc.settings), "the next iteration has its samples")
		start.Head, start.Policy = it.Committed(0), in.StateAfter
		require.Equal(t, in.NextRollout, start.Head.NextRollout)
	}
}

// A run that has sampled its tokens makes no rollout for an iteration that does not follow.
func TestNoLagAfterTheLast(t *testing.T) {
	for stop, next := range map[int]bool{1: false, 2: true} {
		sc := everything()
		sc.start.Plan.Lag, sc.start.Plan.Iterations, sc.start.Plan.StopTokens = 1, 3, stop
		sc.start.NextSettings = sc.start.Plan.NextSettings(sc.settings, 0)
		sc.start.Previous = activities.Metrics{activities.TotalSampledTokens: 1}
		in, err := New(sc.start, Begin(sc.settings, nil)).ToCommit(func(c Call) (any, error) { return sc.result(c), nil })
		require.NoError(t, err)
		require.Equal(t, next, in.NextRollout != nil, "after %d tokens", stop)
	}
}
