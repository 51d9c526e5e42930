package device

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/xla/failure"
)

// ownEngine is an engine of a test's own on a device of its own, with the endings that
// it reports.
func ownEngine(t *testing.T, o model.DeviceOptions) (*Engine, chan *Ending) {
	t.Helper()
	e := opened(t, o)
	endings := make(chan *Ending, 8)
	e.Ends = func(end *Ending) { endings <- end }
	return e, endings
}

// fail fails the executions of a program from now on, as PJRT would.
func (e *Engine) fail(program, text string) {
	e.device.Before = func(name string) error {
		if name == program {
			return errors.New(text)
		}
		return nil
	}
}

const (
	exhausted = "PJRT error (code=8): Out of memory allocating 281474976710656 bytes."
	gone      = "PJRT error (code=13): INTERNAL: CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered"
	strange   = "PJRT error (code=2): UNKNOWN: something"
)

// The errors of a device end its worker by their kinds: one run, one failure after the other.
func TestFailuresEndTheWorker(t *testing.T) {
	e, endings := ownEngine(t, compiling)
	r := resolved(t, "failures", tinySpec(t))
	r.Device = &Device{Store: r.store, Engine: e}
	restored := r.restore(t, activities.RestoreInput{Version: activities.Version{Run: r.Run}})
	r.state, r.programs = restored.State, restored.Programs
	iterate := func() error {
		_, err := r.Iterate(t.Context(), r.iteration())
		return err
	}

	// An error that does not say what failed is tried again twice, each time it comes up.
	e.fail("decode", strange)
	for range unclearTries {
		err := iterate()
		require.ErrorIs(t, err, failure.ErrDeviceUnclear)
		require.Empty(t, run.KindOf(err), "tried again")
	}
	e.device.Before = nil
	r.iterate(t)
	e.fail("decode", strange)
	for range unclearTries {
		require.Empty(t, run.KindOf(iterate()), "the count began anew")
	}
	require.Empty(t, endings)
	err := iterate()
	require.Equal(t, activities.KindDeviceFailed, run.KindOf(err))
	require.ErrorContains(t, err, "3 times in a row: ")
	require.Equal(t, Failed, (<-endings).Cause)
	require.ErrorIs(t, iterate(), activities.ErrDraining, "nothing runs here any more")

	// A device that has failed is left as it is.
	e.draining.Store(false)
	e.fail("decode", gone)
	err = iterate()
	require.ErrorIs(t, err, activities.ErrDeviceFailed)
	require.Equal(t, activities.KindDeviceFailed, run.KindOf(err))
	require.ErrorContains(t, err, "CUDA_ERROR_ILLEGAL_ADDRESS")
	require.Equal(t, Failed, (<-endings).Cause)
	require.NotNil(t, e.state)

	// Where memory is exhausted, all is freed. The error says what was asked for and what
	// the spec needs.
	e.draining.Store(false)
	e.fail("decode", exhausted+strings.Repeat(" one more buffer,", 1000))
	err = iterate()
	require.ErrorIs(t, err, activities.ErrOutOfMemory)
	require.Equal(t, activities.KindOutOfMemory, run.KindOf(err))
	require.ErrorContains(t, err, "Out of memory allocating 281474976710656 bytes")
	require.ErrorContains(t, err, "the spec is estimated to need ")
	require.ErrorContains(t, err, `; set update.recompute to "always"`)
	require.Less(t, len(err.Error()), 1500)
	require.Nil(t, e.state)
	require.Empty(t, e.programs)
	end := <-endings
	require.Equal(t, OutOfMemory, end.Cause)
	require.ErrorContains(t, end, "device out of memory: ")
	require.ErrorContains(t, end, "281474976710656 bytes")
}

// An update that failed while it wrote is scheduled anew after a restore, which does not
// begin the count of its unclear errors anew.
func TestUnclearErrorsOfAnUpdateAreCountedAcrossRestores(t *testing.T) {
	e, endings := ownEngine(t, compiling)
	env := (&testsuite.WorkflowTestSuite{}).NewTestActivityEnvironment()
	settle := func(ctx context.Context, text string) error {
		if text == "" {
			return e.settle(ctx, nil, nil)
		}
		return e.settle(ctx, nil, fmt.Errorf("%w: %s", failure.ErrDeviceUnclear, text))
	}
	for _, name := range []string{"Update", "Restore"} {
		env.RegisterActivityWithOptions(settle, activity.RegisterOptions{Name: name})
	}
	step := func(name, text string) {
		_, err := env.ExecuteActivity(name, text)
		require.Equal(t, text == "", err == nil)
	}
	for _, name := range []string{"Update", "Restore"} { // an update that succeeds ends its count
		step("Update", strange)
		step(name, "")
	}
	step("Update", strange)
	step("Restore", "")
	require.Empty(t, endings)
	step("Update", strange)
	require.Equal(t, Failed, (<-endings).Cause)
}

