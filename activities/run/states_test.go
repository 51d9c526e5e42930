package run

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/tables"
	"github.com/reprise-rl/reprise/model/credit"
	"github.com/reprise-rl/reprise/model/methods/methodstest"
	"github.com/reprise-rl/reprise/model/option"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// The values of initial states are those before the iteration; what is stored has its trajectories too, of all rounds,
// selected or not, once each.
func TestObserveStates(t *testing.T) {
	methodstest.Needs(t, "state_baseline", "grpo")
	s := store.NewMemory()
	row := func(key string, selected bool, rewards ...float64) episode.TrajectoryRow {
		return episode.TrajectoryRow{StateKeys: []string{key, "later"}, PromptLengths: make([]int32, len(rewards)), Rewards: rewards, Penalties: make([]float64, len(rewards)), Selected: selected}
	}
	rows := []episode.TrajectoryRow{row("b", true, 1, 3), row("a", false, 2), row("b", false, 10), {StateKeys: []string{"a"}, Dropped: true}, row("c", true, -1)}
	rows[0].Penalties[1], rows[4].Added = -.5, []float64{7}
	in := activities.CreditInput{Settings: spec.Settings{Credit: spec.Credit{Algorithm: "state_baseline"}}}
	observe := func(dir string, rows []episode.TrajectoryRow) ([]credit.StateValue, *store.Ref, error) {
		after := activities.Tables{}
		past, err := ObserveStates(t.Context(), s, in, dir, rows, nil, after)
		return past, after.Ref(activities.StatesTable), err
	}
	past, ref, err := observe("runs/r/1", rows)
	require.NoError(t, err)
	require.Nil(t, past)
	got, err := tables.Get[StateValueRow](t.Context(), s, *ref)
	require.NoError(t, err)
	require.Equal(t, []StateValueRow{{"a", 1, 2}, {"b", 2, 6.75}, {"c", 1, 6}}, got)

	// The next iteration begins with these, and older returns fade.
	in.Tables, in.Settings.Credit.BaselineRate = activities.Tables{activities.StatesTable.Name: *ref}, .5
	past, next, err := observe("runs/r/2", rows[:1])
	require.NoError(t, err)
	require.Equal(t, []credit.StateValue{{Key: "a", Count: 1, Value: 2}, {Key: "b", Count: 2, Value: 6.75}, {Key: "c", Count: 1, Value: 6}}, past)
	got, err = tables.Get[StateValueRow](t.Context(), s, *next)
	require.NoError(t, err)
	require.Equal(t, []StateValueRow{{"a", 1, 2}, {"b", 3, (6.75 + 3.5) / 2}, {"c", 1, 6}}, got)
	for range repeats {
		_, again, err := observe("runs/r/2", rows[:1])
		require.NoError(t, err)
		require.Equal(t, next, again)
	}

	// A rollout that has been learned from already is not observed again; its first update is.
	in.Rollout = &store.RolloutRef{Update: 1, Updates: 2}
	past, same, err := observe("runs/r/3", rows)
	require.NoError(t, err)
	require.Len(t, past, 3)
	require.Nil(t, same, "the table before stays")
	in.Rollout = &store.RolloutRef{Update: 0, Updates: 2}
	_, again, err := observe("runs/r/2", rows[:1])
	require.NoError(t, err)
	require.Equal(t, next, again)

	in.Settings.Credit.BaselineRate = 2
	_, _, err = observe("runs/r/3", rows)
	require.ErrorIs(t, err, store.ErrInvalid)
	in.Tables = activities.Tables{activities.StatesTable.Name: {Key: "runs/r/nothing", Digest: ref.Digest, Size: 1}}
	_, _, err = observe("runs/r/3", rows)
	require.ErrorContains(t, err, "states: ")
	in.Settings.Credit.Algorithm = "grpo"
	past, ref, err = observe("runs/r/3", rows)
	require.NoError(t, err, "it does not read them")
	require.Nil(t, past)
	require.Nil(t, ref)
}

// Baselines of roles are kept in the same table, by role: each trajectory moves those of the roles that acted in it.
func TestObserveRoles(t *testing.T) {
	methodstest.Needs(t, "rae")
	s := store.NewMemory()
	row := func(row int32, rewards ...float64) episode.TrajectoryRow {
		n := len(rewards)
		return episode.TrajectoryRow{Row: row, StateKeys: make([]string, n+1), PromptLengths: make([]int32, n), Rewards: rewards, Penalties: make([]float64, n)}
	}
	rows := []episode.TrajectoryRow{row(0, 1, 1), {Row: 1, Dropped: true}, row(2, 4)}
	agents := []AgentRow{{0, 0, "walker"}, {0, 1, "guide"}, {2, 0, "guide"}}
	in := activities.CreditInput{Settings: spec.Settings{Credit: spec.Credit{Algorithm: "rae", Own: option.Values{"baseline_decay": 0.5}}}}
	after := activities.Tables{}
	past, err := ObserveStates(t.Context(), s, in, "runs/r/1", rows, agents, after)
	require.NoError(t, err)
	require.Nil(t, past)
	got, err := tables.Get[StateValueRow](t.Context(), s, *after.Ref(activities.StatesTable))
	require.NoError(t, err)
	require.Equal(t, []StateValueRow{{"guide", 2, 2.5}, {"walker", 1, 1}}, got)

	in.Tables = after
	past, err = ObserveStates(t.Context(), s, in, "runs/r/2", rows[:1], agents, activities.Tables{})
	require.NoError(t, err)
	require.Equal(t, []credit.StateValue{{Key: "guide", Count: 2, Value: 2.5}, {Key: "walker", Count: 1, Value: 1}}, past)
}
