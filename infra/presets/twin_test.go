package presets_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities/device"
	"github.com/reprise-rl/reprise/infra/plugin/plugintest"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/workers/train"
	"github.com/reprise-rl/reprise/workflows/sweep"
)

// The smallest twin runs: a trial of each setting by the smallest starter, cut to two
// iterations and a short warm start. Each ends with weights of its own: what is varied
// acts. The clip does only where an iteration's first steps went far, so they are made
// to: the learning rate is raised.
func TestTwinRuns(t *testing.T) {
	plugintest.Needs(t)
	opened, err := model.OpenDevice(model.DeviceOptions{XLAFlags: model.QuickCompile})
	require.NoError(t, err)
	defer opened.Close()
	engine, err := device.NewEngine(opened)
	require.NoError(t, err)
	local := train.New(engine, store.NewMemory())
	_, trials, _ := expand(t, "fig8-shaping"+twin)
	ends := map[string]string{}
	for _, trial := range trials {
		if trial.Seed != trials[0].Seed {
			continue
		}
		for path, value := range map[string]any{
			"iterations": 2, "snapshot.every": 2, "evaluation.every": 2, "evaluation.instances": 8,
			"policy.warm_start.steps": 4, "update.learning_rate": 0.02,
			"policy.starter": map[string]any{"layers": 1, "hidden_size": 32, "intermediate_size": 96, "heads": 2, "kv_heads": 1},
		} {
			trial, err = trial.With(path, value)
			require.NoError(t, err)
		}
		trained, err := local.Train(t.Context(), sweep.ID("fig8", trial.Label), trial.Spec)
		require.NoError(t, err, trial.Label)
		require.Len(t, trained.Iterations, 2)
		for setting, state := range ends {
			require.NotEqual(t, state, trained.State, "%s and %s", setting, trial.Setting)
		}
		ends[trial.Setting] = trained.State
	}
	require.Len(t, ends, 3)
}
