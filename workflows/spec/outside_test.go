package spec_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/cost"
	"github.com/reprise-rl/reprise/workflows/spec"
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

// A model that judges is held in the compute dtype beside the policy, its replies have keys and values of its own, and they are
// no pass of the policy's.
func TestJobOfAModelThatJudges(t *testing.T) {
	document := func(rewards string) spec.Train {
		return decode(t, `{"environment":{"name":"bandit"},"policy":{"from":"hf:Qwen/Qwen2.5-0.5B"},
			"rollout":{"turns":2,"prompt_tokens":[64,128],"max_new_tokens":32}`+rewards+`}`)
	}
	plain := document("")
	train := document(`,"rewards":[{"name":"judge","options":{"judge":"hf:Qwen/Qwen2.5-7B","prompt_tokens":900,"max_tokens":100}}]`)
	require.Zero(t, spec.Derive(train, qwen).Memory.Judge, "its shape is not known")
	seven := cost.Network{Layers: 28, HiddenSize: 3584, IntermediateSize: 18944, Heads: 28, KVHeads: 4, HeadDim: 128, VocabSize: 152064}
	train = train.WithJudgeModel(spec.Frozen{Network: &seven})
	require.Empty(t, train.JudgeModel().Model)
	job := train.Job(qwen)
	require.False(t, job.Judges, "no version of the policy judges")
	require.EqualValues(t, 128, job.Rollout.Pass.Prompt)
	require.Equal(t, cost.Pass{Rows: int64(train.Rollout.Pass()), Prompt: 900, Fresh: 100}, job.Judge.Pass)

	without, with := spec.Derive(plain, qwen), spec.Derive(train, qwen)
	require.Equal(t, int64(15_231), with.Memory.Judge/1_000_000, "7.6 B parameters of 2 bytes, but norms and biases")
	require.Equal(t, 2*28*job.Judge.Pass.Rows*1000*2*4*128, with.Memory.JudgeCache)
	require.GreaterOrEqual(t, with.Memory.Peak, without.Memory.Peak+with.Memory.Judge)
	require.Equal(t, without.Memory.KVCache, with.Memory.KVCache)
	require.Equal(t, without.Storage, with.Storage)
	require.Contains(t, with.String(), "device: judge")
	require.NotContains(t, without.String(), "device: judge")
	names := map[string]int64{}
	for _, p := range job.Programs(1) {
		names[p.Name] = p.Peak()
	}
	require.Contains(t, names, "judge-prefill")
	require.Greater(t, names["judge-decode"], with.Memory.Judge+with.Memory.JudgeCache)
	require.GreaterOrEqual(t, spec.DevicesOf(train, qwen, 2).Others.Peak, with.Memory.Judge, "each device has it")

	// A judge whose tokens cost more makes the pieces of generation smaller.
	unsized := train.WithJudgeModel(spec.Frozen{})
	unsized.Limits.ActivitySeconds, train.Limits.ActivitySeconds = 3600, 3600
	small, large := train.WithSizes(qwen, nil).Limits.GenerateRows, unsized.WithSizes(qwen, nil).Limits.GenerateRows
	require.Positive(t, small)
	require.True(t, large == 0 || small < large, "%d and %d rows", small, large)
	text, err := train.JSON()
	require.NoError(t, err)
	require.NotContains(t, string(text), "Network")
}
