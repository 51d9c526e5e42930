package run

import (
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/model/tokenizer/chat"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// The spec has names of its own for the wordings of prompts, since it does not import environments:
// they are the same, and there is no other.
func TestProtocolNames(t *testing.T) {
	decode := func(name string) (spec.Train, error) {
		return spec.Decode(fmt.Appendf(nil, `{"environment": {"name": "bandit"}, "rollout": {"protocol": %q}}`, name), Known())
	}
	_, err := decode("other")
	var problems spec.Problems
	require.True(t, errors.As(err, &problems))
	require.Len(t, problems, 1)
	for _, name := range envs.Wordings(envs.AnyWording) {
		require.Contains(t, problems[0].Allowed, fmt.Sprintf("%q, ", name))
	}
	train, err := decode(envs.Ours)
	require.NoError(t, err)
	ours, err := trainingTask(train)
	require.NoError(t, err)
	for _, name := range envs.Wordings(envs.AnyWording) {
		subgoals := ""
		if name == envs.Hiper {
			subgoals = `"subgoals": true, `
		}
		train, err := spec.Decode(fmt.Appendf(nil, `{"policy": {"from": "folder:/m"}, "environment": {"name": "bandit"}, "rollout": {%s"protocol": %q}}`, subgoals, name), Known())
		require.NoError(t, err)
		task, err := trainingTask(train)
		require.NoError(t, err)
		require.Equal(t, name, task.Protocol.Wording)
		require.Equal(t, name == envs.Ours, reflect.DeepEqual(prompt(ours), prompt(task)), name)
	}
}

// prompt is the first prompt of a task.
func prompt(task *Task) []chat.Message {
	env := task.Env(0)
	return task.Protocol.First(env, env.Cases()[0])
}

// Templates are checked where they are written: for the run, a suite and an evaluation.
func TestProtocolTemplates(t *testing.T) {
	const good, bad = `text:[first]\n{turn}\n[turn]\n{state} {format}`, `text:[first]\n{turn}\n[turn]\n{stat} {format}`
	for name, c := range map[string]struct{ run, suite, path string }{
		"run":   {bad, good, "rollout.protocol"},
		"suite": {good, bad, "evaluation.suites[0].protocol"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := spec.Decode([]byte(`{"environment": {"name": "bandit"}, "rollout": {"protocol": "`+c.run+`"},
				"evaluation": {"suites": [{"suite": "in-distribution", "protocol": "`+c.suite+`"}]}}`), Known())
			var problems spec.Problems
			require.True(t, errors.As(err, &problems))
			require.Equal(t, spec.Problems{{
				Path: c.path, Found: `"{stat}" in [turn]`, Hint: `did you mean "state"?`,
				Allowed: "a placeholder of [turn]: {number}, {state}, {actions_left}, {format}, {max_new_tokens}",
			}}, problems)
		})
	}
	e, err := spec.DecodeEvaluate([]byte(`{"policy": "bandit-1", "protocol": "`+bad+`"}`), Known())
	require.NoError(t, err)
	train, err := spec.Decode([]byte(`{"environment": {"name": "bandit"}}`), Known())
	require.NoError(t, err)
	_, err = e.WithSuites(&train, Known())
	require.ErrorContains(t, err, `protocol: found "{stat}" in [turn]`)

	train, err = spec.Decode([]byte(`{"environment": {"name": "bandit"}, "rollout": {"protocol": "file:/nowhere"}}`), Known())
	require.ErrorContains(t, err, `found "file:/nowhere" (no such file or directory)`)
	require.Zero(t, train)
}
