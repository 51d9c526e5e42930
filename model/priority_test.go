package model

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// XLA's threads have a lower priority than the process.
func TestXLARunsBehind(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("threads have priorities of their own on Linux alone")
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	own, err := threadNiceness()
	require.NoError(t, err)
	testDevice(t)
	lower := map[string]int{}
	tasks, err := filepath.Glob("/proc/self/task/*/stat")
	require.NoError(t, err)
	for _, path := range tasks {
		b, err := os.ReadFile(path)
		if err != nil {
			continue // the thread has ended
		}
		text := string(b)
		name := text[strings.IndexByte(text, '(')+1 : strings.LastIndexByte(text, ')')]
		fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
		nice, err := strconv.Atoi(fields[16]) // field 19 of the line
		require.NoError(t, err)
		if nice == min(own+niceness, 19) && own < 19 {
			lower[name]++
		}
	}
	t.Logf("%d threads, behind: %v", len(tasks), lower)
	require.NotEmpty(t, lower)

	var inside int
	behind(func() { inside, err = threadNiceness() })
	require.NoError(t, err)
	require.Equal(t, min(own+niceness, 19), inside)
	after, err := threadNiceness()
	require.NoError(t, err)
	require.Equal(t, own, after)
}
