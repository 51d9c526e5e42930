package telemetry

import (
	"context"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/workflow"

	"github.com/reprise-rl/reprise/activities"
	table "github.com/reprise-rl/reprise/activities/steps"
)

// Causes of lost time.
const (
	lostAttempt = "attempt"
	lostDevice  = "device"
)

// Interceptor reads the results of the worker's activities, and which of a workflow's
// activities were lost work.
func (m *Metrics) Interceptor() interceptor.WorkerInterceptor { return &workerInterceptor{metrics: m} }

type workerInterceptor struct {
	interceptor.WorkerInterceptorBase
	metrics *Metrics
}

func (w *workerInterceptor) InterceptActivity(_ context.Context,
	next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	a := &activityInterceptor{metrics: w.metrics}
	a.Next = next
	return a
}

func (w *workerInterceptor) InterceptWorkflow(_ workflow.Context,
	next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	in := &workflowInterceptor{metrics: w.metrics}
	in.Next = next
	return in
}

type activityInterceptor struct {
	interceptor.ActivityInboundInterceptorBase
	metrics *Metrics
}

func (a *activityInterceptor) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	info := activity.GetInfo(ctx)
	step, ours := stepOf(info.ActivityType.Name, in.Args)
	if !ours {
		return a.Next.ExecuteActivity(ctx, in)
	}
	m := a.metrics
	if info.Attempt > 1 {
		m.retries.WithLabelValues(step).Inc()
		m.lost.WithLabelValues(lostAttempt).Add(max(0, info.StartedTime.Sub(info.ScheduledTime).Seconds()))
	}
	running := m.running.WithLabelValues(step)
	running.Inc()
	defer running.Dec()
	begin := time.Now()
	out, err := a.Next.ExecuteActivity(ctx, in)
	if err != nil {
		m.failures.WithLabelValues(step, failureOf(err)).Inc()
		return out, err
	}
	m.did(step, in.Args, out, time.Since(begin))
	return out, nil
}

// did notes an activity that has answered.
func (m *Metrics) did(step string, arguments []any, out any, took time.Duration) {
	t, ok := activities.TelemetryOf(out)
	if !ok {
		t.Seconds = took.Seconds()
	}
	m.seconds.WithLabelValues(step).Observe(t.Seconds)
	for _, part := range []struct {
		name    string
		seconds float64
	}{{"wait", t.WaitSeconds}, {"compile", t.CompileSeconds - t.CachedSeconds}, {"cached", t.CachedSeconds}, {"load", t.LoadSeconds}} {
		if part.seconds > 0 {
			m.parts.WithLabelValues(step, part.name).Add(part.seconds)
		}
	}
	if selected, ok := out.(activities.SelectResult); ok && selected.Credited != nil {
		m.seconds.WithLabelValues(table.Credit.Step).Observe(selected.Credited.Telemetry.Seconds)
	}
	if kind, ok := tokenKinds[step]; ok && t.Tokens > 0 {
		m.tokens.WithLabelValues(kind).Add(float64(t.Tokens))
		if t.Seconds > 0 {
			m.rate.WithLabelValues(kind).Set(float64(t.Tokens) / t.Seconds)
		}
	}
	m.rebuilt.Add(float64(max(0, t.Recomputed)))
	if run := holder(arguments); run != "" {
		if label, gone := m.lease.see(run); label != "" {
			for _, old := range gone {
				m.leased.DeleteLabelValues(old)
			}
			m.leased.WithLabelValues(label).Set(1)
		}
	}
	if len(arguments) > 0 {
		if in, ok := arguments[0].(activities.CommitInput); ok {
			m.commit(in)
		}
	}
}

