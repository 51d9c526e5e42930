package iteration

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// The tables of rewards in parts go from Select to Credit and the commit, also in an
// iteration that shares the rollout; the frequent texts go on to the next Select.
func TestRewardsInParts(t *testing.T) {
	sc := everything()
	sc.start.Due, sc.start.Plan.Suites, sc.rows = Due{}, nil, []int{2, 2}
	sc.start.Plan.Freshness = spec.Freshness{Online: 2, Reuse: 1}
	before := activities.Tables{activities.TextsTable.Name: ref("texts before")}
	made := activities.Tables{activities.ComponentsTable.Name: ref("components"), activities.TextsTable.Name: ref("texts")}
	sc.start.Number, sc.start.Head = 1, &activities.Head{Manifest: ref("manifest"), Tables: before}
	seen := map[string]int{}
	run := func(start Start) *Iteration {
		var shared *activities.Rolled
		if start.Head != nil {
			shared = start.Head.Rolled
		}
		it := New(start, Begin(sc.settings, shared))
		for !it.Done() {
			calls, err := it.Ready()
			require.NoError(t, err)
			c := calls[0]
			result := sc.result(c)
			seen[c.Name]++
			switch in := c.Input.(type) {
			case activities.SelectInput:
				require.Equal(t, before, in.Tables)
				out := result.(*activities.SelectResult)
				if !out.More {
					out.Tables = made
				}
			case activities.CreditInput:
				require.Equal(t, made, in.Tables)
			case activities.CommitInput:
				require.Equal(t, made, in.Tables)
			}
			it.Apply(c, result)
		}
		return it
	}
	start := sc.start
	start.Head = run(start).Committed(0)
	require.Equal(t, made.OfNext(), start.Head.Tables)
	require.Equal(t, made.OfRollout(), start.Head.Rolled.Tables)
	start.Number = 2
	next := run(start).Committed(0)
	require.Equal(t, made.OfNext(), next.Tables, "an iteration without a rollout passes them on")
	require.Nil(t, next.Rolled)
	require.Equal(t, 1, seen["Select"])
	require.Equal(t, 2, seen["Credit"])
}

// An iteration that learns from the rollout of the one before it has the settings by which that was
// rolled out, rewarded and selected, whatever a schedule or a knob has changed since.
func TestBeginAfter(t *testing.T) {
	old := spec.Settings{Weights: map[string]float64{"progress": 1}}
	old.Rollout.Temperature, old.Selection.Keep, old.Update.LearningRate = 1, 0.5, 0.1
	now := spec.Settings{Weights: map[string]float64{"progress": 2}}
	now.Rollout.Temperature, now.Selection.Keep, now.Update.LearningRate = 0.7, 0.25, 0.2
	require.Equal(t, now, BeginAfter(nil, now).Settings)
	head := &activities.Head{Settings: old}
	require.Equal(t, now, BeginAfter(head, now).Settings)
	head.Rolled = &activities.Rolled{}
	want := old
	want.Update = now.Update
	s := BeginAfter(head, now)
	require.Equal(t, want, s.Settings)
	require.True(t, s.Rollout.Done)
}
