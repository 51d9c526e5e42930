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
	require.Equal(t, fmt.Sprintf("one of %q, %q", envs.Ragen, envs.Ours), problems[0].Allowed)
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
