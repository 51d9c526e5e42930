package workflows

import (
	"errors"
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workflows/sweep"
)

// TrialSignal is the name of the signal by which a trial reports to its sweep.
const TrialSignal = "trial"

// trialMemo is the memo of a trial: its link to the sweep, for people and for the
// run itself.
const trialMemo = "sweep"

// TrialOf says which trial of which sweep a run is; it is the run's memo "sweep".
type TrialOf struct {
	Sweep string `json:"sweep"`
	Trial string `json:"trial"`
	// Metrics are those that the sweep's table shows.
	Metrics []string `json:"metrics"`
	// Rungs are the iterations done at which the sweep judges its trials.
	Rungs []int `json:"rungs,omitempty"`
	// Awaited says that other trials begin when this one has made version 0.
	Awaited bool `json:"awaited,omitempty"`
}

// TrialReport is a trial's signal to its sweep.
type TrialReport struct {
	Trial string `json:"trial"` // the label
	// Committed are the iterations since the last report.
	Committed []TrialIteration `json:"committed,omitempty"`
	// Begun says that version 0 exists: other trials may share it.
	Begun bool `json:"begun,omitempty"`
	// Waiting is the fingerprint of the device it waits for.
	Waiting string `json:"waiting,omitempty"`
	// Paused is why it is paused; "" while it is not.
	Paused      string `json:"paused,omitempty"`
	LostDevices int    `json:"lost_devices,omitempty"`
	Recomputed  int    `json:"recomputed_updates,omitempty"`
	// Costs are those since the last report, by device kind.
	Costs []activities.Cost `json:"costs,omitempty"`
	// Ended is set in the last report.
	Ended *TrialEnd `json:"ended,omitempty"`
}

// TrialIteration is a committed iteration.
type TrialIteration struct {
	// Version is the policy version it made: the iterations done.
	Version int `json:"version"`
	// Branch is the run's on which it was done.
	Branch int `json:"branch,omitempty"`
	// Metrics are the metrics of TrialOf.Metrics that were measured in it.
	Metrics activities.Metrics `json:"metrics,omitempty"`
}

// TrialEnd is how a trial ended.
type TrialEnd struct {
	State  sweep.State `json:"state"`
	Reason string      `json:"reason,omitempty"`
}

// reportsApart is the least time between two reports of a trial, unless one is urgent. A
// sweep with hundreds of open trials would otherwise receive more than a workflow can take.
const reportsApart = 5 * time.Second

// reporter reports a trial's state to its sweep, in order and without making the run wait.
// What changes within reportsApart of a report is sent together in the next one; a commit
// at a rung, a version 0 that others wait for, and the end are sent at once. A run that is not a trial has none: all methods
// work on nil.
type reporter struct {
	of      TrialOf
	next    TrialReport // what the next report says
	due     bool
	urgent  bool // the next report does not wait
	sending bool
	made    bool // version 0 was reported
	last    time.Time
}

// newReporter is the reporter of a run; again says that the run continues in a new history.
func (w *Workflows) newReporter(ctx workflow.Context, again bool) *reporter {
	payload := workflow.GetInfo(ctx).Memo.GetFields()[trialMemo]
	if payload == nil {
		return nil
	}
	var of TrialOf
	if err := w.decode(ctx, payload, &of); err != nil || of.Sweep == "" {
		return nil // somebody else's memo
	}
	r := reporterOf(of)
	if again {
		r.last = workflow.Now(ctx) // the earlier history ended with a report
	}
	return r
}

func reporterOf(of TrialOf) *reporter { return &reporter{of: of, next: TrialReport{Trial: of.Trial}} }

// committed reports an iteration.
func (r *reporter) committed(ctx workflow.Context, t *train, evaluations []store.EvaluationRef) {
	if r == nil {
		return
	}
	r.next.Committed = append(r.next.Committed, TrialIteration{
		Version: t.Next, Branch: t.Branch, Metrics: activities.Reported(r.of.Metrics, t.Metrics, evaluations, t.Next),
	})
	r.urgent = r.urgent || slices.Contains(r.of.Rungs, t.Next)
	r.send(ctx, t)
}

// spends adds costs to the next report.
func (r *reporter) spends(costs []activities.Cost) {
	if r != nil {
		r.next.Costs = activities.AddCosts(r.next.Costs, costs...)
	}
}

