package main

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/presets"
	"github.com/reprise-rl/reprise/infra/presets/presetstest"
	"github.com/reprise-rl/reprise/model/methods/methodstest"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// files are the presets of this build.
func files(t *testing.T) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	for _, name := range presetstest.Names() {
		b, err := presets.Read(name)
		require.NoError(t, err)
		out[name] = b
	}
	return out
}

// Every preset that is cut down can be started, and what makes its kind is as it was.
func TestCutPresetsAreRuns(t *testing.T) {
	all := files(t)
	cut, err := presetsOf(all, nil)
	require.NoError(t, err)
	if methodstest.Whole() {
		require.Greater(t, len(cut), 70)
	}
	for name, p := range cut {
		short, err := spec.Decode(p.spec, run.Known())
		require.NoError(t, err, name)
		whole, err := spec.Decode(all[name], run.Known())
		require.NoError(t, err, name)
		require.Equal(t, 2, short.Iterations, name)
		require.LessOrEqual(t, short.Policy.WarmStart.Steps, whole.Policy.WarmStart.Steps, name)
		require.LessOrEqual(t, short.Policy.WarmStart.Steps, mostSteps, name)
		require.Equal(t, whole.Rollout, short.Rollout, name)
		require.Equal(t, whole.Selection, short.Selection, name)
		require.Equal(t, whole.Credit, short.Credit, name)
		require.Equal(t, whole.Environment, short.Environment, name)
		require.Equal(t, whole.Policy.Starter, short.Policy.Starter, name)
		require.Equal(t, whole.Freshness, short.Freshness, name)
		for _, change := range whole.Schedule {
			require.True(t, slices.ContainsFunc(short.Schedule, func(c spec.Scheduled) bool { return c.Field == change.Field }), name)
		}
	}
}

func TestWhichPresets(t *testing.T) {
	cut, err := presetsOf(files(t), nil)
	require.NoError(t, err)
	for _, name := range presetstest.There([]string{
		"bandit-demo", "tree-grpo", "hiper", "istar", "seeupo", "webshop-starter", "lora-ppo", "replay", "chaos-turns", "reward-tools",
	}) {
		require.Contains(t, cut, name)
	}
	for _, name := range []string{"fig7-filter-starter", "smol-bandit", "methods-tsr", "size-0.5b", "qwen3-grpo"} {
		require.NotContains(t, cut, name)
	}
	some, err := presetsOf(files(t), []string{"chaos", "fig5-baseline"})
	require.NoError(t, err)
	require.Len(t, some, 1)
	require.Contains(t, some, "chaos")
	_, err = presetsOf(map[string][]byte{"torn": []byte("{")}, nil)
	require.ErrorContains(t, err, "preset torn")
}

func TestCut(t *testing.T) {
	for _, c := range []struct{ name, preset, want string }{
		{"a long warm start", `{"policy": {"from": "starter", "warm_start": {"steps": 500}}}`, `{"iterations": 2, "policy": {"from": "starter", "warm_start": {"steps": 125}}}`},
		{"a warm start", `{"policy": {"from": "starter", "warm_start": {"steps": 80}}}`, `{"iterations": 2, "policy": {"from": "starter", "warm_start": {"steps": 60}}}`},
		{"numbers that are smaller stay", `{"iterations": 60, "policy": {"from": "starter", "warm_start": {"steps": 30}}, "evaluation": {"instances": 3}}`,
			`{"iterations": 2, "policy": {"from": "starter", "warm_start": {"steps": 30}}, "evaluation": {"instances": 3}}`},
		{"numbers as they are written", `{"policy": {"from": "starter"}, "rollout": {"groups": 128}, "update": {"learning_rate": 3e-4}}`,
			`{"iterations": 2, "policy": {"from": "starter"}, "rollout": {"groups": 128}, "update": {"learning_rate": 3e-4}}`},
		{"suites", `{"policy": {"from": "starter"}, "evaluation": {"instances": 64, "samples": 4, "suites": ["a", {"name": "b", "instances": 16}]}}`,
			`{"iterations": 2, "policy": {"from": "starter"}, "evaluation": {"instances": 4, "samples": 1, "suites": ["a", {"name": "b", "instances": 4}]}}`},
		{"what comes later", `{"policy": {"from": "starter"}, "schedule": [{"field": "a", "from": 12}, {"field": "b", "from": 9}, {"field": "a", "from": 24}],
			"diagnostics": {"every": 10}, "snapshot": {"every": 15}, "update": {"reference_every": 15}}`,
			`{"iterations": 2, "policy": {"from": "starter"}, "schedule": [{"field": "a", "from": 1}, {"field": "b", "from": 1}],
			"diagnostics": {"every": 1}, "snapshot": {"every": 1}, "update": {"reference_every": 1}}`},
	} {
		got, err := presetsOf(map[string][]byte{"p": []byte(c.preset)}, nil)
		require.NoError(t, err, c.name)
		require.JSONEq(t, c.want, string(got["p"].spec), c.name)
	}
}

// A cut spec is the same text whenever it is made: its digest names what is kept.
func TestCutIsStable(t *testing.T) {
	methodstest.Needs(t, "blockwise") // of the preset score
	one, err := presetsOf(files(t), []string{"score"})
	require.NoError(t, err)
	two, err := presetsOf(files(t), []string{"score"})
	require.NoError(t, err)
	require.Equal(t, one["score"].digest(), two["score"].digest())
	require.True(t, json.Valid(one["score"].spec))
}
