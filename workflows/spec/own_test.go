package spec

import (
	"encoding/json"
	"testing"

	"github.com/reprise-rl/reprise/model/methods"
	"github.com/reprise-rl/reprise/model/methods/methodstest"
	"github.com/reprise-rl/reprise/model/option"

	"github.com/stretchr/testify/require"
)

// The options of single algorithms stand beside the other fields, written only where they differ from 0 and
// false, and are read back as they were.
func TestOwnOptionsStandBesideTheOthers(t *testing.T) {
	methodstest.Needs(t, "hiper", "empg", "istar")
	read, err := Decode([]byte(`{"environment": {"name": "bandit"}, "rollout": {"subgoals": true}, "policy": {"starter": {"tokenizer": 2}},
		"credit": {"algorithm": "hiper", "keep_reward": -0.3, "keep_shared": true, "changed_reward": 0, "bootstrap": false, "segment_lambda": 0.9}}`), Known{})
	require.NoError(t, err)
	want := option.Values{"keep_reward": -0.3, "keep_shared": true, "segment_lambda": 0.9}
	require.Equal(t, want, read.Credit.Own)

	b, err := SettingsOf(read).JSON()
	require.NoError(t, err)
	require.Contains(t, string(b), `"gamma":1,"keep_reward":-0.3,"keep_shared":true,"lambda":1,`)
	require.NotContains(t, string(b), "changed_reward")
	var back Settings
	require.NoError(t, json.Unmarshal(b, &back))
	require.Equal(t, SettingsOf(read), back)

	none := Default(FromStarter).Credit
	b, err = json.Marshal(none)
	require.NoError(t, err)
	for _, o := range methods.Options() {
		require.NotContains(t, string(b), `"`+o.Name+`"`)
	}
	require.NoError(t, json.Unmarshal(b, &back.Credit))
	require.Equal(t, none, back.Credit, "what was there before is gone")

	for text, path := range map[string]string{`{"beta": true}`: "credit.beta", `{"code_form": 1}`: "credit.code_form", `{"clarity": "1"}`: "credit.clarity"} {
		require.ErrorContains(t, json.Unmarshal([]byte(text), &back.Credit), path)
	}

	_, err = Decode([]byte(`{"environment": {"name": "bandit"}, "credit": {"algorithm": "empg", "clarity": 0, "keep_shared": 1, "entropy_gain": 101}}`), Known{})
	for _, path := range []string{"credit.clarity", "credit.keep_shared", "credit.entropy_gain"} {
		require.ErrorContains(t, err, path)
	}
}

// A difference of an option that one spec leaves out has its zero.
func TestDiffOfOwnOptions(t *testing.T) {
	methodstest.Needs(t, "istar", "agent_prm")
	one := Default(FromStarter)
	other := one
	other.Credit.Own = option.Values{"beta": 0.5, "code_form": true}
	require.Equal(t, Differences{{"credit.beta", "0", "0.5"}, {"credit.code_form", "false", "true"}}, Diff(one, other))
}
