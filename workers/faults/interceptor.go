package faults

import (
	"context"
	"fmt"
	"math"
	"path"
	"slices"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/workflow"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/activities/steps"
	"github.com/reprise-rl/reprise/infra/store/tables"
)

// Interceptor gives the worker's interceptor that knows where an activity is.
func (p *Plan) Interceptor() interceptor.WorkerInterceptor { return &workerInterceptor{plan: p} }

type workerInterceptor struct {
	interceptor.WorkerInterceptorBase
	plan *Plan
}

func (w *workerInterceptor) InterceptActivity(_ context.Context,
	next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	a := &activityInterceptor{plan: w.plan}
	a.Next = next
	return a
}

func (w *workerInterceptor) InterceptWorkflow(_ workflow.Context,
	next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	in := &workflowInterceptor{plan: w.plan}
	in.Next = next
	return in
}

type workflowInterceptor struct {
	interceptor.WorkflowInboundInterceptorBase
	plan *Plan
}

func (w *workflowInterceptor) Init(next interceptor.WorkflowOutboundInterceptor) error {
	out := &outboundInterceptor{plan: w.plan}
	out.Next = next
	return w.Next.Init(out)
}

type outboundInterceptor struct {
	interceptor.WorkflowOutboundInterceptorBase
	plan *Plan
}

// ExecuteActivity is where a workflow decides on an activity.
func (o *outboundInterceptor) ExecuteActivity(ctx workflow.Context, kind string, arguments ...any) workflow.Future {
	if !workflow.IsReplaying(ctx) {
		of := o.plan.count(o.plan.decided, workflow.GetInfo(ctx).WorkflowExecution.ID, kind, first(arguments))
		if f, ok := o.plan.find(of, "decided"); ok {
			o.plan.strike(f)
		}
		if f, ok := o.plan.panics(of); ok {
			panic(fmt.Sprintf("this build is bad at %s (planted)", f))
		}
	}
	return o.Next.ExecuteActivity(ctx, kind, arguments...)
}

type activityInterceptor struct {
	interceptor.ActivityInboundInterceptorBase
	plan *Plan
}

// call is one running activity, as the store sees it by its context.
type call struct {
	plan *Plan
	kind string
	run  string
	of   occurrences
	due  *Fault // strikes in a moment, or when the activity returns
}

type callKey struct{}

func callOf(ctx context.Context) *call {
	c, _ := ctx.Value(callKey{}).(*call)
	return c
}

// onDevice are the kinds that take the device.
var onDevice = steps.Named(steps.OnSession)

// readOnly are the kinds of those that write nothing.
var readOnly = map[string]bool{"Update": true, "Restore": true}

// computing is how long after it took the device an activity that writes nothing
// is taken to compute.
const computing = 10 * time.Millisecond

// Took is called when an activity has taken the device: see activities.Engine.Watch.
func (p *Plan) Took(ctx context.Context) (released func()) {
	c := callOf(ctx)
	if c == nil {
		return func() {}
	}
	if readOnly[c.kind] {
		if f, ok := p.find(c.of, "inside"); ok {
			c.due = &f
			time.AfterFunc(computing, func() { p.strike(f) })
		}
	}
	if p.trace {
		p.say("trace %s %s took", c.run, c.kind)
	}
	p.hold(c)
	c.stall()
	return func() {
		p.hold(nil)
		if p.trace {
			p.say("trace %s %s released", c.run, c.kind)
		}
	}
}

// stall makes an activity take longer.
func (c *call) stall() {
	f, ok := c.plan.find(c.of, "stall")
	if !ok {
		return
	}
	c.plan.say("%s stalls", f)
	time.Sleep(f.After)
	c.plan.say("%s goes on", f)
}

func (a *activityInterceptor) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	info := activity.GetInfo(ctx)
	p := a.plan
	c := &call{plan: p, kind: info.ActivityType.Name, run: info.WorkflowExecution.ID}
	c.of = p.count(p.counts, c.run, c.kind, first(in.Args))
	if f, ok := p.find(c.of, "begin"); ok {
		p.strike(f)
	}
	if f, ok := p.find(c.of, "delay"); ok {
		time.AfterFunc(f.After, func() { p.strike(f) })
	}
	if !slices.Contains(onDevice, c.kind) {
		c.stall()
	}
	out, err := a.Next.ExecuteActivity(context.WithValue(ctx, callKey{}, c), in)
	if err != nil {
		return out, err
	}
	if c.due != nil {
		p.strike(*c.due)
	}
	if f, ok := p.find(c.of, "inside"); ok {
		p.strike(f) // it wrote nothing
	}
	if f, ok := p.find(c.of, "written"); ok {
		p.strike(f)
	}
	if d := p.diverge; d != nil && d.Kind == c.kind && c.of[d.Kind] >= d.Nth {
		return p.diverged(ctx, out)
	}
	return out, nil
}

// diverged replaces a generate table by one whose first sampled log-prob has
// another last bit.
func (p *Plan) diverged(ctx context.Context, out any) (any, error) {
	r, ok := out.(activities.GenerateResult)
	if !ok {
		return nil, fmt.Errorf("faults: Generate answered a %T", out)
	}
	rows, err := tables.Get[episode.GenerateRow](ctx, p.store.Store, r.Table)
	if err != nil {
		return nil, err
	}
	for i := range rows {
		if v := rows[i].RolloutLogProbs; len(v) > 0 {
			v[0] = math.Nextafter32(v[0], -1e9)
			break
		}
	}
	dir, file := path.Split(r.Table.Key)
	name := file[:len(file)-len(".000000000000.parquet")]
	if r.Table, err = tables.Put(ctx, p.store.Store, path.Clean(dir), name, rows); err != nil {
		return nil, err
	}
	p.say("diverged: %s", r.Table.Key)
	return r, nil
}
