package spec

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// A field has its value from the spec until its first entry, goes to that of an entry in equal
// parts, and keeps it; what no entry names stays as it is.
func TestSettingsAt(t *testing.T) {
	train, err := Decode([]byte(`{"environment":{"name":"bandit"},"iterations":20,
		"rollout":{"turns":6,"turn_limit":2},"update":{"learning_rate":0.5},"rewards":[{"name":"progress","weight":2},{"name":"length"}],
		"schedule":[
			{"field":"update.learning_rate","from":4,"value":0.1,"over":4},
			{"field":"rollout.turn_limit","from":0,"value":6,"over":8},
			{"field":"rewards.progress.weight","from":10,"value":-1},
			{"field":"update.learning_rate","from":8,"value":1}]}`), Known{})
	require.NoError(t, err)
	base := SettingsOf(train)
	require.Equal(t, map[string]float64{"progress": 2}, base.Weights)
	for iteration, want := range map[int]struct {
		rate, weight float64
		turns        int
	}{
		0: {0.5, 2, 3}, 3: {0.5, 2, 4}, 4: {0.4, 2, 5}, 5: {0.3, 2, 5}, 7: {0.1, 2, 6}, 8: {1, 2, 6}, 9: {1, 2, 6}, 10: {1, -1, 6}, 19: {1, -1, 6},
	} {
		now := base
		now.Update.EntropyCoefficient = 0.25 // changed by a knob
		s := SettingsAt(train.Schedule, base, now, iteration)
		what := fmt.Sprintf("iteration %d", iteration)
		require.InDelta(t, want.rate, s.Update.LearningRate, 1e-12, what)
		require.Equal(t, want.turns, s.Rollout.Limit(6), what)
		require.Equal(t, want.weight, s.Weight(train.Rewards[0]), what)
		require.Equal(t, 1.0, s.Weight(train.Rewards[1]), what)
		require.Equal(t, 0.25, s.Update.EntropyCoefficient, what)
		// It does not matter what the fields of the schedule were before.
		require.Equal(t, s, SettingsAt(train.Schedule, base, SettingsAt(train.Schedule, base, now, max(iteration-1, 0)), iteration), what)
	}
	require.Equal(t, map[string]float64{"progress": 2}, base.Weights, "it is not written to")
	require.Equal(t, base, SettingsAt(nil, base, base, 3))
	require.True(t, SetBySchedule(train.Schedule, "rollout.turn_limit"))
	require.False(t, SetBySchedule(train.Schedule, "update.clip_low"))
	require.Equal(t, 5, RolloutSettings{}.Limit(5))
}

// A way of integers is rounded to the nearest.
func TestScheduledIntegers(t *testing.T) {
	base := Settings{Rollout: RolloutSettings{TurnLimit: 1}}
	var limits []int
	for n := range 6 {
		limits = append(limits, SettingsAt([]Scheduled{{Field: "rollout.turn_limit", From: 1, Value: 4, Over: 4}}, base, base, n).Rollout.TurnLimit)
	}
	require.Equal(t, []int{1, 2, 3, 3, 4, 4}, limits)
}
