package chaos

import (
	"cmp"
	"slices"
	"sync"
	"testing"
	"time"
)

// longest are the tests that take longest, in the order in which they begin, before all others. A long test that
// begins last runs alone in the end.
var longest = []string{
	"TestChaosMethods/turns", "TestChaosMethods/architectures", "TestChaosMethods/passes", "TestChaosForeign", "TestWorkerMemory", "TestChaosPieces", "TestGPU",
	"TestChaosMethods/models", "TestChaosMethods/adapters", "TestChaosMethods/steps", "TestChaosMethods/groups", "TestChaosMethods/freshness",
	"TestChaosOpenEnv", "TestChaosMethods/batches", "TestChaosRolloutBesideUpdates", "TestVersions", "TestChaosSweep", "TestChaosWorkers",
}

// places are how many tests may begin, and the tests that wait. There are eight, because the tests wait
// for time-outs as much as they compute.
var places = struct {
	sync.Mutex
	free    int
	waiting []waiting // in the order in which they begin
	came    map[string]bool
	opening sync.Once
	open    bool // all tests had the time to come
}{free: 8, came: map[string]bool{}}

// waiting is a test that waits for a place.
type waiting struct {
	rank  int           // in longest
	begin chan struct{} // closed when the test may begin
}

// missingTests are those of longest that did not come.
func missingTests() []string {
	return slices.DeleteFunc(slices.Clone(longest), func(name string) bool { return places.came[name] })
}

// beside has a test run beside others: it returns when the test may begin. The test gives its place back
// by end, or when it ends. With t.Parallel alone the subtests of a test begin after all other tests. The
// seconds that are printed for a test include its wait for a place.
func beside(t *testing.T) (end func()) {
	t.Helper()
	t.Parallel()
	w := waiting{slices.Index(longest, t.Name()), make(chan struct{})}
	if w.rank < 0 {
		w.rank = len(longest)
	}
	change := func(f func()) {
		places.Lock()
		defer places.Unlock()
		f()
		deal()
	}
	places.opening.Do(func() {
		time.AfterFunc(time.Second, func() { change(func() { places.open = true }) })
	})
	change(func() {
		places.came[t.Name()] = true
		places.waiting = append(places.waiting, w)
		slices.SortStableFunc(places.waiting, func(a, b waiting) int { return cmp.Compare(a.rank, b.rank) })
	})
	<-w.begin
	end = sync.OnceFunc(func() { change(func() { places.free++ }) })
	t.Cleanup(end)
	return end
}

// deal gives free places to tests that wait. The caller has locked places.
func deal() {
	for ; places.open && places.free > 0 && len(places.waiting) > 0; places.free-- {
		close(places.waiting[0].begin)
		places.waiting = places.waiting[1:]
	}
}
