package workflows

import (
	"bytes"
	"compress/gzip"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/api/temporalproto"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/reprise-rl/reprise/activities"
)

var recordBefore = flag.String("record-before", "", "record the history from before the change of this id; run it in a checkout from before the change")

// before is where the histories from before a change are: before/ID.json.gz.
const before = "testdata/before"

// beforeScripts are what happens in the histories from before each change: the place that
// the change is about.
var beforeScripts = map[string]func(f *fleet){
	// The same step loses its session six times, and the run continues.
	"step-failures": func(f *fleet) {
		f.at("Score", func(n int) error {
			if n > 6 {
				return nil
			}
			f.lose()
			return temporal.NewNonRetryableApplicationError("lost", "Lost", nil)
		})
		f.train(client.StartWorkflowOptions{}, false)
	},
	// A worker has other programs, and the run fails.
	"programs-differ": func(f *fleet) {
		f.at("Restore", func(int) error {
			return temporal.NewNonRetryableApplicationError("other programs", activities.KindProgramsDiffer, nil)
		})
		f.train(client.StartWorkflowOptions{}, true)
	},
	// A person pauses a trial and resumes it.
	"paused-trials": func(f *fleet) {
		f.at("Score", func(n int) error {
			if n == 1 {
				f.command("pause")
				time.AfterFunc(2*time.Second, func() { f.command("resume") })
			}
			return nil
		})
		f.train(client.StartWorkflowOptions{Memo: map[string]any{trialMemo: TrialOf{Sweep: "swept", Trial: "a"}}}, false)
	},
	// A trial begins, commits two iterations and ends.
	"coalesced-reports": func(f *fleet) {
		f.s.plan.Iterations = 2
		f.train(client.StartWorkflowOptions{Memo: map[string]any{trialMemo: TrialOf{Sweep: "swept", Trial: "a"}}}, false)
	},
	// A run commits two iterations and ends.
	"commit-beside": func(f *fleet) {
		f.s.plan.Iterations = 2
		f.train(client.StartWorkflowOptions{}, false)
	},
}

// A change is recorded by the code before it:
//
//	go test ./workflows -run TestRecordBefore -record-before ID
//
// The activities are those of stage; workflow, workers, sessions and server are real.
func TestRecordBefore(t *testing.T) {
	if *recordBefore == "" {
		t.Skip("a tool: see -record-before")
	}
	play := beforeScripts[*recordBefore]
	require.NotNil(t, play, "no script for the change %q", *recordBefore)
	f := newFleet(t)
	play(f)
	f.write(filepath.Join(before, *recordBefore+".json.gz"))
}

// fleet is a Temporal server, and workers with the activities of a stage.
type fleet struct {
	t *testing.T
	s *stage
	client.Client
	interceptor.WorkerInterceptorBase
	mu    sync.Mutex
	done  map[string]int
	hooks map[string]func(n int) error
	// end ends the session of the device worker.
	end  context.CancelFunc
	lost chan struct{}
}

func newFleet(t *testing.T) *fleet {
	program, err := filepath.Abs("../bin/temporal")
	require.NoError(t, err)
	server, err := testsuite.StartDevServer(t.Context(), testsuite.DevServerOptions{
		ExistingPath: program, LogLevel: "error", ClientOptions: &client.Options{Identity: "0@host", Logger: silent},
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = server.Stop() })
	s := &stage{plan: testPlan(), base: true, counts: map[string]int{}, over: make(chan struct{})}
	s.plan.Iterations, s.plan.EvaluateEvery = 1, 0
	f := &fleet{t: t, s: s, Client: server.Client(), done: map[string]int{}, hooks: map[string]func(int) error{}, lost: make(chan struct{}, 1)}
	f.work(activities.WorkflowQueue, worker.Options{})
	f.work(activities.AnyDeviceQueue, worker.Options{})
	go f.devices()
	return f
}

