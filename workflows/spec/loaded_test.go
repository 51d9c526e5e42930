package spec_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/cost"
	"github.com/reprise-rl/reprise/model/methods/methodstest"
	"github.com/reprise-rl/reprise/workflows/collapse"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// ofPolicy is the warm start of a published model on an environment whose actions are known, or are not.
func ofPolicy(t *testing.T, policy string, played bool) spec.WarmStart {
	t.Helper()
	world := known
	world.Plays = func(string, json.RawMessage) bool { return played }
	train, err := spec.Decode([]byte(`{"environment":{"name":"bandit"},"policy":{"from":"hf:a/b"`+policy+`}}`), world)
	require.NoError(t, err)
	return train.Policy.WarmStart
}

func TestWarmStartOfPublishedModels(t *testing.T) {
	for policy, want := range map[string]spec.WarmStart{
		``:                                     {Steps: 10, Rows: 16, LearningRate: 3e-5},
		`,"lora":{}`:                           {Steps: 10, Rows: 16, LearningRate: 1e-3},
		`,"warm_start":{}`:                     {Steps: 10, Rows: 16, LearningRate: 3e-5},
		`,"warm_start":{"steps":20}`:           {Steps: 20, Rows: 16, LearningRate: 3e-5},
		`,"warm_start":{"rows":8}`:             {Steps: 10, Rows: 8, LearningRate: 3e-5},
		`,"warm_start":{"demonstrations":0}`:   {Steps: 10, Rows: 16, LearningRate: 3e-5},
		`,"warm_start":{"demonstrations":0.5}`: {Steps: 10, Rows: 128, LearningRate: 1e-5, Demonstrations: 0.5},
		`,"lora":{},"warm_start":{"steps":3,"demonstrations":1}`:     {Steps: 3, Rows: 128, LearningRate: 1e-5, Demonstrations: 1},
		`,"lora":{},"warm_start":{"learning_rate":2e-4,"steps":100}`: {Steps: 100, Rows: 16, LearningRate: 2e-4},
		`,"warm_start":{"steps":0}`:                                  {Rows: 128, LearningRate: 1e-5, Demonstrations: 1},
	} {
		want.Seed = 1
		require.Equal(t, want, ofPolicy(t, policy, true), policy)
	}
	require.Equal(t, spec.WarmStart{Rows: 128, LearningRate: 1e-5, Demonstrations: 1, Seed: 1}, ofPolicy(t, ``, false), "no known actions")
	require.Equal(t, 150, decode(t, `{"environment":{"name":"bandit"}}`).Policy.WarmStart.Steps, "a starter's stays")
	require.Zero(t, spec.Default("hf:a/b").Policy.WarmStart.Steps, "no environment, no actions")
}

func TestWarmStartByDefault(t *testing.T) {
	for document, want := range map[string]bool{
		`{"environment":{"name":"bandit"},"policy":{"from":"hf:a/b"}}`:                                             true,
		`{"environment":{"name":"bandit"},"policy":{"from":"hf:a/b","warm_start":{"rows":3}}}`:                     true,
		`{"environment":{"name":"bandit"},"policy":{"from":"hf:a/b","warm_start":{"steps":3}}}`:                    false,
		`{"environment":{"name":"bandit"},"policy":{"from":"hf:a/b","warm_start":{"steps":0}}}`:                    false,
		`{"environment":{"name":"bandit"},"policy":{"from":"hf:a/b"},"from":{"run":"a","iteration":3}}`:            false,
		`{"environment":{"name":"bandit"},"policy":{"from":"starter","starter":{}}}`:                               false,
		`{"environment":{"name":"foreign","options":{"name":"elsewhere"}},"policy":{"from":"hf:a/b"}}`:             true,
		`{"environment":{"mixture":[{"name":"bandit"},{"name":"bandit","label":"b"}]},"policy":{"from":"hf:a/b"}}`: true,
		`{"environment":{"name":"bandit"}}`:                                                                        false,
	} {
		require.Equal(t, want, decode(t, document).WarmStartByDefault([]byte(document)), document)
	}
}

