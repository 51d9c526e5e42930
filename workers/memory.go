package workers

import (
	"os"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

// memoryBase is what a worker needs besides a run's steps: the store's cache, the parts of an
// upload, tokenizers, contexts, the SDK.
const memoryBase = 512 << 20

// memoryLimit is Go's memory limit of a worker. Without one the heap grows to twice of what is
// in use, which a large model's tensors do not leave room for. It only grows: a heap near
// the limit would keep the collector running.
type memoryLimit struct {
	mu    sync.Mutex
	bytes int64
	set   func(int64) // debug.SetMemoryLimit
	live  func() int64
}

// newMemoryLimit returns the limit of this process, nil if GOMEMLIMIT sets one.
func newMemoryLimit() *memoryLimit {
	if os.Getenv("GOMEMLIMIT") != "" {
		return nil
	}
	return &memoryLimit{set: func(bytes int64) { debug.SetMemoryLimit(bytes) }, live: liveHeap}
}

// needs raises the limit to what a run's steps need, and to twice what is in use now, so that
// a wrong estimate costs memory and not time.
func (m *memoryLimit) needs(bytes int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if limit := max(memoryBase+bytes*3/2, 2*m.live()); limit > m.bytes {
		m.bytes = limit
		m.set(limit)
	}
}

// liveHeap is what the last collection left of Go's heap. Buffers of the device are not in it.
func liveHeap() int64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return int64(sample[0].Value.Uint64())
}
