package all

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/bandit"
	"github.com/reprise-rl/reprise/envs/countdown"
	"github.com/reprise-rl/reprise/envs/frozenlake"
	"github.com/reprise-rl/reprise/envs/mathqa"
	"github.com/reprise-rl/reprise/envs/sokoban"
)

// What an environment says of itself is what its options are, each with its default.
func TestDescriptionsNameEveryOption(t *testing.T) {
	all := map[string]any{
		bandit.Name: bandit.Defaults, countdown.Name: countdown.Defaults, frozenlake.Name: frozenlake.Defaults,
		mathqa.Name: mathqa.Defaults, sokoban.Name: sokoban.Defaults,
	}
	require.Len(t, all, len(envs.Names()))
	for _, name := range envs.Names() {
		t.Run(name, func(t *testing.T) {
			require.Contains(t, all, name)
			encoded, err := json.Marshal(all[name])
			require.NoError(t, err)
			var defaults map[string]any
			require.NoError(t, json.Unmarshal(encoded, &defaults))
			env, err := envs.New(name, nil)
			require.NoError(t, err)
			d := env.Describe()
			require.Equal(t, name, d.Name)
			require.NotEmpty(t, d.Summary)
			require.Len(t, d.Options, len(defaults))
			for _, o := range d.Options {
				require.EqualValues(t, defaults[o.Name], o.Default, o.Name)
				require.NotEmpty(t, o.Doc)
			}
		})
	}
}