// begun reports that version 0 exists. Unless other trials wait for it, the next report
// says so too: mostly that of the first commit.
func (r *reporter) begun(ctx workflow.Context, t *train) {
	if r == nil || r.made {
		return
	}
	r.next.Begun, r.made = true, true
	if r.of.Awaited {
		r.urgent = true
		r.send(ctx, t)
	}
}

// waits reports that the run began or ceased to wait for a device.
func (r *reporter) waits(ctx workflow.Context, t *train) {
	if r != nil && r.next.Waiting != t.wait.Wanted {
		r.send(ctx, t)
	}
}

// pauses reports that the run has paused, or continues.
func (r *reporter) pauses(ctx workflow.Context, t *train) {
	if r != nil && r.next.Paused != shortText(t.whyPaused()) {
		r.send(ctx, t)
	}
}

// ended reports the end, and returns when the report was sent.
func (r *reporter) ended(ctx workflow.Context, t *train, err error) {
	if r == nil {
		return
	}
	r.spends(activities.AddCosts(t.sent, t.Costs.Due...))
	end := &TrialEnd{State: sweep.Done}
	if err != nil {
		end = &TrialEnd{State: endOf(ctx, err), Reason: shortReason(err)}
	}
	r.next.Ended = end
	r.send(ctx, t)
	r.flush(ctx)
}

// flush sends what is due at once, and returns when every report was sent.
func (r *reporter) flush(ctx workflow.Context) {
	if r == nil {
		return
	}
	r.urgent = true
	apart, _ := workflow.NewDisconnectedContext(ctx)
	_ = workflow.Await(apart, func() bool { return !r.due && !r.sending })
}

// send has a report sent; changes that come before it leaves are sent with it. If the
// sweep has ended, the report is dropped and the run continues.
func (r *reporter) send(ctx workflow.Context, t *train) {
	r.next.Waiting, r.next.Paused = t.wait.Wanted, shortText(t.whyPaused())
	r.next.LostDevices, r.next.Recomputed = t.LostDevices, t.Recomputed
	r.due = true
	if r.sending {
		return
	}
	r.sending = true
	apart, _ := workflow.NewDisconnectedContext(ctx)
	workflow.Go(apart, func(ctx workflow.Context) {
		for r.due {
			r.pace(ctx)
			report := r.next
			r.next.Committed, r.next.Costs, r.next.Begun, r.due, r.urgent = nil, nil, false, false, false
			if err := workflow.SignalExternalWorkflow(ctx, r.of.Sweep, "", TrialSignal, report).Get(ctx, nil); err != nil {
				workflow.GetLogger(ctx).Info("the sweep was not told", "sweep", r.of.Sweep, "error", err)
			}
		}
		r.sending = false
	})
}

// pace returns when the next report may leave, and counts it as sent.
func (r *reporter) pace(ctx workflow.Context) {
	rest := r.last.Add(reportsApart).Sub(workflow.Now(ctx))
	if !r.last.IsZero() && rest > 0 && !r.urgent {
		timed, cancel := workflow.WithCancel(ctx)
		timer := workflow.NewTimer(timed, rest)
		_ = workflow.Await(ctx, func() bool { return timer.IsReady() || r.urgent })
		cancel() // a timer that has fired is not affected
	}
	r.last = workflow.Now(ctx)
}

// endOf is the state of a run that ended with an error.
func endOf(ctx workflow.Context, err error) sweep.State {
	var terminated *temporal.TerminatedError
	switch {
	case errors.As(err, &terminated):
		return sweep.Terminated
	case ctx.Err() != nil, temporal.IsCanceledError(err):
		return sweep.Cancelled
	}
	return sweep.Failed
}

// maxReason bounds a reason, because the sweep carries them through continue-as-new.
const maxReason = 200

// shortReason is why a run failed, without what Temporal puts around it.
func shortReason(err error) string {
	var app *temporal.ApplicationError
	text := err.Error()
	if errors.As(err, &app) {
		text = app.Message()
	}
	return shortText(text)
}

// shortText is a text of at most maxReason letters.
func shortText(text string) string { return shortenTo(text, maxReason) }

// shortenTo is a text of at most so many letters.
func shortenTo(text string, letters int) string {
	if runes := []rune(text); len(runes) > letters {
		text = string(runes[:letters]) + "…"
	}
	return text
}
