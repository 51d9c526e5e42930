package tracing

import (
	"context"
	"fmt"
	"reflect"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/workflow"

	"github.com/reprise-rl/reprise/activities/steps"
)

// spanKey is the workflow context's key of the span that is the parent of others.
type spanKey struct{}

// startSpan is how Temporal's tracer starts a span. It leaves out that of a whole workflow, which each replay would make again,
// and in place of which there are the iterations.
func startSpan(ctx context.Context, t trace.Tracer, name string, o ...trace.SpanStartOption) trace.Span {
	if strings.HasPrefix(name, "RunWorkflow:") {
		return noop.Span{}
	}
	_, span := t.Start(ctx, name, o...)
	return span
}

// ours are the workflows whose activities get a parent.
var ours = map[string]bool{"Train": true, "Evaluate": true, "Sweep": true}

// parents gives the activities of workflows their parents.
type parents struct {
	interceptor.WorkerInterceptorBase
	tracer trace.Tracer
	theirs interceptor.Tracer
}

// InterceptWorkflow implements interceptor.WorkerInterceptor.
func (p *parents) InterceptWorkflow(
	ctx workflow.Context, next interceptor.WorkflowInboundInterceptor,
) interceptor.WorkflowInboundInterceptor {
	info := workflow.GetInfo(ctx)
	if !ours[info.WorkflowType.Name] {
		return next
	}
	in := &inbound{out: &outbound{parents: p, kind: info.WorkflowType.Name, execution: info.WorkflowExecution, units: map[string]*unit{}}}
	in.Next = next
	return in
}

type inbound struct {
	interceptor.WorkflowInboundInterceptorBase
	out *outbound
}

// Init implements interceptor.WorkflowInboundInterceptor.
func (i *inbound) Init(next interceptor.WorkflowOutboundInterceptor) error {
	i.out.Next = next
	return i.Next.Init(i.out)
}

// ExecuteWorkflow implements interceptor.WorkflowInboundInterceptor.
func (i *inbound) ExecuteWorkflow(ctx workflow.Context, in *interceptor.ExecuteWorkflowInput) (any, error) {
	result, err := i.Next.ExecuteWorkflow(ctx, in)
	i.out.ends(ctx, err)
	return result, err
}

// outbound knows to which iteration each activity of one workflow belongs.
type outbound struct {
	interceptor.WorkflowOutboundInterceptorBase
	*parents
	kind      string
	execution workflow.Execution
	units     map[string]*unit // that are not over, by name
	iteration int              // the newest whose activities have begun and that is not committed
	begun     bool             // whether there is one
	commits   map[int]int      // of each iteration in this execution: a rollback makes one again
}

// unit is a part of a workflow that has a trace.
type unit struct {
	span      trace.Span
	iteration int
	commit    workflow.Future // of an iteration
}

// ExecuteActivity implements interceptor.WorkflowOutboundInterceptor.
func (o *outbound) ExecuteActivity(ctx workflow.Context, kind string, arguments ...any) workflow.Future {
	o.settle(ctx)
	u := o.unitOf(ctx, arguments)
	parent := o.theirs.SpanFromContext(trace.ContextWithSpan(context.Background(), u.span))
	f := o.Next.ExecuteActivity(workflow.WithValue(ctx, spanKey{}, parent), kind, arguments...)
	if kind == steps.Commit.Name {
		u.commit = f
	}
	return f
}

// unitOf is the unit that an activity belongs to: the iteration that its input names, or else the one that is under way.
func (o *outbound) unitOf(ctx workflow.Context, arguments []any) *unit {
	if o.kind != "Train" {
		return o.unit(ctx, strings.ToLower(o.kind), 0)
	}
	if n, ok := iterationOf(arguments); ok {
		if !o.begun || n < o.iteration {
			o.iteration, o.begun = n, true
			o.end(ctx, "start", nil)
		}
		return o.unit(ctx, fmt.Sprint("iteration ", n), n)
	}
	if !o.begun {
		return o.unit(ctx, "start", 0)
	}
	return o.unit(ctx, fmt.Sprint("iteration ", o.iteration), o.iteration)
}

// unit finds a unit that is not over, or begins it.
func (o *outbound) unit(ctx workflow.Context, name string, iteration int) *unit {
	if u := o.units[name]; u != nil {
		return u
	}
	// The same in each replay and every process, and another one if the execution does the iteration again.
	of := fmt.Sprintf("%s\x00%s\x00%s\x00%d", o.execution.ID, o.execution.RunID, name, o.commits[iteration])
	attributes := []attribute.KeyValue{attribute.String("reprise.run", o.execution.ID), attribute.String("temporalRunID", o.execution.RunID)}
	if strings.HasPrefix(name, "iteration ") {
		attributes = append(attributes, attribute.Int("reprise.iteration", iteration))
	}
	_, span := o.tracer.Start(wanting(context.Background(), of), name,
		trace.WithNewRoot(), trace.WithTimestamp(workflow.Now(ctx)), trace.WithAttributes(attributes...))
	u := &unit{span: span, iteration: iteration}
	o.units[name] = u
	return u
}

// settle ends the iterations that are committed.
func (o *outbound) settle(ctx workflow.Context) {
	for name, u := range o.units {
		if u.commit == nil || !u.commit.IsReady() {
			continue
		}
		err := u.commit.Get(ctx, nil)
		u.commit = nil
		if err != nil {
			continue // it is tried again
		}
		o.end(ctx, name, nil)
		if o.commits == nil {
			o.commits = map[int]int{}
		}
		o.commits[u.iteration]++
		if u.iteration >= o.iteration {
			o.iteration = u.iteration + 1
		}
	}
}

// end sends the span of a unit, unless the process that ended it did so before.
func (o *outbound) end(ctx workflow.Context, name string, err error) {
	u := o.units[name]
	if u == nil {
		return
	}
	delete(o.units, name)
	if workflow.IsReplaying(ctx) {
		return
	}
	if err != nil {
		u.span.SetStatus(codes.Error, err.Error())
	}
	u.span.End(trace.WithTimestamp(workflow.Now(ctx)))
}

// ends ends what is not over when the workflow is.
func (o *outbound) ends(ctx workflow.Context, err error) {
	o.settle(ctx)
	if workflow.IsContinueAsNewError(err) {
		err = nil
	}
	for name := range o.units {
		o.end(ctx, name, err)
	}
}

// iterationOf is the iteration that an activity's input names.
func iterationOf(arguments []any) (int, bool) {
	if len(arguments) == 0 {
		return 0, false
	}
	v := reflect.ValueOf(arguments[0])
	if v.Kind() != reflect.Struct {
		return 0, false
	}
	for _, of := range []reflect.Value{v, v.FieldByName("Rollout")} {
		if of.Kind() != reflect.Struct {
			continue
		}
		if n := of.FieldByName("Iteration"); n.IsValid() && n.Kind() == reflect.Int {
			return int(n.Int()), true
		}
	}
	return 0, false
}
