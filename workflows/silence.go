package workflows

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/reprise-rl/reprise/activities"
)

// LostSession is a session that was lost by silence, or in a step that ran too long, until the next one tells whether its worker lives.
type LostSession struct {
	// Worker names the worker's process.
	Worker string `json:"worker"`
	// Step is the step that ran.
	Step string `json:"step"`
	// Late says that the worker was not silent, but the step ran too long.
	Late bool `json:"late,omitempty"`
}

// The wait before another session is asked for, after the second silence of a worker in a row: the machine has too
// much to do, and another session makes it no calmer. Each further wait is twice as long.
const (
	silenceWaitMin = 5 * time.Second
	silenceWaitMax = 2 * time.Minute
)

// mostPatience is how many times longer than usual a step may run that has run too long before.
const mostPatience = 16

// patience is how many times longer than usual a step may run: after each time in a row that it has run too long, twice as long. It
// may have less of a processor than before, and a step that hangs pauses the run all the same.
func (t *train) patience(step string) int {
	if of := t.failing(step); of != nil && of.Kind == kindTimedOut {
		return min(1<<min(of.Count, 10), mostPatience)
	}
	return 1
}

// countLoss counts a device that was lost, or that its worker gave up.
func (t *train) countLoss(err error) {
	switch {
	case errors.Is(err, errDrained):
		t.DrainedDevices++
		return
	case errors.Is(err, errNotHeld):
		return
	}
	t.LostDevices++
	if t.Current != nil {
		t.Current.Lost++
	}
}

// noteLoss notes a session that was lost by silence, or by a step that ran too long. err is what ended the session.
func (t *train) noteLoss(s *session, err error) {
	t.LostSession = nil
	var f *failure
	if errors.As(err, &f) && (f.kind == kindSessionLost || f.kind == kindTimedOut) {
		t.LostSession = &LostSession{Worker: s.worker(), Step: f.step, Late: f.kind == kindTimedOut}
	}
}

// heard tells silence from loss when a session opens. If the process that was lost answers, then no device was lost: the loss is taken
// back, and silence does not count towards limits.step_failures. A step that ran too long does, since it may run too long again.
func (t *train) heard(s *session) {
	lost := t.LostSession
	t.LostSession = nil
	if lost == nil || lost.Worker != s.worker() {
		return
	}
	t.LostDevices--
	if t.Current != nil && t.Current.Lost > 0 {
		t.Current.Lost--
	}
	if lost.Late {
		return
	}
	t.SilentDevices++
	if of := t.failing(lost.Step); of != nil {
		of.Count--
		of.Silent++
		of.Load = nil
		of.Error = fmt.Sprintf("its worker was silent for more than %s, and is here again: its machine has too much to do", t.leaseHeartbeat())
	}
}

// busy adds the load of the worker's machine to what is said of its silence.
func (t *train) busy(load *activities.Load) {
	for i := range t.Failures {
		if of := &t.Failures[i]; load != nil && of.Silent > 0 && of.Load == nil {
			of.Load = load
			of.Error += " (" + load.String() + ")"
		}
	}
}

// failing is a step that has failed in a row; nil if it has not.
func (t *train) failing(step string) *Failing {
	i := slices.IndexFunc(t.Failures, func(of Failing) bool { return of.Step == step })
	if i < 0 {
		return nil
	}
	return &t.Failures[i]
}

// awaitCalm waits before another session is asked for, if the worker of the last fell silent in the same step before.
func (t *train) awaitCalm(ctx workflow.Context, err error) error {
	var f *failure
	if !errors.As(err, &f) || f.kind != kindSessionLost || t.Paused {
		return nil
	}
	of := t.failing(f.step)
	if of == nil || of.Silent == 0 {
		return nil
	}
	defer t.waitedSince(ctx, workflow.Now(ctx))
	t.show(ctx, "waiting: "+of.phase())
	wait := min(silenceWaitMin<<min(of.Silent-1, 10), silenceWaitMax)
	_, err = workflow.AwaitWithTimeout(ctx, wait, func() bool { return t.Paused || t.adopts() })
	return err
}
