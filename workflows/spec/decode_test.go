package spec_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/cost"
	"github.com/reprise-rl/reprise/model/methods/methodstest"
	"github.com/reprise-rl/reprise/workflows/collapse"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// known is a world of two environments, one of which checks its options. None has roles, and only the bandit has chance.
var known = spec.Known{
	Environments: []string{"frozen-lake", "bandit", "foreign"},
	Roles:        func(string, json.RawMessage) bool { return false },
	Certain:      func(name string, _ json.RawMessage) bool { return name != "bandit" },
	Forked:       func(name string, _ json.RawMessage) bool { return name != "bandit" },
	Options: func(name string, options json.RawMessage) []spec.Problem {
		if name != "frozen-lake" {
			return nil
		}
		return []spec.Problem{
			{Path: "size", Found: "99", Allowed: "an integer from 2 to 16"},
			{Path: "", Found: string(options), Allowed: "a map that can be solved"},
			{Path: "[0]", Found: "an item", Allowed: "none"},
		}
	},
}

func decode(t *testing.T, document string) spec.Train {
	t.Helper()
	methodstest.NeedsOf(t, document)
	train, err := spec.Decode([]byte(document), known)
	require.NoError(t, err)
	return train
}

func TestDecodeReportsEveryProblem(t *testing.T) {
	files, err := filepath.Glob("testdata/bad/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			document, err := os.ReadFile(file)
			require.NoError(t, err)
			train, err := spec.Decode(document, known)
			require.Error(t, err)
			if want, err := os.ReadFile(strings.TrimSuffix(file, ".json") + ".txt"); err == nil {
				if methodstest.Mentions(string(document) + string(want)) {
					t.Skip("it names a method that is not there, or an option of one")
				}
			}
			var problems spec.Problems
			require.ErrorAs(t, err, &problems)
			require.Zero(t, train)
			expected := strings.TrimSuffix(file, ".json") + ".txt"
			if flag.Lookup("update").Value.String() == "true" {
				require.NoError(t, os.WriteFile(expected, []byte(err.Error()+"\n"), 0o644))
			}
			text, readErr := os.ReadFile(expected)
			require.NoError(t, readErr)
			require.Equal(t, string(text), err.Error()+"\n")
		})
	}
}

func TestDecodeLimits(t *testing.T) {
	_, err := spec.Decode(bytes.Repeat([]byte(" "), spec.MaxBytes+1), known)
	require.EqualError(t, err, "1 problem:\n  (spec): found 1048577 bytes; allowed: at most 1048576 bytes")

	options := `{"a":"` + strings.Repeat("x", 1<<18) + `"}`
	_, err = spec.Decode([]byte(`{"environment":{"name":"bandit","options":`+options+`}}`), known)
	require.EqualError(t, err, "1 problem:\n  environment.options: found 262152 bytes; allowed: at most 262144 bytes")
}

func TestDecodeFillsDefaults(t *testing.T) {
	train := decode(t, `{"environment":{"name":"bandit"}}`)
	require.Equal(t, spec.Train{
		Seed:       10000,
		Iterations: 200,
		Policy: spec.Policy{
			From:         "starter",
			ComputeDtype: "float32", Exact: true,
			Starter: &spec.Starter{
				Layers: 4, HiddenSize: 128, IntermediateSize: 384, Heads: 4, KVHeads: 2, Seed: 1,
			},
			WarmStart: spec.WarmStart{Steps: 150, Rows: 32, LearningRate: 1e-3, Seed: 1},
		},
		Environment: spec.Environment{Name: "bandit", Options: json.RawMessage(`{}`)},
		Rollout: spec.Rollout{
			Groups: 8, GroupSize: 16, Turns: 5, MaxNewTokens: 24, Temperature: 1, Think: true, FormatPenalty: -0.1, Penalty: "no_action",
		},
		Selection: spec.Selection{Method: "top_fraction", Metric: "reward_std", Order: "largest", Keep: 0.25, Count: 2, P: 0.9, Floor: 1e-10, Resample: 1, LossScale: "none"},
		Credit: spec.Credit{
			Algorithm: "grpo", NormalizeByStd: true, Epsilon: 1e-6, Gamma: 1, StepWeight: 1,
			Lambda: 1, TurnGamma: 0.95, TurnLambda: 1, ValueAt: "last_prompt_token", RewardAt: "turns", Whiten: true, BaselineRate: 0.1,
		},
		Diagnostics: spec.Diagnostics{Samples: 16},
		Freshness:   spec.Freshness{Online: 1, Reuse: 1, ReplayShare: 0.5},
		Critic:      spec.Critic{LearningRate: 1e-3, WeightDecay: 0.01, MaxGradNorm: 1, Clip: 0.5},
		Update: spec.Update{
			LearningRate: 3e-4, Beta1: 0.9, Beta2: 0.999, AdamEpsilon: 1e-8, WeightDecay: 0.01,
			MaxGradNorm: 1, Decay: "constant", Ratio: "token", ClipLow: 0.2, ClipHigh: 0.28,
			Aggregation: "token_mean", Epochs: 1, KLIn: "none", KLEstimator: "k3", KLCoefficient: 0.001, EntropyCoefficient: 0.001, MicroBatch: 16,
		},
		Snapshot: spec.Snapshot{Every: 10},
		Evaluation: spec.Evaluation{Every: 10, Seed: 123, Instances: 64, Samples: 1, Temperature: 0.5, Suites: []spec.Suite{{
			Name: "in-distribution", Environment: spec.Environment{Name: "bandit", Options: json.RawMessage(`{}`)},
			Instances: 64, Samples: 1, Seed: 123, Temperature: 0.5,
			Turns: 5, MaxNewTokens: 24, Think: true, FormatPenalty: -0.1, Penalty: "no_action",
		}}},
		Collapse: collapse.Defaults(),
		Limits:   spec.Limits{ActivitySeconds: 120},
	}, train)
}

