package workers

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"go.uber.org/zap"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/steps"
	"github.com/reprise-rl/reprise/infra/dev"
	"github.com/reprise-rl/reprise/infra/dev/devtest"
	"github.com/reprise-rl/reprise/workers/lease"
	"github.com/reprise-rl/reprise/workers/runs"
	"github.com/reprise-rl/reprise/workflows"
)

const lineQueue = "line-test"

// waiters are workflows that stand in line as runs do, and give the device back at once.
type waiters struct {
	t *testing.T
	c client.Client

	mu    sync.Mutex
	order []string // who has had the device
}

// run stands in line for a device, and gives it back.
func (w *waiters) run(ctx workflow.Context, fingerprint string) error {
	id := workflow.GetInfo(ctx).WorkflowExecution.ID
	var l activities.Lease
	line := workflow.WithActivityOptions(ctx, workflows.AcquireOptions(ctx, fingerprint))
	if err := workflow.ExecuteActivity(line, steps.Acquire.Name, activities.AcquireInput{Run: id}).Get(ctx, &l); err != nil {
		return err
	}
	w.mu.Lock()
	w.order = append(w.order, id)
	w.mu.Unlock()
	back := workflow.WithActivityOptions(ctx, workflows.ReleaseOptions(l.Holder))
	return workflow.ExecuteActivity(back, steps.Release.Name, activities.HoldInput{Lease: l.ID, Run: id}).Get(ctx, nil)
}

// sweep has so many of them as children, one after the other in line.
func (w *waiters) sweep(ctx workflow.Context, fingerprint string, trials int) error {
	var all []workflow.ChildWorkflowFuture
	for n := range trials {
		o := workflow.ChildWorkflowOptions{
			WorkflowID:            fmt.Sprintf("%s/%d", workflow.GetInfo(ctx).WorkflowExecution.ID, n+1),
			TypedSearchAttributes: inLine(fingerprint),
		}
		all = append(all, workflow.ExecuteChildWorkflow(workflow.WithChildOptions(ctx, o), w.run, fingerprint))
		if err := workflow.Sleep(ctx, spacing); err != nil {
			return err
		}
	}
	for _, trial := range all {
		if err := trial.Get(ctx, nil); err != nil {
			return err
		}
	}
	return nil
}

// spacing is the time between two that come to the line, so that one is there when the next comes.
const spacing = 200 * time.Millisecond

// inLine are the search attributes of a run in line.
func inLine(fingerprint string) temporal.SearchAttributes {
	return temporal.NewSearchAttributes(temporal.NewSearchAttributeKeyKeyword("ReprisePhase").ValueSet("waiting"),
		temporal.NewSearchAttributeKeyKeyword("RepriseFingerprint").ValueSet(fingerprint))
}

// comes starts a workflow, and waits until the last run of it stands in line.
func (w *waiters) comes(id, last string, priority temporal.Priority, kind any, args ...any) {
	_, err := w.c.ExecuteWorkflow(w.t.Context(), client.StartWorkflowOptions{
		ID: id, TaskQueue: lineQueue, Priority: priority, TypedSearchAttributes: inLine(args[0].(string)),
	}, kind, args...)
	require.NoError(w.t, err)
	require.Eventually(w.t, func() bool { return w.place(last) != nil }, 20*time.Second, 10*time.Millisecond, "%s stands in line", last)
	time.Sleep(spacing)
}

// place is a run's place in line; nil while it has none.
func (w *waiters) place(id string) *workflowpb.PendingActivityInfo {
	d, err := w.c.DescribeWorkflowExecution(w.t.Context(), id, "")
	if err != nil {
		return nil // it is not there yet
	}
	for _, a := range d.GetPendingActivities() {
		if a.GetActivityType().GetName() == steps.Acquire.Name && a.GetState() == enumspb.PENDING_ACTIVITY_STATE_SCHEDULED {
			return a
		}
	}
	return nil
}

