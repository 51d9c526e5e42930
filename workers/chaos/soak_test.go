package chaos

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/procfs"
	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/dev"
	"github.com/reprise-rl/reprise/infra/human"
	"github.com/reprise-rl/reprise/infra/store"
)

// soak is how many iterations TestSoak's run has.
var soak = flag.Int("soak", 0, "how many iterations TestSoak's run has, as 3000")

// window is how many iterations a line of the soak's table is about. What a process needs at all is there after the first.
const window = 300

// flat is what may grow from the second window to the last: 5 %, of medians.
const flat = 1.05

// stretch is what a window of a soak has measured.
type stretch struct {
	began    time.Time
	seconds  float64 // an iteration
	memory   []int64 // of the worker, resident
	handles  []int64 // that the worker has open
	servers  []int64 // resident, of both
	objects  int     // more in the bucket
	database int64   // bytes more in the server's database
}

// TestSoak trains a policy of two layers for long on one worker: the worker's memory and handles, and what the bucket and the
// server's database get in an iteration, stay as they are.
func TestSoak(t *testing.T) {
	if *soak == 0 {
		t.Skip("it takes a quarter of an hour: `make soak` runs it")
	}
	require.GreaterOrEqual(t, *soak, 3*window, "-soak")
	patience = 4 * time.Hour
	stack := ownStack(t, dev.Options{Ephemeral: true})
	l := newLane(t, stack)
	worker := l.worker(workerOptions{heartbeat: sizeHeartbeat})
	change := small(map[string]any{
		"iterations": *soak, "rollout.max_new_tokens": 16, "collapse": map[string]any{"on_detection": "off"},
		"snapshot": map[string]any{"every": 10, "retain": 2},
	})
	l.start(chaosRun, preset(t, "bandit-demo", change))
	var all []stretch
	objects, database := 0, int64(0)
	next := func() {
		if n := len(all); n > 0 {
			s := &all[n-1]
			s.seconds = time.Since(s.began).Seconds() / window
			has, size := l.objects(), databaseBytes(t, stack)
			s.objects, s.database = has-objects, size-database
			objects, database = has, size
			t.Log(s.line(n))
		}
		all = append(all, stretch{began: time.Now()})
	}
	next()
	for at := 0; at < *soak; time.Sleep(time.Second) {
		s, err := l.status(chaosRun)
		if err != nil || s.Iteration == 0 {
			continue // it is being resolved, warm-started or continued
		}
		require.Nil(t, s.PausedBy)
		for at = s.Iteration; at >= len(all)*window; {
			next()
		}
		all[len(all)-1].look(t, worker)
	}
	l.completes(chaosRun)
	l.verifies(chaosRun)
	all = all[:len(all)-1] // not whole
	first, last := all[1], all[len(all)-1]
	growth := func(what string, a, b float64) float64 {
		t.Logf("%s: %.3g to %.3g, × %.3f", what, a, b, b/a)
		return b / a
	}
	growth("seconds an iteration", first.seconds, last.seconds)
	growth("resident in the servers, bytes", float64(median(first.servers)), float64(median(last.servers)))
	growth("the server's database, bytes an iteration", float64(first.database)/window, float64(last.database)/window)
	require.LessOrEqual(t, growth("resident in the worker, bytes", float64(median(first.memory)), float64(median(last.memory))), flat)
	require.LessOrEqual(t, growth("open handles of the worker", float64(median(first.handles)), float64(median(last.handles))), flat)
	require.LessOrEqual(t, growth("objects an iteration", float64(first.objects)/window, float64(last.objects)/window), flat)
}

func (s stretch) line(n int) string {
	return fmt.Sprintf("iterations to %d: %.3f s each; the worker %s and %d handles; the servers %s; %d objects and %s of database an iteration",
		n*window, s.seconds, human.Bytes(median(s.memory)), median(s.handles), human.Bytes(median(s.servers)), s.objects/window, human.Bytes(s.database/window))
}

// look measures the processes as they are now.
func (s *stretch) look(t *testing.T, worker *process) {
	t.Helper()
	_, resident := resident(t, worker)
	proc, err := procfs.NewProc(worker.pid)
	require.NoError(t, err)
	handles, err := proc.FileDescriptorsLen()
	require.NoError(t, err)
	s.memory, s.handles, s.servers = append(s.memory, resident), append(s.handles, int64(handles)), append(s.servers, serversResident(t, worker.pid))
}

// serversResident is the memory of this process's children other than the worker.
func serversResident(t *testing.T, worker int) (sum int64) {
	t.Helper()
	all, err := procfs.AllProcs()
	require.NoError(t, err)
	for _, p := range all {
		stat, err := p.Stat()
		if err == nil && stat.PPID == os.Getpid() && p.PID != worker {
			sum += int64(stat.ResidentMemory())
		}
	}
	return sum
}

// objects counts what the bucket has of the lane.
func (l *lane) objects() (n int) {
	l.t.Helper()
	for _, err := range l.store.List(l.t.Context(), store.RunsDir+"/") {
		require.NoError(l.t, err)
		n++
	}
	return n
}

// databaseBytes is the size of the server's database.
func databaseBytes(t *testing.T, stack *dev.Stack) (sum int64) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(stack.Dir(), "temporal.db*"))
	require.NoError(t, err)
	for _, name := range files {
		if info, err := os.Stat(name); err == nil { // the server may remove its log
			sum += info.Size()
		}
	}
	return sum
}

func median(of []int64) int64 {
	if len(of) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(of))
	return sorted[len(sorted)/2]
}
