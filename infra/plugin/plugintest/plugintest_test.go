package plugintest

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/plugin"
)

func TestMissing(t *testing.T) {
	t.Setenv(Env, "")
	t.Setenv(plugin.Env, "")
	gone := fmt.Errorf("find it: %w", plugin.ErrMissing)
	require.True(t, Missing(gone))
	require.False(t, Missing(nil))
	require.False(t, Missing(plugin.ErrAltered), "a plugin that is not the pinned one is no missing one")
	require.False(t, Missing(errors.New("other")))
	t.Setenv(plugin.Env, "/nobody/plugin.so")
	require.False(t, Missing(gone), "somebody named it")
	t.Setenv(plugin.Env, "")
	t.Setenv(Env, "1")
	require.False(t, Missing(gone), "it is demanded")
}

// Where there is no plugin the test is skipped, and its rest is not run.
func TestNeedsSkips(t *testing.T) {
	t.Setenv(Env, "")
	t.Setenv(plugin.Env, "")
	t.Chdir(t.TempDir())
	if _, err := plugin.Path(""); err == nil {
		t.Skip("there is one above the folder of temporary files")
	}
	skipped := false
	t.Run("without", func(t *testing.T) {
		defer func() { skipped = t.Skipped() }()
		Needs(t)
		t.Error("it went on")
	})
	require.True(t, skipped)
}
