package malloc

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// These tests run with glibc on Linux.
func TestChoices(t *testing.T) {
	linux := runtime.GOOS == "linux"
	require.Equal(t, linux, Keep())
	require.Equal(t, linux, Keep(), "again")
	require.Equal(t, linux, ReturnLarge())
	require.Equal(t, linux, ReturnLarge(), "again")
	require.False(t, Keep(), "a large model's choice stays")
	Trim()
}
