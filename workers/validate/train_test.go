package validate

import (
	"testing"

	"github.com/stretchr/testify/require"
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
