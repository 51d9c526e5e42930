package sokoban

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/model/draw"
	"github.com/reprise-rl/reprise/model/golden"
)

// Every transition of gym-sokoban's.
func TestStepsGolden(t *testing.T) {
	var want []struct {
		Layout []string
		Steps  []struct {
			Action          string
			Grid            []string
			Reward          float64
			Done, Effective bool
		}
	}
	require.NoError(t, json.Unmarshal(golden.Read(t, "envs", "sokoban.json", "testdata"), &want))
	require.NotEmpty(t, want)
	for _, g := range want {
		options, err := json.Marshal(map[string]string{"layout": strings.Join(g.Layout, "\n")})
		require.NoError(t, err)
		env, err := envs.New(Name, options)
		require.NoError(t, err)
		e := env.Reset(draw.Address{}, draw.Address{})
		require.Equal(t, g.Layout, e.(envs.Gridded).Grid())
		for k, s := range g.Steps {
			o := e.Step(s.Action)
			require.Equal(t, s.Grid, e.(envs.Gridded).Grid(), "step %d", k+1)
			require.InDelta(t, s.Reward, o.Reward, 1e-9, "step %d", k+1)
			require.Equal(t, s.Done, o.Done, "step %d", k+1)
			require.Equal(t, s.Effective, o.Effective, "step %d", k+1)
			require.Equal(t, strings.Join(s.Grid, "\n"), e.StateKey())
		}
	}
}