// A foreign environment's actions are known only once it has described itself.
func TestWarmStartOfDescribedEnvironments(t *testing.T) {
	document := []byte(`{"environment":{"name":"foreign"},"policy":{"from":"hf:a/b","warm_start":{"rows":4}}}`)
	world, described := known, false
	world.Plays = func(string, json.RawMessage) bool { return described }
	train, err := spec.Decode(document, world)
	require.NoError(t, err)
	require.Zero(t, train.Policy.WarmStart.Steps)
	described = true
	require.Equal(t, spec.WarmStart{Steps: 10, Rows: 4, LearningRate: 3e-5, Seed: 1}, train.Described(document, world).Policy.WarmStart)
}

func TestAdaptersOfAFolderHaveTheirRate(t *testing.T) {
	p := spec.Policy{WarmStart: ofPolicy(t, ``, true)}
	got, err := p.Starting(spec.LoRA{Rank: 4}, "hf:a/b", []byte(`{}`))
	require.NoError(t, err)
	require.Equal(t, 1e-3, got.WarmStart.LearningRate)
	got, err = p.Starting(spec.LoRA{Rank: 4}, "hf:a/b", []byte(`{"policy":{"warm_start":{"learning_rate":3e-5}}}`))
	require.NoError(t, err)
	require.Equal(t, 3e-5, got.WarmStart.LearningRate)
}

func TestFlatGroupsAndEntropyOfPublishedModels(t *testing.T) {
	const bandit, published = `{"environment":{"name":"bandit"}`, `,"policy":{"from":"hf:a/b"}`
	require.Equal(t, 0.001, decode(t, bandit+`}`).Update.EntropyCoefficient)
	require.False(t, decode(t, bandit+`}`).Selection.DropFlat)
	require.Zero(t, decode(t, bandit+published+`}`).Update.EntropyCoefficient)
	for fields, want := range map[string]bool{
		``:                                  true,
		`,"credit":{"algorithm":"dr_grpo"}`: true,
		`,"credit":{"algorithm":"empg"}`:    true,
		`,"credit":{"algorithm":"leave_one_out"}`:                                               true,
		`,"credit":{"algorithm":"gae"}`:                                                         false,
		`,"credit":{"algorithm":"gae"},"rollout":{"group_size":1},"selection":{"method":"all"}`: false,
		`,"credit":{"algorithm":"gigpo"}`:                                                       false,
		`,"selection":{"drop_flat":false}`:                                                      false,
		`,"update":{"supervised":{"from":"own_successes"}}`:                                     false,
	} {
		if methodstest.Without(fields) {
			continue
		}
		require.Equal(t, want, decode(t, bandit+published+fields+`}`).Selection.DropFlat, fields)
	}
}

// Two snapshots of a published model stay, all of a starter, and all where some are references.
func TestSnapshotsOfPublishedModels(t *testing.T) {
	const bandit, published = `{"environment":{"name":"bandit"}`, `,"policy":{"from":"hf:a/b"}`
	for document, want := range map[string]int{
		bandit + `}`:                                     0,
		bandit + `,"snapshot":{"retain":3}}`:             3,
		bandit + published + `}`:                         2,
		bandit + published + `,"snapshot":{"retain":0}}`: 0,
		bandit + published + `,"snapshot":{"retain":1}}`: 1,
		bandit + published + `,"update":{"kl_in":"loss","reference_every":6},"snapshot":{"every":3}}`: 0,
	} {
		require.Equal(t, want, decode(t, document).Snapshot.Retain, document)
	}
}

