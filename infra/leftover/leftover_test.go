package leftover

import (
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A process counts until it has been waited for, a goroutine until it has ended.
func TestWhatIsLeft(t *testing.T) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("SKIPPED: there is no /proc")
	}
	before, children := runtime.NumGoroutine(), Children(t)
	require.Empty(t, compare(t, before, children, 0))

	sleeps := exec.Command("sleep", "1000")
	require.NoError(t, sleeps.Start())
	left := compare(t, before, children, time.Millisecond)
	require.Len(t, left, 1)
	require.Contains(t, left[0], "a process is left: ")
	require.NoError(t, sleeps.Process.Kill())
	require.Eventually(t, func() bool {
		now := Children(t)
		return len(now) == len(children)+1 && len(compare(t, before, children, 0)) > 0
	}, patience, time.Millisecond, "nobody has waited for it")
	require.Error(t, sleeps.Wait())
	Gone(t, sleeps.Process.Pid)
	require.Empty(t, compare(t, before, children, patience))

	end := make(chan struct{})
	go func() { <-end }()
	left = compare(t, before, children, time.Millisecond)
	require.Len(t, left, 1)
	require.Contains(t, left[0], "TestWhatIsLeft")
	close(end)
	require.Empty(t, compare(t, before, children, patience))
}

func TestChildOf(t *testing.T) {
	child, ok := childOf(7, "12 (a (b) c) S 7 12 1")
	require.True(t, ok)
	require.Equal(t, "12 S a (b) c", child)
	for _, other := range []string{"12 (a) S 70 12", "12 (a 7) S 8 7", "", "12"} {
		_, ok = childOf(7, other)
		require.False(t, ok, other)
	}
}
