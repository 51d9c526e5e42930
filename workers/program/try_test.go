package program

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/plugin/plugintest"
	"github.com/reprise-rl/reprise/workers/train"
)

// The command prints a trial without and with the warm start, for people and as one object.
func TestPolicyTry(t *testing.T) {
	plugintest.Needs(t)
	const text = `{"policy":{"starter":{"layers":1,"hidden_size":32,"intermediate_size":64,"heads":2,"kv_heads":1},"warm_start":{"steps":2,"rows":4}},
		"environment":{"name":"bandit"},"rollout":{"turns":1,"groups":2,"group_size":4,"max_new_tokens":8,"think":false},"selection":{"method":"all"},"update":{"micro_batch":4}}`
	out, progress, err := execute(tryCommand(), text, "-", "--json")
	require.NoError(t, err)
	var got struct{ Tried []train.Tried }
	require.NoError(t, json.Unmarshal([]byte(out), &got))
	require.Len(t, got.Tried, 2)
	require.Equal(t, 8, got.Tried[0].Trajectories)
	require.Equal(t, 2, got.Tried[1].WarmStart)
	require.Contains(t, progress, "warm start: 0 of 2 steps are done")
	require.Contains(t, progress, "warm start: 1 of 2 steps are done")

	out, _, err = execute(tryCommand(), text, "-", "--groups", "1", "--without-warm-start")
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(out, "without a warm start: 4 trajectories of 1 groups"), out)
	require.Equal(t, 3, strings.Count(out, "tokens, actions:"))
	require.NotContains(t, out, "after a warm start")

	_, _, err = execute(tryCommand(), `{"environment":{"name":"bandits"}}`, "-")
	require.ErrorContains(t, err, "environment.name")
	_, _, err = execute(tryCommand(), text, "-", "--groups", "0")
	require.ErrorContains(t, err, "--groups is 0")
}
