package presets_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/presets"
	"github.com/reprise-rl/reprise/workflows/spec"
)

func TestPresetWithReplacesFieldByField(t *testing.T) {
	text, err := presets.With("bandit-demo", map[string]any{"update": map[string]any{"learning_rate": 1e-5}, "snapshot": map[string]any{"every": 3}})
	require.NoError(t, err)
	s, err := spec.Decode(text, run.Known())
	require.NoError(t, err)
	require.Equal(t, 1e-5, s.Update.LearningRate)
	require.Equal(t, 16, s.Update.MicroBatch, "what is not replaced stays")
	require.Equal(t, 3, s.Snapshot.Every)
	text, err = presets.With("smol-lookup", map[string]any{"environment": map[string]any{"tools": nil, "tool_calls": nil, "calls_per_turn": nil, "result_tokens": nil}})
	require.NoError(t, err)
	s, err = spec.Decode(text, run.Known())
	require.NoError(t, err)
	require.Empty(t, s.Environment.Tools, "nil leaves a field out")
	require.Contains(t, string(s.Environment.Options), "full")
	_, err = presets.With("nothing", nil)
	require.ErrorContains(t, err, `read preset "nothing"`)
}