// A run that began under earlier defaults goes on with them, and with what its document writes.
func TestDefaultsOfAnEarlierSpec(t *testing.T) {
	const document = `{"environment":{"name":"bandit"},"policy":{"from":"hf:a/b","warm_start":{"rows":4}},"update":{"entropy_coefficient":0.5}}`
	now, before := decode(t, document), decode(t, document)
	before.Policy.WarmStart = spec.WarmStart{Steps: 0, Rows: 128, LearningRate: 1e-5, Demonstrations: 1, Seed: 1}
	before.Update.EntropyCoefficient, before.Selection.DropFlat = 0.001, false
	before.Rollout.Protocol, before.Rollout.StopAt, before.Rollout.Prefill = "reprise", nil, ""
	before.Snapshot.Retain = 0
	before.Evaluation.Suites[0].Protocol, before.Evaluation.Suites[0].StopAt = "reprise", nil
	got := now.WithDefaultsOf(before, []byte(document))
	require.Equal(t, "policy.warm_start.rows: 128, and 4\nupdate.entropy_coefficient: 0.001, and 0.5", strings.TrimSpace(spec.Diff(before, got).String()))
	require.Equal(t, now.Policy.WarmStart.Rows, now.Policy.WithDefaultsOf(before.Policy, []byte(document)).WarmStart.Rows)
	require.Zero(t, now.Policy.WithDefaultsOf(before.Policy, []byte(document)).WarmStart.Steps)

	const written = `{"environment":{"name":"bandit"},"policy":{"from":"hf:a/b"},"rollout":{"protocol":"examples","stop_at":["</answer>"]}}`
	got = decode(t, written).WithDefaultsOf(before, []byte(written))
	require.Equal(t, "examples", got.Rollout.Protocol)
	require.Equal(t, "examples", got.Evaluation.Suites[0].Protocol)
	require.Equal(t, []string{"</answer>"}, got.Evaluation.Suites[0].StopAt)
}

// The detectors that came later are on for published models alone, unless a spec names them.
func TestDetectorsOfPublishedModels(t *testing.T) {
	const bandit, published = `{"environment":{"name":"bandit"}`, `,"policy":{"from":"hf:a/b"}`
	require.Equal(t, collapse.Defaults(), decode(t, bandit+`}`).Collapse)
	require.Equal(t, collapse.Defaults().Filled(), decode(t, bandit+published+`}`).Collapse)

	asked := decode(t, bandit+`,"collapse":{"no_format":{"iterations":9}}}`).Collapse
	require.Equal(t, collapse.Share{OnDetection: collapse.Inherit, Below: 0.05, Iterations: 9}, asked.NoFormat)
	require.Zero(t, asked.NoSignal)

	off := decode(t, bandit+published+`,"collapse":{"echo_trap":{"on_detection":"off"},"entropy_uniform":{"above":0.75}}}`)
	require.Equal(t, collapse.Off, off.Collapse.EchoTrap.OnDetection)
	require.Equal(t, 0.75, off.Collapse.EntropyUniform.Above)
	require.Equal(t, 5, off.Collapse.NoSignal.Iterations)
	b, err := off.JSON()
	require.NoError(t, err)
	require.Equal(t, off, decode(t, string(b)))

	single := bandit + published + `,"credit":{"algorithm":"gae"},"rollout":{"group_size":1},"selection":{"method":"all"}}`
	require.Zero(t, decode(t, single).Collapse.NoSignal, "a group of one never differs")
}

// The start of a run writes down the vocabulary that entropy_uniform reads, and a run of before has none of
// the detectors.
func TestVocabularyOfTheDetector(t *testing.T) {
	document := []byte(`{"environment":{"name":"bandit"},"policy":{"from":"hf:a/b"},"rollout":{"turns":1,"prompt_tokens":[64]}}`)
	train := decode(t, string(document))
	shape := cost.Network{Layers: 1, HiddenSize: 8, IntermediateSize: 8, Heads: 1, KVHeads: 1, VocabSize: 49152}
	resolved := train.WithSizes(shape, document)
	require.Equal(t, 49152, resolved.Collapse.EntropyUniform.Vocabulary)
	require.Equal(t, resolved.Collapse, train.WithDefaultsOf(resolved, document).Collapse)
	starter := decode(t, `{"environment":{"name":"bandit"}}`)
	require.Equal(t, starter.Collapse, starter.WithSizes(shape, nil).Collapse)

	before := resolved
	before.Collapse = collapse.Defaults()
	require.Equal(t, before.Collapse, train.WithDefaultsOf(before, document).Collapse)
}
