package frozenlake

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
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
	require.NoError(t, json.Unmarshal(readGolden(t, "frozenlake.json"), &want))
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

// readGolden reads a golden of environments: from the folder of other goldens as
// it is, from testdata compressed.
func readGolden(t *testing.T, name string) []byte {
	t.Helper()
	dir := golden.Folder(t, "envs", name, "testdata")
	content, err := os.ReadFile(filepath.Join(dir, name))
	if !errors.Is(err, fs.ErrNotExist) {
		require.NoError(t, err)
		return content
	}
	f, err := os.Open(filepath.Join(dir, name+".gz"))
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	content, err = io.ReadAll(z)
	require.NoError(t, err)
	return content
}