// Errors that say nothing about the device leave the worker as it is.
func TestOtherErrorsLeaveTheWorker(t *testing.T) {
	e, endings := ownEngine(t, compiling)
	for _, err := range []error{nil, activities.ErrNotResident, errors.New("PJRT error (code=3): INVALID_ARGUMENT"), fmt.Errorf("x: %w", model.ErrInput)} {
		require.Equal(t, err, e.settle(t.Context(), nil, err))
	}
	require.Empty(t, endings)
	require.False(t, e.draining.Load())
}

// A device that ends nothing is stuck; one that ends something is not, however long it takes.
func TestStillness(t *testing.T) {
	s := stillness{progress: 7}
	for range 3 {
		for range stuckTicks - 1 {
			require.False(t, s.look(s.progress))
		}
		require.False(t, s.look(s.progress+1))
	}
	for range stuckTicks - 1 {
		require.False(t, s.look(s.progress))
	}
	require.True(t, s.look(s.progress))
}

// What the watchdog says names the step and the run; it is silent where the step ends.
func TestWatchdog(t *testing.T) {
	e, endings := ownEngine(t, compiling)
	e.watchdog("Update of run never", 0)
	e.watchdog("Update of run ended", time.Hour)()
	stop := e.watchdog("Update of run chaos", 20*time.Millisecond)
	end := <-endings
	stop()
	require.Equal(t, Stuck, end.Cause)
	require.Equal(t, "Update of run chaos: the device has ended nothing for 30ms; the step's bound is 20ms", end.Reason)
	require.Empty(t, endings)
	_, _, err := e.acquire(t.Context(), activities.Run{ID: "another"})
	require.ErrorIs(t, err, activities.ErrDraining)
}

// A device that ends nothing for its step's bound is not alive, until it ends something or the step is over; one that has ended
// is not alive again.
func TestAlive(t *testing.T) {
	e, endings := ownEngine(t, compiling)
	require.NoError(t, e.Alive())
	stop := e.watchdog("Update of run chaos", time.Second)
	require.NoError(t, e.Alive())
	require.Eventually(t, func() bool { return e.Alive() != nil }, 10*time.Second, time.Millisecond)
	require.EqualError(t, e.Alive(), "Update of run chaos: the device has ended nothing for 1s, the step's bound")
	require.Empty(t, endings, "it may still go on")
	stop()
	require.Eventually(t, func() bool { return e.Alive() == nil }, 10*time.Second, time.Millisecond)
	e.end(Failed, "it is gone")
	e.end(Stuck, "and so on")
	require.EqualError(t, e.Alive(), "device failed: it is gone")
}

// A step that panics ends its worker, as a device that has failed does: the run counts it, and
// another process tries again. Without Temporal the caller gets the panic.
func TestPanicsEndTheWorker(t *testing.T) {
	e, endings := ownEngine(t, compiling)
	r := resolved(t, "panics", tinySpec(t))
	d := &Device{Store: r.store, Engine: e}
	step := func(ctx context.Context) (err error) {
		defer run.Edge(ctx, &err, "step")
		_, done, err := d.begin(ctx, r.Run)
		if err != nil {
			return err
		}
		defer done(&err)
		panic("planted")
	}
	env := (&testsuite.WorkflowTestSuite{}).NewTestActivityEnvironment()
	env.RegisterActivityWithOptions(step, activity.RegisterOptions{Name: "Update"})
	_, err := env.ExecuteActivity("Update")
	var failed *temporal.ApplicationError
	require.ErrorAs(t, err, &failed)
	require.Equal(t, activities.KindDeviceFailed, failed.Type())
	require.ErrorContains(t, err, "the step panicked: planted")
	ending := <-endings
	require.Equal(t, Failed, ending.Cause)
	require.Contains(t, ending.Reason, "Update")
	e.draining.Store(false)
	require.Panics(t, func() { _ = step(t.Context()) })
	release, _, err := e.acquire(t.Context(), activities.Run{ID: "r"})
	require.NoError(t, err, "the device is given back")
	release()
}