// serve gives the device to those who wait, one after the other, and returns in which order they had it. Before, the line is as told.
func (w *waiters) serve(namespace, fingerprint string, told []string) []string {
	var line []string
	require.Eventually(w.t, func() bool {
		line = runs.Line(w.t.Context(), w.c, namespace, fingerprint)
		return slices.Equal(told, line)
	}, 20*time.Second, 100*time.Millisecond, "the line is told as %v, and it said %v", told, &line)
	p := &process{Options: Options{Client: w.c, Logger: zap.NewNop()}, fatal: make(chan error, 8)}
	p.holder = lease.New(fingerprint, activities.HolderQueue(fingerprint), w.c.RecordActivityHeartbeat)
	info := activities.DeviceInfo{Fingerprint: fingerprint}
	p.holder.Computes("steps", info)
	require.NoError(w.t, p.startHolder(info))
	defer p.stopWorkers()
	require.Eventually(w.t, func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return len(w.order) == len(told)
	}, 30*time.Second, 10*time.Millisecond)
	w.mu.Lock()
	defer w.mu.Unlock()
	order := w.order
	w.order = nil
	return order
}

// A server that is told to deal fairly lets a sweep of priority 1 overtake runs that have none, and a single run the later trials of a
// sweep. One that is not gives the device to who came first. The line is told accordingly.
func TestPrioritiesInLine(t *testing.T) {
	for _, fair := range []bool{false, true} {
		t.Run(fmt.Sprintf("fair %t", fair), func(t *testing.T) {
			t.Parallel()
			servers, err := dev.Start(t.Context(), dev.Options{Ephemeral: true, Fair: fair})
			devtest.Needs(t, err)
			require.NoError(t, err, "this test starts a server: run `make tools`")
			t.Cleanup(func() { _ = servers.Stop() })
			c, err := client.DialContext(t.Context(), client.Options{HostPort: servers.TemporalAddress(), Namespace: servers.Namespace()})
			require.NoError(t, err)
			t.Cleanup(c.Close)
			w := &waiters{t: t, c: c}
			decider := worker.New(c, lineQueue, worker.Options{LocalActivityWorkerOnly: true})
			decider.RegisterWorkflow(w.run)
			decider.RegisterWorkflow(w.sweep)
			require.NoError(t, decider.Start())
			t.Cleanup(decider.Stop)

			none := temporal.Priority{}
			w.comes("first", "first", none, w.run, "f1")
			w.comes("second", "second", none, w.run, "f1")
			team := temporal.Priority{PriorityKey: 1, FairnessKey: "team", FairnessWeight: 2}
			w.comes("urgent", "urgent/1", team, w.sweep, "f1", 1)
			came, urgent := []string{"first", "second", "urgent/1"}, []string{"urgent/1", "first", "second"}
			want := came
			if fair {
				want = urgent
			}
			trial, err := c.DescribeWorkflowExecution(context.Background(), "urgent/1", "")
			require.NoError(t, err)
			require.Equal(t, "team", trial.GetWorkflowExecutionInfo().GetPriority().GetFairnessKey(), "a trial has what its sweep was started with")
			require.Equal(t, want, w.serve(servers.Namespace(), "f1", want))

			w.comes("sweep", "sweep/4", none, w.sweep, "f2", 4)
			w.comes("alone", "alone", none, w.run, "f2")
			for id, key := range map[string]string{"sweep/1": "sweep", "sweep/4": "sweep", "alone": "alone"} {
				require.Equal(t, key, w.place(id).GetPriority().GetFairnessKey())
			}
			told := []string{"sweep/1", "sweep/2", "sweep/3", "sweep/4", "alone"}
			order := w.serve(servers.Namespace(), "f2", told)
			t.Log(order)
			if fair {
				require.LessOrEqual(t, slices.Index(order, "alone"), 1)
			} else {
				require.Equal(t, told, order)
			}
		})
	}
}