// commit notes an iteration's figures.
func (m *Metrics) commit(in activities.CommitInput) {
	run, gone := m.runs.see(in.Run.ID)
	for _, old := range gone {
		m.forget(old)
	}
	m.committed.Inc()
	m.iteration.WithLabelValues(run).Set(float64(in.Iteration))
	m.branch.WithLabelValues(run).Set(float64(in.Branch))
	for name, v := range in.Metrics {
		if gauge, ok := m.figures[name]; ok {
			gauge.WithLabelValues(run).Set(float64(v))
		}
	}
	for _, e := range in.Evaluations {
		if v, ok := e.Metrics["success/mean"]; ok {
			m.success.WithLabelValues(run, e.Suite).Set(float64(v))
		}
	}
}

// forget drops the series of a run.
func (m *Metrics) forget(run string) {
	of := prometheus.Labels{"run": run}
	for _, v := range m.figures {
		v.DeletePartialMatch(of)
	}
	for _, v := range []*prometheus.GaugeVec{m.iteration, m.branch, m.success} {
		v.DeletePartialMatch(of)
	}
}

type workflowInterceptor struct {
	interceptor.WorkflowInboundInterceptorBase
	metrics *Metrics
}

func (w *workflowInterceptor) Init(next interceptor.WorkflowOutboundInterceptor) error {
	out := &outboundInterceptor{metrics: w.metrics}
	out.Next = next
	return w.Next.Init(out)
}

// outboundInterceptor watches a workflow's activities. It schedules nothing and waits for
// nothing, so it changes no workflow's decisions.
type outboundInterceptor struct {
	interceptor.WorkflowOutboundInterceptorBase
	metrics *Metrics
	open    []asked
	hold    workflow.Future // of the lease that lasts; nil while there is none
	held    bool            // a device was worked on in a session of the SDK's, and not given back
}

// asked is an activity that was scheduled.
type asked struct {
	at     time.Time
	answer workflow.Future
}

// silent is the end of a lease whose worker was not heard of any more.
const silent = "silent"

// leaseEnded counts the end of a lease, once a workflow has it.
func (o *outboundInterceptor) leaseEnded(ctx workflow.Context, tell bool) {
	if o.hold == nil || !o.hold.IsReady() {
		return
	}
	var r activities.HoldResult
	end := silent
	if err := o.hold.Get(ctx, &r); err == nil {
		end = string(r.End)
	}
	o.hold = nil
	if !tell {
		return
	}
	o.metrics.leases.WithLabelValues(end).Inc()
	if end == silent || r.End == activities.LeaseLost {
		o.metrics.devices.Inc()
	}
}

// ExecuteActivity is where a workflow decides on an activity. Earlier failures on a
// device were lost work, since the workflow continued. A run that requests a device
// without having given one back has lost it. Work that is lost with a device leaves no
// trace in the process that had it, so it is counted here.
func (o *outboundInterceptor) ExecuteActivity(ctx workflow.Context, kind string, arguments ...any) workflow.Future {
	now := workflow.Now(ctx)
	tell := ctx.Err() == nil && !workflow.IsReplaying(ctx)
	waiting := o.open[:0]
	for _, a := range o.open {
		if !a.answer.IsReady() {
			waiting = append(waiting, a)
			continue
		}
		if err := a.answer.Get(ctx, nil); err != nil && tell {
			o.metrics.lost.WithLabelValues(lostDevice).Add(max(0, now.Sub(a.at).Seconds()))
		}
	}
	o.open = waiting
	o.leaseEnded(ctx, tell)
	if kind == table.Release.Name && o.hold != nil {
		if o.hold = nil; tell {
			o.metrics.leases.WithLabelValues(string(activities.LeaseGivenBack)).Inc()
		}
	}
	if kind == table.SessionOpens && o.held && tell {
		o.metrics.devices.Inc()
	}
	if kind == table.SessionOpens || kind == table.SessionEnds {
		o.held = false
	}
	f := o.Next.ExecuteActivity(ctx, kind, arguments...)
	if kind == table.Hold.Name {
		o.hold = f
	}
	if slices.Contains(onDevice, kind) {
		o.held = true
		o.open = append(o.open, asked{at: now, answer: f})
	}
	return f
}
