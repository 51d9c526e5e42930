package frozenlake

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/model/draw"
	"github.com/reprise-rl/reprise/model/golden"
)

// Gymnasium's tables to 1e-6.
func TestTransitionsGolden(t *testing.T) {
	var want []struct {
		Desc        []string
		Slippery    bool
		SuccessRate float64 `json:"success_rate"`
		Actions     []string
		P           map[string]map[string][][4]any
	}
	require.NoError(t, json.Unmarshal(golden.Read(t, "envs", "frozenlake.json", "testdata"), &want))
	require.NotEmpty(t, want)
	for _, g := range want {
		options, err := json.Marshal(map[string]any{"layout": strings.Join(g.Desc, "\n"), "slippery": g.Slippery, "success_rate": g.SuccessRate})
		require.NoError(t, err)
		env, err := envs.New(Name, options)
		require.NoError(t, err)
		require.Equal(t, g.Actions, env.Actions())
		encoded, err := json.Marshal(env.Reset(draw.Address{}, draw.Address{}).(envs.Tabular).Transitions())
		require.NoError(t, err)
		var got struct {
			P map[string]map[string][][4]any
		}
		require.NoError(t, json.Unmarshal(encoded, &got))
		require.Len(t, got.P, len(g.P))
		for state, actions := range g.P {
			require.Len(t, got.P[state], len(actions))
			for action, outcomes := range actions {
				at := fmt.Sprintf("%v state %s action %s", g.Desc, state, action)
				require.Len(t, got.P[state][action], len(outcomes), at)
				for k, o := range outcomes {
					mine := got.P[state][action][k]
					require.InDelta(t, o[0], mine[0], 1e-6, at)
					require.Equal(t, o[1:], mine[1:], at)
				}
			}
		}
	}
}