// work starts a worker of a queue; stop ends it.
func (f *fleet) work(queue string, o worker.Options) (stop func()) {
	o.Interceptors, o.Identity = []interceptor.WorkerInterceptor{f}, "0@host"
	w := worker.New(f.Client, queue, o)
	flows := &Workflows{SessionHeartbeat: 5 * time.Second}
	w.RegisterWorkflowWithOptions(flows.Train, workflow.RegisterOptions{Name: "Train"})
	w.RegisterActivity(f.s)
	require.NoError(f.t, w.Start())
	stop = sync.OnceFunc(w.Stop)
	f.t.Cleanup(stop)
	return stop
}

// devices keeps a device worker: another one whenever it is lost.
func (f *fleet) devices() {
	for {
		ctx, end := context.WithCancel(context.Background())
		f.mu.Lock()
		f.end = end
		f.mu.Unlock()
		stop := f.work(activities.DeviceQueue(testPrint), worker.Options{
			EnableSessionWorker: true, MaxConcurrentSessionExecutionSize: 1, BackgroundActivityContext: ctx, WorkerStopTimeout: time.Second,
		})
		select {
		case <-f.lost:
			stop()
		case <-f.t.Context().Done():
			end()
			return
		}
	}
}

// lose ends the device worker and its session.
func (f *fleet) lose() {
	f.mu.Lock()
	f.end()
	f.mu.Unlock()
	time.Sleep(500 * time.Millisecond) // until the session's end has arrived
	f.lost <- struct{}{}
}

// at has f done in each execution of an activity, before its work.
func (f *fleet) at(name string, do func(n int) error) { f.hooks[name] = do }

// command sends an update to the run, without waiting for it.
func (f *fleet) command(name string) {
	go func() {
		_, err := f.UpdateWorkflow(context.Background(), client.UpdateWorkflowOptions{
			WorkflowID: testRun, UpdateName: name, WaitForStage: client.WorkflowUpdateStageCompleted,
		})
		if err != nil {
			f.t.Error(name, err)
		}
	}()
}

// train runs a run to its end.
func (f *fleet) train(o client.StartWorkflowOptions, fails bool) {
	o.ID, o.TaskQueue = testRun, activities.WorkflowQueue
	run, err := f.ExecuteWorkflow(f.t.Context(), o, "Train", map[string]any{})
	require.NoError(f.t, err)
	require.Equal(f.t, fails, run.Get(f.t.Context(), nil) != nil)
}

// write writes the run's history, without the machine's name.
func (f *fleet) write(path string) {
	hostname, err := os.Hostname()
	require.NoError(f.t, err)
	h := &history.History{}
	events := f.GetWorkflowHistory(f.t.Context(), testRun, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		require.NoError(f.t, err)
		for _, p := range event.GetWorkflowExecutionSignaledEventAttributes().GetInput().GetPayloads() {
			p.Data = bytes.ReplaceAll(p.Data, []byte(hostname), []byte("host"))
		}
		h.Events = append(h.Events, event)
	}
	b, err := temporalproto.CustomJSONMarshalOptions{Indent: " "}.Marshal(h)
	require.NoError(f.t, err)
	b = bytes.ReplaceAll(b, []byte(hostname), []byte("host")) // in the names of queues
	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	require.NoError(f.t, err)
	_, err = z.Write(b)
	require.NoError(f.t, err)
	require.NoError(f.t, z.Close())
	require.NoError(f.t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(f.t, os.WriteFile(path, packed.Bytes(), 0o644))
	fmt.Printf("%s: %d events, %d bytes\n", path, len(h.Events), packed.Len())
}

// InterceptActivity has the hooks run.
func (f *fleet) InterceptActivity(_ context.Context, next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	return &hooked{ActivityInboundInterceptorBase: interceptor.ActivityInboundInterceptorBase{Next: next}, f: f}
}

type hooked struct {
	interceptor.ActivityInboundInterceptorBase
	f *fleet
}

// ExecuteActivity runs an activity's hook, and its work where the hook has no error.
func (h *hooked) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	name := activity.GetInfo(ctx).ActivityType.Name
	h.f.mu.Lock()
	h.f.done[name]++
	n, hook := h.f.done[name], h.f.hooks[name]
	h.f.mu.Unlock()
	if hook != nil {
		if err := hook(n); err != nil {
			return nil, err
		}
	}
	return h.Next.ExecuteActivity(ctx, in)
}
