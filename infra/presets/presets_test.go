package presets_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/presets"
	"github.com/reprise-rl/reprise/workflows/spec"
)

func TestPresetsDecode(t *testing.T) {
	require.Equal(t, []string{"bandit-demo", "bandit-p10", "chaos", "chaos-turns", "frozenlake-learn", "smoke", "sokoban-learn", "starpo-grpo", "starpo-ppo", "starpo-s"}, presets.Names())
	for _, name := range presets.Names() {
		t.Run(name, func(t *testing.T) {
			b, err := presets.Read(name)
			require.NoError(t, err)
			train, err := spec.Decode(b, spec.Known{Environments: []string{"bandit", "frozenlake", "sokoban"}})
			require.NoError(t, err)
			require.NotEmpty(t, train.Description)
			if train.Environment.Name == "bandit" {
				require.Equal(t, 1, train.Rollout.Turns, "a bandit is over after one turn")
			}
			require.Less(t, train.Limits.ActivitySeconds, 60, "the starter's presets are cut fine")
		})
	}
}

func TestControlDiffersInOddsSelectionAndBiasAlone(t *testing.T) {
	read := func(name string) spec.Train {
		b, err := presets.Read(name)
		require.NoError(t, err)
		train, err := spec.Decode(b, spec.Known{})
		require.NoError(t, err)
		return train
	}
	var paths []string
	for _, d := range spec.Diff(read("bandit-demo"), read("bandit-p10")) {
		paths = append(paths, d.Path)
	}
	require.Equal(t, []string{"description", "environment.options.high_probability", "selection.method", "credit.normalize_by_std", "evaluation.suites[0].environment.options.high_probability"}, paths)
}

func TestReadUnknown(t *testing.T) {
	_, err := presets.Read("bandit-p20")
	require.EqualError(t, err, `read preset "bandit-p20": known are bandit-demo, bandit-p10, chaos, chaos-turns, frozenlake-learn, smoke, sokoban-learn, starpo-grpo, starpo-ppo, starpo-s; the nearest is "bandit-p10"`)
	_, err = presets.Read("../presets/smoke")
	require.Error(t, err)
}
