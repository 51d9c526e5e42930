package device

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/episode/recorded"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/store/tables"
)

// Settings that the schedule changes count in the iterations that it names, and these are
// repeated and rebuilt as all others: a limit of turns that grows, a distance from the reference
// by turn, and the weight of a part of the reward.
func TestSchedule(t *testing.T) {
	t.Parallel()
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
		parts, err := tables.Get[run.ComponentRow](t.Context(), r.store, *in.Tables.Ref(activities.ComponentsTable))
		require.NoError(t, err)
		require.Equal(t, want.weight, parts[0].Weight)
		rows, err := recorded.Selected(t.Context(), r.store, in.Trajectories)
		require.NoError(t, err)
		longest := 0
		for _, row := range rows {
			longest = max(longest, row.Turns())
		}
		require.Equal(t, want.turns, longest)
	}
}

// SCoRe's two stages on a countdown with a second attempt: the weights of the parts of the reward
// are those of the stage, and so is the distance of the first turn.
func TestSecondAttempt(t *testing.T) {
	t.Parallel()
	r := exact(t, `environment={"name":"countdown","options":{"min_numbers":2,"max_numbers":2,"max_number":9,"max_target":18,"attempts":2}}`,
		`policy.warm_start={"steps":60,"rows":8,"learning_rate":0.005,"demonstrations":1}`, "rollout.max_new_tokens=10", "update.learning_rate=0.001",
		`credit.algorithm="blockwise"`, `update.aggregation="turn_mean"`, `update.kl_in="loss"`, "update.kl_coefficient=0.01", "update.kl_first_turn=0.11",
		`rewards=[{"name":"first_attempt","weight":-1},{"name":"improvement","weight":0}]`,
		`schedule=[{"field":"update.kl_first_turn","from":1,"value":0.01},{"field":"rewards.first_attempt.weight","from":1,"value":0},{"field":"rewards.improvement.weight","from":1,"value":10}]`)
	for i, in := range r.commits {
		rows, err := run.ReadTrajectories(t.Context(), r.store, in.Trajectories, in.Tables.Ref(activities.ComponentsTable))
		require.NoError(t, err)
		two := 0
		for _, row := range rows {
			require.Len(t, row.Rewards, row.Turns())
			if row.Turns() < 2 {
				continue
			}
			two++
			if first, second := row.Rewards[0], row.Rewards[1]; i == 0 {
				require.Equal(t, []float64{-first, 0}, row.Added, "the first attempt earns nothing")
			} else {
				require.InDeltaSlice(t, []float64{0, 10 * (second - first)}, row.Added, 1e-12)
			}
		}
		require.Positive(t, two)
		require.Equal(t, []float64{0.11, 0.01, 0.01}[i], in.Settings.Update.KL(1))
		require.Contains(t, in.Metrics, "attempts/gain")
	}
}