func TestDecodeDefaultsOfLoadedPolicies(t *testing.T) {
	train := decode(t, `{"environment":{"name":"bandit"},"policy":{"from":"hf:Qwen/Qwen2.5-0.5B-Instruct@main"}}`)
	require.Nil(t, train.Policy.Starter)
	require.Equal(t, "bfloat16", train.Policy.ComputeDtype)
	require.Equal(t, 400, train.Rollout.MaxNewTokens)
	require.Equal(t, 1e-6, train.Update.LearningRate)
	require.Equal(t, 4, train.Update.MicroBatch)
	require.Equal(t, spec.WarmStart{Steps: 10, Rows: 16, LearningRate: 3e-5, Seed: 1}, train.Policy.WarmStart)
}

func TestDecodeCollapse(t *testing.T) {
	train := decode(t, `{"environment":{"name":"bandit"},"collapse":{"on_detection":"rollback","grad_norm":{"factor":10},"rollback":{"max":1}}}`)
	want := collapse.Defaults()
	want.OnDetection, want.GradNorm.Factor, want.Rollback.Max = collapse.RollBack, 10, 1
	require.Equal(t, want, train.Collapse)
	b, err := train.JSON()
	require.NoError(t, err)
	require.Equal(t, train, decode(t, string(b)))
	other := decode(t, `{"environment":{"name":"bandit"}}`)
	require.Equal(t, "collapse.grad_norm.factor: 10, and 5\ncollapse.on_detection: \"rollback\", and \"warn\"\ncollapse.rollback.max: 1, and 2", spec.Diff(train, other).String())
}

func TestDecodeMixture(t *testing.T) {
	train := decode(t, `{"environment":{"mixture":[{"name":"bandit","share":3},{"name":"bandit","label":"high","options":{"b":1.0}}]}}`)
	require.Empty(t, train.Environment.Name)
	require.Equal(t, []spec.Part{
		{Name: "bandit", Label: "bandit", Share: 3, Options: json.RawMessage(`{}`)},
		{Name: "bandit", Label: "high", Share: 1, Options: json.RawMessage(`{"b":1}`)},
	}, train.Environment.Parts())
	require.Equal(t, "bandit + high", train.Environment.String())
	require.Equal(t, train.Environment, train.Evaluation.Suites[0].Environment)
	b, err := train.JSON()
	require.NoError(t, err)
	require.Equal(t, train, decode(t, string(b)))

	other := decode(t, `{"environment":{"mixture":[{"name":"bandit","share":2},{"name":"bandit","label":"high"}]}}`)
	require.Equal(t, []string{"environment.mixture[0].share", "environment.mixture[1].options.b"},
		[]string{spec.Diff(train, other)[0].Path, spec.Diff(train, other)[1].Path})
}

