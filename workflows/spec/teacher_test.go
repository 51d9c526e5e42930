package spec_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/cost"
	"github.com/reprise-rl/reprise/model/methods/methodstest"
	"github.com/reprise-rl/reprise/workflows/spec"
)

func TestTeacherOrigins(t *testing.T) {
	for from, want := range map[string]spec.Origin{
		"hf:Qwen/Qwen2.5-3B@main": {Kind: spec.OriginHub, Name: "Qwen/Qwen2.5-3B", Revision: "main"},
		"folder:/m":               {Kind: spec.OriginFolder, Name: "/m"},
		"model:0123456789ab":      {Kind: spec.OriginModel, Name: "0123456789ab"},
		"run:a@12":                {Kind: spec.OriginRun, Name: "a", Version: 12},
		"run:a@b@0":               {Kind: spec.OriginRun, Name: "a@b"},
		"run:a/b c":               {Kind: spec.OriginRun, Name: "a/b c", Version: spec.NewestSnapshot},
	} {
		got, err := spec.Frozen{From: from}.Origin()
		require.NoError(t, err, from)
		require.Equal(t, want, got, from)
	}
	for from, want := range map[string]string{
		"starter":  `a starter is made by a run: name that run, as "run:ID@VERSION"`,
		"run:":     `"" is no run's id: it has 0 bytes`,
		"run:a@":   `"" is no version`,
		"run:a@-1": `"-1" is no version`,
		"run:a@01": `"01" is no version`,
		"run:@3":   `"" is no run's id: it has 0 bytes`,
		"Qwen":     `a hub name is written "hf:NAME", a folder "folder:PATH"`,
	} {
		_, err := spec.Frozen{From: from}.Origin()
		require.EqualError(t, err, want, from)
	}
	_, err := spec.Policy{From: "run:a@1"}.Origin()
	require.Error(t, err, "a policy begins with a run by from")
}

// A teacher's weights are held in the compute dtype, its program scores rows beside the policy's state, and it is in the job only
// where its shape is known. A run with one scores its rows itself.
func TestTeacherInTheEstimates(t *testing.T) {
	methodstest.Needs(t, "distill")
	of := func(algorithm string) spec.Train {
		return decode(t, `{"environment":{"name":"bandit"},"policy":{"from":"hf:Qwen/Qwen2.5-0.5B","exact":true},
			"rollout":{"turns":1,"prompt_tokens":[512]},`+algorithm+`}`)
	}
	plain, train := of(`"credit":{"algorithm":"grpo"}`), of(`"credit":{"algorithm":"distill"},"teacher":{"from":"hf:Qwen/Qwen2.5-7B"}`)
	require.True(t, plain.ScoredBySampler())
	require.False(t, train.ScoredBySampler())
	require.Zero(t, spec.Derive(train, qwen).Memory.Teacher)
	seven := cost.Network{Layers: 28, HiddenSize: 3584, IntermediateSize: 18944, Heads: 28, KVHeads: 4, HeadDim: 128, VocabSize: 152064}
	train.Teacher.Network = &seven
	without, with := spec.Derive(plain, qwen), spec.Derive(train, qwen)
	require.Equal(t, int64(15_231), with.Memory.Teacher/1_000_000, "7.6 B parameters of 2 bytes, but norms and biases")
	require.GreaterOrEqual(t, with.Memory.Peak, without.Memory.Peak+with.Memory.Teacher)
	require.Contains(t, with.String(), "device: teacher")
	require.NotContains(t, without.String(), "device: teacher")
	require.Equal(t, without.Storage, with.Storage, "snapshots do not hold it")
	require.Equal(t, 1, plain.Job(qwen).Scored())
	require.Equal(t, 1+16, train.Job(qwen).Scored(), "a row of the teacher's is worth 16 of the policy's")
	names := map[string]bool{}
	for _, p := range train.Job(qwen).Programs(1) {
		names[p.Name] = true
		if p.Name == "teacher-forward" {
			require.Less(t, p.Outputs, int64(1<<20), "it keeps nothing")
		}
	}
	require.True(t, names["teacher-forward"])
	two := spec.DevicesOf(train, qwen, 2)
	require.GreaterOrEqual(t, two.Others.Peak, with.Memory.Teacher, "each device has it")
	text, err := train.JSON()
	require.NoError(t, err)
	require.NotContains(t, string(text), "Network")
	require.Contains(t, string(text), `"teacher":{"from":"hf:Qwen/Qwen2.5-7B"}`)
}

// A policy that is its own teacher adds no weights: one program, as much wider as what it is shown, which keeps nothing. What it is
// shown counts in the work and in how often a row is scored.
func TestAPolicyThatTeachesItselfInTheEstimates(t *testing.T) {
	methodstest.Needs(t, "distill")
	of := func(more string) spec.Train {
		return decode(t, `{"environment":{"name":"bandit"},"policy":{"from":"hf:Qwen/Qwen2.5-0.5B","exact":true},
			"rollout":{"turns":1,"prompt_tokens":[512],"max_new_tokens":512},`+more+`}`)
	}
	shown := func(tokens int) spec.Train {
		return of(fmt.Sprintf(`"credit":{"algorithm":"distill"},"teacher":{"from":"self","context":"success","context_tokens":%d}`, tokens))
	}
	plain, own := of(`"credit":{"algorithm":"grpo"}`), shown(1024)
	require.True(t, own.Teacher.Self())
	require.Nil(t, own.Teacher.Apart())
	require.False(t, plain.Teacher.Self() || plain.Teacher.Apart() != nil)
	require.False(t, own.ScoredBySampler())
	with, without := spec.Derive(own, qwen), spec.Derive(plain, qwen)
	require.Zero(t, with.Memory.Teacher)
	require.Equal(t, without.Memory.Weights, with.Memory.Weights)
	require.Equal(t, 1+2, own.Job(qwen).Scored(), "its rows are twice as long")
	needs := func(train spec.Train) (out int64) {
		for _, p := range train.Job(qwen).Programs(1) {
			if p.Name == "teacher-forward" {
				require.Less(t, p.Outputs, int64(1<<20), "it keeps nothing")
				out = p.Bytes()
			}
		}
		return out
	}
	require.Zero(t, needs(plain))
	require.Greater(t, needs(own), needs(shown(64)))
	score := func(train spec.Train) float64 {
		for _, w := range spec.WorkOf(train, qwen, 1) {
			if w.Part == cost.WorkScore {
				return w.Operations
			}
		}
		return 0
	}
	require.Greater(t, score(own), 3*score(plain), "attention to twice as many places besides")
	require.Less(t, score(own), 3.5*score(plain))
}
