package envs_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs"
)

// named is an environment of which nothing is asked but its name.
type named struct {
	envs.Environment
	name string
}

func (n named) Name() string { return n.name }

// What keeps an environment out of the registry is an error that says so.
func TestAdd(t *testing.T) {
	make := func(name string) func(*envs.Options) envs.Environment {
		return func(*envs.Options) envs.Environment { return named{name: name} }
	}
	require.NoError(t, envs.Add("test-added", "added", make("test-added")))
	env, err := envs.New("test-added", nil)
	require.NoError(t, err)
	require.Equal(t, "test-added", env.Name())
	require.ErrorContains(t, envs.Add("test-added", "", make("test-added")), `environment "test-added" is registered twice`)
	require.ErrorContains(t, envs.Add("Two words", "", make("Two words")), "needs a name of lower-case letters")
	require.ErrorContains(t, envs.Add("test-other", "", make("test-added")), `environment "test-other" says that its name is "test-added"`)
	require.ErrorContains(t, envs.Add("test-other", "", nil), "has no function that makes it")
}
