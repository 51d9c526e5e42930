package presets_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/presets"
	"github.com/reprise-rl/reprise/infra/presets/presetstest"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// Every preset's environments show no wider observation than their Cases, in any of the
// random episodes that the start of a run plays.
func TestPresetsHaveWidths(t *testing.T) {
	for _, name := range slices.DeleteFunc(presetstest.Names(), isSweep) {
		b, err := presets.Read(name)
		require.NoError(t, err)
		train, err := spec.Decode(b, run.Known())
		require.NoError(t, err)
		train, err = run.WithWidths(train, nil)
		require.NoError(t, err, name)
		require.NotEmpty(t, train.Rollout.PromptTokens)
	}
}
