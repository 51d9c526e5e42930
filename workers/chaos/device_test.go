package chaos

import (
	"errors"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/device"
	"github.com/reprise-rl/reprise/workers"
	"github.com/reprise-rl/reprise/workflows"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// exits waits until the process has ended by itself for a cause, and has said why.
func (p *process) exits(t *testing.T, cause device.Cause, reason string) {
	t.Helper()
	select {
	case <-p.ended:
	case <-time.After(patience):
		require.Fail(t, p.name+" did not end", "within %s; its log:\n%s", patience, p.tail())
	}
	var exit *exec.ExitError
	require.True(t, errors.As(p.err, &exit), "%v\n%s", p.err, p.tail())
	require.Equal(t, workers.ExitCode(&device.Ending{Cause: cause}), exit.ExitCode(), p.tail())
	require.Contains(t, p.text(), "the device cannot be used in this process any more")
	require.Contains(t, p.text(), reason)
}

// short is the run of one turn with the shortest bound that a spec may have, so that a
// device is stuck soon.
var short = scene{lane: "undisturbed-short", preset: "chaos", change: map[string]any{"limits.activity_seconds": 5}}

// disturbed runs a scene whose first worker has a fault, and whose next worker starts when
// the first has ended.
func (s *scene) disturbed(t *testing.T, fault string, ended func(*lane, *process), flags ...string) {
	t.Helper()
	want := s.reference(t)
	l := newLane(t, sharedStack(t)).withStarterOf(s)
	first := l.worker(workerOptions{fault: fault, trace: true, flags: flags})
	l.start(chaosRun, s.spec(t))
	ended(l, first)
	l.worker(workerOptions{})
	l.completes(chaosRun)
	l.isAs(chaosRun, want)
}

// TestDeviceOutOfMemoryOnce lets the device run out of memory once: the next process continues.
func TestDeviceOutOfMemoryOnce(t *testing.T) {
	beside(t)
	single.disturbed(t, "Update#1/oom/1", func(_ *lane, p *process) {
		p.exits(t, device.OutOfMemory, "Out of memory allocating 281474976710656 bytes")
		require.Contains(t, p.text(), "the spec is estimated to need")
	})
}

// TestDeviceOutOfMemoryAlways lets the next process run out of memory too: the run pauses with
// what was asked for, and continues when it is resumed on a device that has the memory.
func TestDeviceOutOfMemoryAlways(t *testing.T) {
	beside(t)
	want := single.reference(t)
	l := newLane(t, sharedStack(t)).withStarterOf(&single)
	first := l.worker(workerOptions{fault: "Update#1/oom/1", trace: true})
	l.start(chaosRun, single.spec(t))
	first.exits(t, device.OutOfMemory, "Out of memory allocating 281474976710656 bytes")
	l.worker(workerOptions{fault: "Update#1/oom/1", trace: true}).exits(t, device.OutOfMemory, "Out of memory allocating 281474976710656 bytes")
	l.worker(workerOptions{})
	s := l.reaches(chaosRun, "it has paused by itself", func(s workflows.Status) bool { return s.PausedBy != nil })
	require.Equal(t, activities.KindOutOfMemory, s.PausedBy.Kind)
	require.Equal(t, 2, s.PausedBy.OutOfMemory)
	require.Contains(t, s.PausedBy.Error, "Out of memory allocating 281474976710656 bytes")
	require.Contains(t, s.PausedBy.Error, "the spec is estimated to need")
	_, err := l.update(chaosRun, "resume", "")
	require.NoError(t, err)
	l.completes(chaosRun)
	l.isAs(chaosRun, want)
}

// TestStepFailsAlways has a step fail on each device that the run finds: after as many
// failures as its spec allows the run pauses with the reason, and continues when it is resumed.
func TestStepFailsAlways(t *testing.T) {
	beside(t)
	want := single.reference(t)
	l := newLane(t, sharedStack(t)).withStarterOf(&single)
	l.start(chaosRun, single.spec(t))
	for range spec.DefaultStepFailures {
		l.worker(workerOptions{fault: "Score#1/lost/1"}).exits(t, device.Failed, "UNAVAILABLE: the device is gone")
	}
	sound := l.worker(workerOptions{trace: true})
	s := l.reaches(chaosRun, "it has paused by itself", func(s workflows.Status) bool { return s.PausedBy != nil })
	require.True(t, s.Paused)
	require.Regexp(t, `^paused: Score: iteration 1 .* failed 5 times in a row$`, s.Phase)
	require.Equal(t, activities.KindDeviceFailed, s.PausedBy.Kind)
	require.Equal(t, spec.DefaultStepFailures, s.PausedBy.Count)
	require.Contains(t, s.PausedBy.Error, "UNAVAILABLE: the device is gone")
	require.Contains(t, s.PausedBy.Do, "--name resume")
	require.NotContains(t, sound.text(), " took", "a run that has paused gives the device back")
	_, err := l.update(chaosRun, "resume", "")
	require.NoError(t, err)
	l.completes(chaosRun)
	l.isAs(chaosRun, want)
}

// TestDeviceLost loses the device while it generates.
func TestDeviceLost(t *testing.T) {
	beside(t)
	single.disturbed(t, "Generate#1/lost/1", func(_ *lane, p *process) {
		p.exits(t, device.Failed, "UNAVAILABLE: the device is gone")
	})
}

// TestDevicePoisoned has an execution after which no other succeeds in that process.
func TestDevicePoisoned(t *testing.T) {
	beside(t)
	single.disturbed(t, "Score#2/poisoned/1", func(_ *lane, p *process) {
		p.exits(t, device.Failed, "CUDA_ERROR_ILLEGAL_ADDRESS")
	})
}

// TestDeviceUnclear has errors that do not say what failed: two are tried again, the third
// is a failure of the device.
func TestDeviceUnclear(t *testing.T) {
	beside(t)
	single.disturbed(t, "Update#0/unclear/1,Update#1/unclear/1,Update#1/unclear/2,Update#1/unclear/3", func(_ *lane, p *process) {
		p.exits(t, device.Failed, "3 times in a row: ")
	})
}

// TestDeviceStuck has an execution that never ends: the process ends, with what was stuck.
func TestDeviceStuck(t *testing.T) {
	beside(t)
	short.disturbed(t, "Update#1/stuck/1", func(_ *lane, p *process) {
		p.exits(t, device.Stuck, "the device has ended nothing for 15s; the step's bound is 10s")
		require.Contains(t, p.text(), "Update (activity ")
		require.Contains(t, p.text(), "of run "+chaosRun)
	})
}

// TestDeviceStuckAndBack has an execution that outlasts its step's bound and ends before the
// device counts as stuck: the worker stays, and the next attempt waits for the device.
func TestDeviceStuckAndBack(t *testing.T) {
	beside(t)
	want := short.reference(t)
	l := newLane(t, sharedStack(t)).withStarterOf(&short)
	p := l.worker(workerOptions{fault: "Update#1/stall:12000/1", trace: true})
	l.start(chaosRun, short.spec(t))
	l.completes(chaosRun)
	require.True(t, p.alive(), p.tail())
	require.Contains(t, p.text(), "Update#1/stall:12000/1 goes on")
	require.Contains(t, l.timeline(t.Context(), chaosRun, ""), "StartToClose", "the bound was over before")
	l.isAs(chaosRun, want)
}

// TestSelfTestDiffers has a device that does not repeat its bits: it is refused before it
// trains. Its programs are not those that the other workers share, with which this machine
// has passed.
func TestSelfTestDiffers(t *testing.T) {
	beside(t)
	single.disturbed(t, "Restore/differs/1", func(l *lane, p *process) {
		p.exits(t, device.Refused, "self-test: device does not repeat its bits: a generation gave ")
		require.NotContains(t, p.text(), "Generate took")
	}, "--program-cache", "none")
}
