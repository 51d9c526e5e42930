package chaos

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"

	"github.com/reprise-rl/reprise/workers/faults"
)

// kinds are all kinds of activities of a run, in the order they first come.
var kinds = []string{
	"Resolve", "WarmStart", "Restore", "Generate", "Step", "Measure", "Select", "Score", "Diagnose", "Credit", "Update", "Snapshot", "Commit",
}

// TestChaosKills kills a worker in each kind of activity, the phases in turn;
// with -full in each kind and each phase. Each list is one run: every process
// dies of the next fault.
func TestChaosKills(t *testing.T) {
	t.Parallel()
	want := reference(t)
	type run struct {
		name   string
		anew   bool // with its own warm start
		faults []string
	}
	runs := []run{
		{"start", true, []string{"Resolve/written/1", "WarmStart/inside/1", "Restore/inside/1", "Generate/written/1"}},
		{"middle", false, []string{"Measure/inside/1", "Step/written/2", "Select/begin/1", "Score/written/1", "Diagnose/inside/1"}},
		{"end", false, []string{"Credit/inside/1", "Update/written/1", "Snapshot/inside/1", "Commit/written/1"}},
	}
	if *full {
		for _, kind := range kinds {
			r := run{name: kind, anew: true}
			for _, phase := range append(faults.Phases, "delay:15") {
				r.faults = append(r.faults, fmt.Sprintf("%s/%s/1", kind, phase))
			}
			runs = append(runs, r)
		}
	}
	for _, r := range runs {
		t.Run(r.name, func(t *testing.T) {
			beside(t)
			l := newLane(t, sharedStack(t))
			if !r.anew {
				l.withStarter()
			}
			stop := l.keep(r.faults...)
			l.start(chaosRun, preset(t, "chaos", nil))
			l.completes(chaosRun)
			stop()
			l.verifies(chaosRun)
			same(t, want, reach(t, l.store, chaosRun))
		})
	}
}

// TestChaosRandom kills workers at random moments; with -full, in runs of several
// turns too.
func TestChaosRandom(t *testing.T) {
	t.Parallel()
	left, scenes := 1, []*scene{&single}
	if *full {
		left, scenes = *kills, append(scenes, &turns)
	}
	t.Logf("seed %d, %d kills", *seed, left)
	for i, s := range scenes {
		t.Run(s.preset, func(t *testing.T) {
			beside(t)
			s.killedAtRandom(t, left, rand.New(rand.NewPCG(*seed, uint64(i))))
		})
	}
}

// killedAtRandom disturbs runs until so many workers were killed.
func (s *scene) killedAtRandom(t *testing.T, left int, moments *rand.Rand) {
	t.Helper()
	want := s.reference(t)
	for left > 0 {
		l := newLane(t, sharedStack(t)).withStarterOf(s)
		l.start(chaosRun, s.spec(t))
		killed := 0
		for {
			p := l.worker(workerOptions{})
			moment := time.Duration(moments.IntN(6000)) * time.Millisecond
			if left == 0 {
				l.completes(chaosRun)
				p.kill()
				break
			}
			time.Sleep(moment) // what is tested is any moment
			p.kill()
			left, killed = left-1, killed+1
			t.Logf("killed %v after the worker's start", moment)
			if is, err := l.state(chaosRun); err == nil && is == enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED {
				break
			}
		}
		l.keepsBut(chaosRun, s.deeds, killed)
		l.verifies(chaosRun)
		same(t, want, reach(t, l.store, chaosRun))
	}
}
