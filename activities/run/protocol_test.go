package run

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs"
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
	require.Contains(t, problems[0].Allowed, fmt.Sprintf("%q, %q", envs.Ragen, envs.Ours))
	ours := Task{}
	for _, name := range []string{envs.Ours, envs.Ragen} {
		train, err := decode(name)
		require.NoError(t, err)
		task, err := trainingTask(train)
		require.NoError(t, err)
		if name == envs.Ours {
			ours = *task
		}
		require.Equal(t, name == envs.Ours, task.Protocol == ours.Protocol, name)
		require.Contains(t, []string{name, ""}, task.Protocol.Wording)
	}
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
