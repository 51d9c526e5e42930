package leftover

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// failures is a test that notes that it failed.
type failures struct {
	testing.TB
	cleanups []func()
	errors   []string
}

func (f *failures) Helper()                {}
func (f *failures) Cleanup(cleanup func()) { f.cleanups = append(f.cleanups, cleanup) }
func (f *failures) Error(args ...any)      { f.errors = append(f.errors, fmt.Sprint(args...)) }
func (f *failures) Errorf(format string, args ...any) {
	f.errors = append(f.errors, fmt.Sprintf(format, args...))
}

// A goroutine counts until it has ended.
func TestGoroutineIsLeft(t *testing.T) {
	end := make(chan struct{})
	for _, left := range []bool{true, false} {
		f := &failures{TB: t}
		Check(f)
		if left {
			go func() { <-end }()
		}
		f.cleanups[0]()
		require.Equal(t, left, len(f.errors) > 0)
	}
	close(end)
}

// A process counts until it has been waited for.
func TestProcessIsLeft(t *testing.T) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("SKIPPED: there is no /proc")
	}
	before := children(t)
	require.Empty(t, newChildren(t, before, 0))
	sleeps := exec.Command("sleep", "1000")
	require.NoError(t, sleeps.Start())
	require.Len(t, newChildren(t, before, time.Millisecond), 1)
	require.NoError(t, sleeps.Process.Kill())
	require.Eventually(t, func() bool {
		left := newChildren(t, before, 0)
		return len(left) == 1 && strings.Contains(left[0], " Z ")
	}, patience, time.Millisecond, "nobody has waited for it")
	require.Error(t, sleeps.Wait())
	require.Empty(t, newChildren(t, before, patience))
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
