package iteration

import (
	"slices"
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

// Where other workers sample, the next rollout waits for nothing but what they sample by, which is stored
// before the update. Only the commit waits for it, and its tables are those of a rollout before the update.
func TestLagBesideTheUpdate(t *testing.T) {
	run := func(beside bool, late func(c Call) bool) (activities.CommitInput, []string) {
		sc := everything()
		sc.start.Plan.Lag, sc.start.Plan.Iterations, sc.start.Due = 1, 3, Due{}
		sc.start.Plan.Rows, sc.start.Plan.Workers, sc.start.Plan.BlockRows, sc.start.Plan.Beside = 16, 2, 8, beside
		sc.start.NextSettings = sc.start.Plan.NextSettings(sc.settings, 0)
		it := New(sc.start, Begin(sc.settings, nil))
		var names []string
		for !it.Done() {
			calls, err := it.Ready()
			require.NoError(t, err)
			c := calls[0]
			for _, other := range calls {
				if late(c) && !late(other) {
					c = other
				}
			}
			if in, ok := c.Input.(activities.CommitInput); ok {
				return in, names
			}
			if c.Beside {
				require.Contains(t, []string{"Block", "Join", "Step"}, c.Name)
			}
			names = append(names, c.Name)
			it.Apply(c, sc.result(c))
		}
		return activities.CommitInput{}, nil
	}
	early, first := run(true, func(Call) bool { return false })
	last, second := run(true, func(c Call) bool { return c.Beside })
	require.Equal(t, early, last)
	require.Less(t, slices.Index(first, "Join"), slices.Index(first, "Update"))
	require.Less(t, slices.Index(second, "Update"), slices.Index(second, "Join"))
	require.Equal(t, 1, slices.Index(second, "Block")-slices.Index(second, "Publish"), "the iteration's own rollout")
	before, _ := run(false, func(Call) bool { return false })
	require.Len(t, before.NextRollout.Turns, len(early.NextRollout.Turns))

	// Later iterations have their rollout, and publish for the next one alone.
	sc := everything()
	sc.start.Plan.Lag, sc.start.Plan.Iterations, sc.start.Due, sc.start.Number = 1, 3, Due{}, 1
	sc.start.Plan.Rows, sc.start.Plan.Workers, sc.start.Plan.BlockRows, sc.start.Plan.Beside = 16, 2, 8, true
	sc.start.NextSettings = sc.start.Plan.NextSettings(sc.settings, 1)
	sc.start.Head = &activities.Head{NextRollout: early.NextRollout}
	it := New(sc.start, BeginAfter(sc.start.Head, sc.settings))
	for it.State.Published == nil {
		calls, err := it.Ready()
		require.NoError(t, err)
		for _, c := range calls {
			require.NotEqual(t, "Update", c.Name)
		}
		it.Apply(calls[0], sc.result(calls[0]))
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
