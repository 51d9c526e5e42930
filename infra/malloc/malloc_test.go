package malloc

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReturnLarge(t *testing.T) {
	require.Equal(t, runtime.GOOS == "linux", ReturnLarge(), "this test runs with glibc")
	require.Equal(t, runtime.GOOS == "linux", ReturnLarge(), "again")
	Trim()
}
