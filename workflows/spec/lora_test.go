package spec_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/workflows/spec"
)

// allMaps are the linear maps of a layer.
var allMaps = []string{"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}

func withPolicy(policy string) string {
	return `{"environment":{"name":"bandit"},"policy":` + policy + `}`
}

// A spec has adapters only if it says so, with defaults for what it leaves out.
func TestLoRAHasDefaults(t *testing.T) {
	require.Nil(t, decode(t, withPolicy(`{}`)).Policy.LoRA)
	require.Equal(t, &spec.LoRA{Rank: 8, Alpha: 16, Targets: allMaps, Seed: 1}, decode(t, withPolicy(`{"lora":{}}`)).Policy.LoRA)
	require.Equal(t, &spec.LoRA{Rank: 64, Alpha: 64, Targets: allMaps, Seed: 1}, decode(t, withPolicy(`{"from":"hf:a/b","lora":{}}`)).Policy.LoRA)
	require.Equal(t, &spec.LoRA{Rank: 2, Alpha: 0.5, Targets: []string{"q_proj", "down_proj"}, RSLoRA: true, Seed: 7},
		decode(t, withPolicy(`{"lora":{"rank":2,"alpha":0.5,"targets":["down_proj","q_proj"],"rslora":true,"seed":7}}`)).Policy.LoRA)
	require.Equal(t, allMaps, decode(t, withPolicy(`{"lora":{"targets":"all-linear"}}`)).Policy.LoRA.Targets)
}

// What is written comes back, and differs from another spec field by field.
func TestLoRAIsWritten(t *testing.T) {
	one := decode(t, withPolicy(`{"lora":{"rank":2}}`))
	b, err := one.JSON()
	require.NoError(t, err)
	require.Equal(t, one, decode(t, string(b)))
	other := decode(t, withPolicy(`{"lora":{"rank":4,"targets":["q_proj"]}}`))
	require.Regexp(t, `^policy.lora.rank: 2, and 4\npolicy.lora.targets: \["q_proj","k_proj",.*, and \["q_proj"\]$`, spec.Diff(one, other).String())
	full := decode(t, withPolicy(`{}`))
	require.Contains(t, spec.Diff(one, full).String(), "policy.lora.rank: 2, and nothing")
	b, err = full.JSON()
	require.NoError(t, err)
	require.NotContains(t, string(b), "lora")
}

func TestTargetsAreNames(t *testing.T) {
	for targets, problem := range map[string]string{
		`["q_proj","q"]`:      `policy.lora.targets[1]: found "q"; allowed: one of`,
		`["q_proj","q_proj"]`: `policy.lora.targets[1]: found`,
		`[]`:                  `policy.lora.targets: found an array of 0; allowed: "all-linear" or an array of some of "q_proj"`,
		`"q_proj"`:            `policy.lora.targets: found "q_proj"`,
		`null`:                `policy.lora.targets: found null`,
	} {
		_, err := spec.Decode([]byte(withPolicy(`{"lora":{"targets":`+targets+`}}`)), known)
		require.ErrorContains(t, err, problem, targets)
	}
}

// Adapters that there are say how they are made; a spec that says otherwise is refused.
func TestPolicyStartsWithAdapters(t *testing.T) {
	theirs := spec.LoRA{Rank: 4, Alpha: 8, Targets: []string{"q_proj"}}
	start := func(policy string) (spec.Policy, error) {
		document := withPolicy(policy)
		return decode(t, document).Policy.Starting(theirs, "hf:a/base", []byte(document))
	}
	p, err := start(`{"from":"folder:/adapters"}`)
	require.NoError(t, err)
	require.Equal(t, &spec.LoRA{Rank: 4, Alpha: 8, Targets: []string{"q_proj"}, Seed: 1}, p.LoRA)
	require.Equal(t, "hf:a/base", p.Base)

	p, err = start(`{"from":"folder:/adapters","base":"folder:/base","lora":{"rank":4}}`)
	require.NoError(t, err)
	require.Equal(t, "folder:/base", p.Base)
	require.Equal(t, 8.0, p.LoRA.Alpha, "a default gives way")

	_, err = start(`{"from":"folder:/adapters","lora":{"rank":8,"alpha":8,"targets":"all-linear","rslora":true}}`)
	require.EqualError(t, err, `3 problems:
  policy.lora.rank: found 8; allowed: 4 (policy.from names adapters that have it; leave it out)
  policy.lora.targets: found q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj; allowed: q_proj (policy.from names adapters that have it; leave it out)
  policy.lora.rslora: found true; allowed: false (policy.from names adapters that have it; leave it out)`)

	require.Equal(t, "hf:Qwen/Qwen2.5-0.5B", spec.HubBase("Qwen/Qwen2.5-0.5B"))
	for _, name := range []string{"", "/models/base", "./base", "../base", "a/b/c"} {
		require.Empty(t, spec.HubBase(name), name)
	}
}