func TestDecodeSuites(t *testing.T) {
	world := known
	world.Suites = []string{"far"}
	world.Suite = func(name string) (spec.Environment, bool) {
		return spec.Environment{Name: "bandit", Options: json.RawMessage(`{"far":true}`)}, name == "far"
	}
	world.HeldOut = func(_ string, options json.RawMessage) (json.RawMessage, error) {
		return json.RawMessage(`{"split":"test"}`), nil
	}
	train, err := spec.Decode([]byte(`{"environment":{"name":"bandit"},"rollout":{"think":false},"evaluation":{"instances":256,
		"suites":["in-distribution","far",{"suite":"far","name":"far-think","think":true,"samples":8,"temperature":0},
			{"environment":{"name":"bandit","options":{"own":1}},"turns":2}]}}`), world)
	require.NoError(t, err)
	s := train.Evaluation.Suites
	require.Len(t, s, 4)
	require.Equal(t, `{"split":"test"}`, string(s[0].Environment.Options))
	require.Equal(t, "{}", string(train.Environment.Options))
	require.Equal(t, "far", s[1].Name)
	require.False(t, s[1].Think)
	require.Equal(t, 256, s[1].Rows())
	require.Equal(t, "far-think", s[2].Name)
	require.True(t, s[2].Think)
	require.Equal(t, 2048, s[2].Rows())
	require.Zero(t, s[2].Temperature)
	require.Equal(t, "bandit", s[3].Name)
	require.Equal(t, 2, s[3].Turns)
	require.Equal(t, 256*3+2048, train.Evaluation.Rows())

	b, err := train.JSON()
	require.NoError(t, err)
	again, err := spec.Decode(b, world)
	require.NoError(t, err)
	require.Equal(t, train, again)
}

func TestDecodeKeepsWhatIsWritten(t *testing.T) {
	train := decode(t, `{
		"description": "no \"defaults\" <here>\n",
		"environment": {"name": "bandit", "options": {"z": 1.50, "a": {"y": [1e0, -0.0, 12345678901234567890], "x": "<>"}}},
		"evaluation": {"every": 0, "temperature": 0},
		"update": {"entropy_coefficient": 0, "weight_decay": -0},
		"credit": {"normalize_by_std": false},
		"rollout": {"turns": 2, "prompt_tokens": [64, 96], "think": false},
		"policy": {"warm_start": {"steps": 0}}
	}`)
	require.Zero(t, train.Evaluation.Every)
	require.Zero(t, train.Evaluation.Temperature)
	require.Zero(t, train.Update.EntropyCoefficient)
	require.False(t, train.Credit.NormalizeByStd)
	require.False(t, train.Rollout.Think)
	require.Zero(t, train.Policy.WarmStart.Steps)
	require.Equal(t, 4, train.Policy.Starter.Layers)
	require.Equal(t, []int{64, 96}, train.Rollout.PromptTokens)
	require.Equal(t, `{"a":{"x":"<>","y":[1,0,12345678901234567890]},"z":1.5}`, string(train.Environment.Options))
}

func TestSameSpecSameBytes(t *testing.T) {
	one := decode(t, `{"seed": 7, "environment": {"name": "bandit", "options": {"b": 0.50, "a": 1}}, "update": {"learning_rate": 3e-4}}`)
	other := decode(t, "{\"update\":\n{\"learning_rate\": 0.00030},\"environment\":{\"options\":{\"a\":1,\"b\":5e-1},\"name\":\"bandit\"},\"seed\":7, \"rollout\": {}}")
	a, err := one.JSON()
	require.NoError(t, err)
	b, err := other.JSON()
	require.NoError(t, err)
	require.Equal(t, string(a), string(b))
	require.NotContains(t, string(a), "\n")
}

// The first tokenizer is what a spec means that names none: the two share a starter.
func TestFirstTokenizerIsLeftOut(t *testing.T) {
	const head = `{"environment":{"name":"bandit"},"policy":{"starter":{`
	silent, first, second := decode(t, head+`}}}`), decode(t, head+`"tokenizer":1}}}`), decode(t, head+`"tokenizer":2}}}`)
	require.Equal(t, silent, first)
	b, err := first.JSON()
	require.NoError(t, err)
	require.NotContains(t, string(b), "tokenizer")
	require.Equal(t, "policy.starter.tokenizer: nothing, and 2", spec.Diff(first, second).String())
}

func TestJSONReadsBack(t *testing.T) {
	train := decode(t, `{"environment":{"name":"bandit","options":{"a":[{"b":1e300}]}},"description":"\u2028<&>\ud800"}`)
	b, err := train.JSON()
	require.NoError(t, err)
	require.Equal(t, train, decode(t, string(b)))

	train.Update.LearningRate = 1 / zero
	_, err = train.JSON()
	require.ErrorContains(t, err, "encode spec")
}

var zero float64

func TestValidate(t *testing.T) {
	train := decode(t, `{"environment":{"name":"bandit"}}`)
	require.NoError(t, spec.Validate(train, known))
	train.Update.ClipLow = 1
	require.EqualError(t, spec.Validate(train, known),
		"1 problem:\n  update.clip_low: found 1; allowed: a number greater than 0 and less than 1")
	train.Update.ClipLow = 1 / zero
	require.ErrorContains(t, spec.Validate(train, known), "validate spec")
}

