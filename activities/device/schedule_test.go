package device

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/store/tables"
)

// Settings that the schedule changes count in the iterations that it names, and these are
// repeated and rebuilt as all others: a limit of turns that grows, a distance from the reference
// by turn, and the weight of a part of the reward.
func TestSchedule(t *testing.T) {
	r := exact(t, "rollout.turn_limit=1", `update.kl_in="loss"`, "update.kl_first_turn=0.5", "update.kl_coefficient=0.25",
		`rewards=[{"name":"length","weight":0}]`,
		`schedule=[
			{"field":"rollout.turn_limit","from":1,"value":2},
			{"field":"update.kl_first_turn","from":2,"value":0.125},
			{"field":"rewards.length.weight","from":1,"value":0.5},
			{"field":"update.learning_rate","from":1,"value":0.01,"over":2}]`)
	for i, want := range []struct {
		turns               int
		first, rate, weight float64
	}{{1, 0.5, 0.03, 0}, {2, 0.5, 0.02, 0.5}, {2, 0.125, 0.01, 0.5}} {
		in := r.commits[i]
		require.Len(t, in.Turns, want.turns)
		require.Equal(t, want.first, in.Settings.Update.KL(1))
		require.Equal(t, 0.25, in.Settings.Update.KL(2))
		require.InDelta(t, want.rate, float64(in.Metrics["actor/lr"]), 1e-7)
		parts, err := tables.Get[run.ComponentRow](t.Context(), r.store, *in.Components)
		require.NoError(t, err)
		require.Equal(t, want.weight, parts[0].Weight)
		rows, err := run.SelectedRows(t.Context(), r.store, in.Trajectories)
		require.NoError(t, err)
		longest := 0
		for _, row := range rows {
			longest = max(longest, row.Turns())
		}
		require.Equal(t, want.turns, longest)
	}
}
