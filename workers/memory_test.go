package workers

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// The limit follows what runs need, grows only, and stays away from what is in use.
func TestMemoryLimit(t *testing.T) {
	var set []int64
	live := int64(0)
	m := &memoryLimit{set: func(bytes int64) { set = append(set, bytes) }, live: func() int64 { return live }}
	m.needs(1 << 20)
	m.needs(0)
	m.needs(4 << 30)
	m.needs(1 << 20)
	live = 5 << 30 // the estimate was wrong
	m.needs(1 << 20)
	require.Equal(t, []int64{memoryBase + 3<<19, memoryBase + 6<<30, 10 << 30}, set)

	t.Setenv("GOMEMLIMIT", "3GiB")
	require.Nil(t, newMemoryLimit())
	t.Setenv("GOMEMLIMIT", "")
	require.NotNil(t, newMemoryLimit())

	held := make([]byte, 64<<20)
	runtime.GC()
	require.Greater(t, liveHeap(), int64(len(held)))
	runtime.KeepAlive(held)
}
