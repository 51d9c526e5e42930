package spec

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// The knobs of other settings are taken over, whatever they are, and nothing that is fixed for a run.
func TestWithKnobs(t *testing.T) {
	now := Settings{Rollout: RolloutSettings{Groups: 4, GroupSize: 4, Temperature: 1}, Update: Update{LearningRate: 1e-3, MicroBatch: 4}}
	before := now
	of, err := now.Apply(Change{Path: "update.learning_rate", Value: json.RawMessage(`0.5`)}, Change{Path: "rollout.temperature", Value: json.RawMessage(`0.7`)})
	require.NoError(t, err)
	of.Update.MicroBatch, of.Weights = 2, map[string]float64{"format": 1}
	got := now.WithKnobs(of)
	require.Equal(t, 0.5, got.Update.LearningRate)
	require.Equal(t, 0.7, got.Rollout.Temperature)
	require.Equal(t, of.Weights, got.Weights)
	require.Equal(t, 4, got.Update.MicroBatch, "it is compiled into the programs")
	require.Equal(t, before, now)
	require.Empty(t, got.WithKnobs(now).Diff(before), "all of them go back")
}
