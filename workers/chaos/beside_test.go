package chaos

import (
	"slices"
	"sync"
	"testing"
	"time"
)

// besides is how many tests run beside each other. They wait for time-outs as much as they compute.
const besides = 8

// longest are the tests that take longest, and they begin first. A long test that begins last runs alone in the end.
var longest = []string{
	"TestChaosMethods/turns", "TestChaosMethods/architectures", "TestChaosMethods/passes", "TestChaosForeign", "TestWorkerMemory", "TestChaosPieces", "TestGPU",
	"TestChaosMethods/models", "TestChaosMethods/adapters", "TestChaosMethods/steps", "TestChaosMethods/groups", "TestChaosMethods/freshness",
	"TestChaosOpenEnv", "TestChaosMethods/batches", "TestChaosRolloutBesideUpdates", "TestChaosSweep", "TestChaosWorkers",
}

// places are those of tests that run, and the tests that wait for one.
var places = struct {
	sync.Mutex
	free    int
	waiting []waiting
	dealing bool // once all tests had the time to come
}{free: besides}

// waiting is a test that waits for its place.
type waiting struct {
	rank  int           // in longest; lower ones begin first
	begin chan struct{} // closed when the test may begin
}

// beside has a test run beside others: it returns when the test may begin. The place is given up by end,
// or when the test ends. testing alone would have the subtests of a test begin after all others. The time
// that it tells of a test has the wait for a place in it.
func beside(t *testing.T) (end func()) {
	t.Helper()
	t.Parallel()
	w := waiting{slices.Index(longest, t.Name()), make(chan struct{})}
	if w.rank < 0 {
		w.rank = len(longest)
	}
	places.Lock()
	if places.waiting == nil && !places.dealing {
		time.AfterFunc(time.Second, func() {
			places.Lock()
			defer places.Unlock()
			places.dealing = true
			deal()
		})
	}
	places.waiting = append(places.waiting, w)
	deal()
	places.Unlock()
	<-w.begin
	end = sync.OnceFunc(func() {
		places.Lock()
		defer places.Unlock()
		places.free++
		deal()
	})
	t.Cleanup(end)
	return end
}

// deal gives free places to tests that wait. The caller has places.
func deal() {
	for places.dealing && places.free > 0 && len(places.waiting) > 0 {
		first := 0
		for i, w := range places.waiting {
			if w.rank < places.waiting[first].rank {
				first = i
			}
		}
		close(places.waiting[first].begin)
		places.waiting = slices.Delete(places.waiting, first, first+1)
		places.free--
	}
}
