package run

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs/judge"
	"github.com/reprise-rl/reprise/envs/rewards"
	"github.com/reprise-rl/reprise/model/cost"
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
	require.True(t, judge.IsModel("hf:a/b"))
	digest := strings.Repeat("0a", 32)
	train := spec.Train{Rewards: []spec.Reward{{Name: "length"}, {Name: spec.Judge, Options: json.RawMessage(`{"judge":"run:a@3","max_tokens":7,"prompt":"<b>{conversation} {form}"}`)}}}
	train.Rollout.Groups, train.Rollout.GroupSize = 3, 4
	require.Equal(t, &spec.OwnJudge{PromptTokens: 1024, MaxTokens: 7, Model: &spec.Frozen{From: "run:a@3"}}, train.OwnJudge())
	require.Equal(t, 12, train.Questions())
	shape := cost.Network{Layers: 3}
	with := train.WithJudgeModel(spec.Frozen{From: "run:a@3", Model: digest, Network: &shape})
	require.Equal(t, &spec.Frozen{From: "run:a@3", Model: digest, Network: &shape}, with.JudgeModel())
	require.Equal(t, `{"judge":"run:a@3","max_tokens":7,"model":"`+digest+`","prompt":"<b>{conversation} {form}"}`, string(with.Rewards[1].Options))
	require.Empty(t, train.JudgeModel().Model, "the other spec is as it was")
	m, problems, err := rewards.New(spec.Judge, with.Rewards[1].Options)
	require.NoError(t, err)
	require.Empty(t, problems)
	require.True(t, m.Judge.Form.Own())
	require.Equal(t, digest, m.Judge.Form.Model)
	require.Equal(t, spec.Train{}, spec.Train{}.WithJudgeModel(spec.Frozen{Model: digest}))

	for _, options := range []string{`{"judge":"grader","model":"m"}`, `{"name":"run"}`, `1`} {
		train := spec.Train{Rewards: []spec.Reward{{Name: spec.Judge, Options: json.RawMessage(options)}}}
		require.Nil(t, train.OwnJudge(), options)
		require.Nil(t, train.JudgeModel(), options)
		require.Zero(t, train.Questions(), fmt.Sprint(options))
	}
}

// A judge that is a model is named as a teacher is; what names none is refused where it stands.
func TestJudgesThatAreNoModels(t *testing.T) {
	decode := func(options string) error {
		_, err := spec.Decode([]byte(`{"environment":{"name":"bandit"},"rewards":[{"name":"judge","options":`+options+`}]}`), Known())
		return err
	}
	for _, options := range []string{
		`{"judge":"hf:Qwen/Qwen2.5-3B@main"}`, `{"judge":"folder:/m"}`, `{"judge":"model:0123456789ab"}`, `{"judge":"run:a"}`,
		`{"judge":"run:a@0","model":"` + strings.Repeat("0a", 32) + `","level":"turn"}`,
	} {
		require.NoError(t, decode(options), options)
	}
	for options, want := range map[string]string{
		`{"judge":"hf:"}`:                        `rewards[0].options.judge: found "hf:"; allowed: the NAME of a server, run, or a model: "hf:NAME"`,
		`{"judge":"fh:Qwen/Qwen2.5-3B"}`:         `nothing is known about "fh:"`,
		`{"judge":"http://127.0.0.1:8000"}`:      `rewards[0].options.judge: found "http://127.0.0.1:8000"`,
		`{"judge":"model:xyz"}`:                  `"xyz" is not 12 hex digits in lower case`,
		`{"judge":"run:a@-1"}`:                   `"-1" is no version`,
		`{"judge":"run:@3"}`:                     `"" is no run's id`,
		`{"judge":"Qwen/Qwen2.5-3B"}`:            `run; or a model, as "hf:NAME"`,
		`{"judge":"hf:a/b","model":"first"}`:     "rewards[0].options.model",
		`{"judge":"hf:a/b","temperature":0.5}`:   "rewards[0].options.temperature",
		`{"judge":"hf:a/b","prompt_tokens":15}`:  "rewards[0].options.prompt_tokens",
		`{"judge":"run","model":"hf:a/b"}`:       "first or current, with the judge run",
		`{"judge":"folder:","components":"a 1"}`: "rewards[0].options.criteria",
	} {
		require.ErrorContains(t, decode(options), want, options)
	}
}