func TestResolve(t *testing.T) {
	made := spec.Train{Environment: spec.Environment{Name: "bandit"}, Rollout: spec.Rollout{Groups: 4}}
	resolved := spec.Resolve(made)
	require.Nil(t, made.Policy.Starter, "the argument stays as it was")
	require.Equal(t, 4, resolved.Rollout.Groups)
	require.Equal(t, 16, resolved.Rollout.GroupSize)
	require.Equal(t, 128, resolved.Policy.Starter.HiddenSize)
	require.Equal(t, 3e-4, spec.Resolve(spec.Default(spec.FromStarter)).Update.LearningRate)
	require.Zero(t, resolved.Update.EntropyCoefficient, "a zero that is allowed stays")
	require.NoError(t, spec.Validate(resolved, known))

	loaded := spec.Resolve(spec.Train{Policy: spec.Policy{From: "folder:/models/a"}})
	require.Nil(t, loaded.Policy.Starter)
	require.Equal(t, 400, loaded.Rollout.MaxNewTokens)

	decoded := decode(t, `{"environment":{"name":"bandit"},"evaluation":{"every":0},"policy":{"warm_start":{"steps":0}}}`)
	require.Equal(t, decoded, spec.Resolve(decoded))
}

func TestOrigin(t *testing.T) {
	for from, want := range map[string]spec.Origin{
		"starter":              {Kind: spec.OriginStarter},
		"hf:Qwen/Qwen2.5-0.5B": {Kind: spec.OriginHub, Name: "Qwen/Qwen2.5-0.5B"},
		"hf:gpt2@refs/pr/1":    {Kind: spec.OriginHub, Name: "gpt2", Revision: "refs/pr/1"},
		"folder:../models/a b": {Kind: spec.OriginFolder, Name: "../models/a b"},
		"folder:C:/x@y":        {Kind: spec.OriginFolder, Name: "C:/x@y"},
		"model:0123456789ab":   {Kind: spec.OriginModel, Name: "0123456789ab"},
	} {
		origin, err := spec.Policy{From: from}.Origin()
		require.NoError(t, err, from)
		require.Equal(t, want, origin)
	}
}

func FuzzDecode(f *testing.F) {
	for _, pattern := range []string{"testdata/bad/*.json", "../../infra/presets/*.json"} {
		files, err := filepath.Glob(pattern)
		require.NoError(f, err)
		for _, file := range files {
			document, err := os.ReadFile(file)
			require.NoError(f, err)
			f.Add(document)
		}
	}
	f.Add([]byte(`{"environment":{"name":"bandit","options":{"a":-0,"b":1.5e20,"c":"\u2028","\ud800":[]}}}`))
	f.Fuzz(func(t *testing.T, document []byte) {
		train, err := spec.Decode(document, known)
		if err != nil {
			var problems spec.Problems
			require.ErrorAs(t, err, &problems)
			require.NotEmpty(t, problems)
			require.Less(t, len(err.Error()), 1<<16)
			return
		}
		b, err := train.JSON()
		require.NoError(t, err)
		again, err := spec.Decode(b, known)
		require.NoError(t, err)
		require.Equal(t, train, again)
		twice, err := again.JSON()
		require.NoError(t, err)
		require.Equal(t, b, twice)
		require.Empty(t, spec.Diff(train, again))
		require.Equal(t, train, spec.Resolve(train))
		require.NotEmpty(t, spec.Derive(train, cost.Network{Layers: 2, HiddenSize: 32, Heads: 2, VocabSize: 512}).String())
	})
}

func TestRate(t *testing.T) {
	for decay, want := range map[string][]float64{
		"constant": {0.5, 1, 1, 1, 1, 1},
		"linear":   {0.5, 1, 1, 0.75, 0.5, 0.25},
		"cosine":   {0.5, 1, 1, 0.8535533905932737, 0.5, 0.14644660940672627},
	} {
		u := spec.Update{LearningRate: 1, WarmupIterations: 2, Decay: decay}
		for n, rate := range want {
			require.InDelta(t, rate, u.Rate(n, 6), 1e-12, "%s, iteration %d", decay, n)
		}
	}
	require.Equal(t, 3e-4, spec.Update{LearningRate: 3e-4, Decay: "constant"}.Rate(199, 200))
}

// The default of limits.step_failures is not written down: a spec that leaves it out keeps
// the bytes, and so the digest, that it had before the field.
func TestStepFailuresAreLeftOut(t *testing.T) {
	const head = `{"environment":{"name":"bandit"}`
	train := decode(t, head+`}`)
	require.Equal(t, 5, train.Limits.Failures())
	b, err := train.JSON()
	require.NoError(t, err)
	require.NotContains(t, string(b), "step_failures")

	train = decode(t, head+`,"limits":{"step_failures":9}}`)
	require.Equal(t, 9, train.Limits.Failures())
	b, err = train.JSON()
	require.NoError(t, err)
	require.Contains(t, string(b), `"limits":{"activity_seconds":120,"step_failures":9}`)
}
