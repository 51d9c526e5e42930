package stdio

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/reprise-rl/reprise/envs/foreign/standin"
)

// A program that serves an environment's processes hides from them; package keeper shows what that does.
func TestOpenHides(t *testing.T) {
	require.NoError(t, unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0))
	open(t, standin.None, Config{})
	shown, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
	require.NoError(t, err)
	require.Zero(t, shown)
}
