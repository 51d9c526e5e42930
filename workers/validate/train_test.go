package validate

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities/device"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// A spec whose reward asks a language model says which worker it needs.
func TestModelJudgeIsNoted(t *testing.T) {
	v, err := CheckTrain([]byte(`{"iterations": 1, "seed": 1, `+bandit+`, "policy": {"from": "starter"}, "rewards": [{"name": "judge", "options": {"judge": "grader", "model": "m"}}]}`), Machine{}, nil)
	require.NoError(t, err)
	require.True(t, v.Sound(), "%v", v)
	require.Contains(t, v.Notes, "The reward judge asks a language model: the run waits for a worker with --judge grader=URL.")
	v, err = CheckTrain([]byte(`{"iterations": 1, "seed": 1, `+bandit+`, "policy": {"from": "starter"}, "rewards": [{"name": "judge"}]}`), Machine{}, nil)
	require.NoError(t, err)
	require.False(t, v.Sound())
}

// A run whose rows are wider than the model's positions is warned of.
func TestWiderThanTheModelIsNoted(t *testing.T) {
	check := func(tokens int) []string {
		v, err := CheckTrain(fmt.Appendf(nil, `{"iterations": 1, "seed": 1, %s, "policy": {"from": %q},
			"rollout": {"turns": 1, "protocol": "reprise", "prompt_tokens": [100], "max_new_tokens": %d}}`, bandit, folderOf(t, 1), tokens), Machine{}, nil)
		require.NoError(t, err)
		require.True(t, v.Sound(), "%v", v)
		return v.Notes
	}
	of := device.StarterConfig(spec.Starter{Layers: 1, HiddenSize: 16, Heads: 2, KVHeads: 2, Tokenizer: 1})
	wide := fmt.Sprintf("Warning: rows are %d tokens wide, and the model knows %d positions", of.MaxPositions+1, of.MaxPositions)
	has := func(notes []string) bool {
		return slices.ContainsFunc(notes, func(note string) bool { return strings.HasPrefix(note, wide) })
	}
	require.False(t, has(check(of.MaxPositions-100)))
	require.True(t, has(check(of.MaxPositions-99)))
}
