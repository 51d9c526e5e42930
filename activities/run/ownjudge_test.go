package run

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs/rewards"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// The spec reads of a judge that is the run's own engine what the reward reads, defaults included.
func TestOwnJudgeOfSpec(t *testing.T) {
	for _, options := range []string{
		`{"judge":"run"}`, `{"judge":"run","model":"current","level":"turn","prompt_tokens":99,"max_tokens":7}`,
		`{"judge":"run","model":"first","level":"episode"}`,
	} {
		m, problems, err := rewards.New(spec.Judge, json.RawMessage(options))
		require.NoError(t, err)
		require.Empty(t, problems)
		f := m.Judge.Form
		train := spec.Train{Rewards: []spec.Reward{{Name: "length"}, {Name: spec.Judge, Options: json.RawMessage(options)}}}
		train.Rollout.Groups, train.Rollout.GroupSize, train.Rollout.Turns = 3, 4, 5
		require.Equal(t, &spec.OwnJudge{PromptTokens: f.PromptTokens, MaxTokens: f.MaxTokens, ByTurn: f.ByTurn, Current: f.Model == "current"}, train.OwnJudge(), options)
		require.Equal(t, map[bool]int{false: 12, true: 60}[f.ByTurn], train.Questions())
		require.True(t, train.Judged())
	}
	for _, options := range []string{`{"judge":"grader","model":"m"}`, `{"name":"run"}`, `1`} {
		train := spec.Train{Rewards: []spec.Reward{{Name: spec.Judge, Options: json.RawMessage(options)}}}
		require.Nil(t, train.OwnJudge(), options)
		require.Zero(t, train.Questions(), fmt.Sprint(options))
	}
}
