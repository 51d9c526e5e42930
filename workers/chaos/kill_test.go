package chaos

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
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
		phases := append(slices.Clone(faults.Phases), "delay:15")
		for _, kind := range kinds {
			// A step that is lost limits.step_failures times in a row, by default 5, pauses its run.
			for i, some := range [][]string{phases[:3], phases[3:]} {
				r := run{name: fmt.Sprintf("%s-%d", kind, i+1), anew: true}
				for _, phase := range some {
					r.faults = append(r.faults, fmt.Sprintf("%s/%s/1", kind, phase))
				}
				runs = append(runs, r)
			}
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
			l.isAs(chaosRun, want)
		})
	}
}

// TestChaosRandom kills workers at random moments; with -full, in runs of several
// turns too, and with -part in those of all presets.
func TestChaosRandom(t *testing.T) {
	t.Parallel()
	if *part != "" {
		killsInPart(t)
		return
	}
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

// resumes resumes a run that has paused by itself, because one of its steps was lost too often in a row.
func (l *lane) resumes(run string) {
	l.t.Helper()
	if s, err := l.status(run); err == nil && s.PausedBy != nil {
		l.t.Log(s.Phase)
		_, err = l.update(run, "resume", "")
		require.NoError(l.t, err)
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
			l.resumes(chaosRun)
			moment := time.Duration(moments.IntN(6000)) * time.Millisecond
			if left == 0 {
				eventually(t, patience, chaosRun+" ends", func() error {
					l.resumes(chaosRun)
					is, err := l.state(chaosRun)
					if err == nil && is == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
						err = errors.New("it is running")
					}
					return err
				})
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
		l.isAs(chaosRun, want)
	}
}
