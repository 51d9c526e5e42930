package spec_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A run that judges itself holds version 0 beside the policy, unless the current version judges, and its questions count
// among what it generates.
func TestJobOfOwnJudge(t *testing.T) {
	document := func(options string) string {
		return `{"environment":{"name":"bandit"},"rollout":{"turns":2,"prompt_tokens":[64,128],"max_new_tokens":32},"rewards":[{"name":"judge","options":` + options + `}]}`
	}
	plain := decode(t, document(`{"judge":"grader"}`)).Job(qwen)
	first := decode(t, document(`{"judge":"run","prompt_tokens":900,"max_tokens":100}`)).Job(qwen)
	current := decode(t, document(`{"judge":"run","model":"current"}`)).Job(qwen)
	require.False(t, plain.Judges)
	require.True(t, first.Judges)
	require.False(t, current.Judges)
	require.EqualValues(t, 128, plain.Rollout.Pass.Prompt)
	require.EqualValues(t, []int64{900, 100}, []int64{first.Rollout.Pass.Prompt, first.Rollout.Pass.Fresh})
	require.EqualValues(t, []int64{1024, 512}, []int64{current.Rollout.Pass.Prompt, current.Rollout.Pass.Fresh})
	require.Greater(t, first.Peak(1), plain.Peak(1)+qwen.Parameters()*4)
	require.Equal(t, plain.Scored(), first.Scored(), "it scores no rows")
}
