package devtest

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/dev"
)

func TestMissing(t *testing.T) {
	for _, name := range []string{Env, dev.EnvTemporal, dev.EnvVersity} {
		t.Setenv(name, "")
	}
	gone := fmt.Errorf("start it: %w", dev.ErrNoTool)
	require.True(t, Missing(gone))
	require.False(t, Missing(nil))
	require.False(t, Missing(errors.New("the port is in use")))
	for _, name := range []string{Env, dev.EnvTemporal, dev.EnvVersity} {
		t.Setenv(name, "x")
		require.False(t, Missing(gone), name)
		t.Setenv(name, "")
	}
	skipped := false
	t.Run("without", func(t *testing.T) {
		defer func() { skipped = t.Skipped() }()
		Needs(t, gone)
		t.Error("it went on")
	})
	require.True(t, skipped)
}
