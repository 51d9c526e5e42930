package watch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/workflows"
	"github.com/reprise-rl/reprise/workflows/collapse"
)

// A run that goes back is shown doing so, and then the iterations of its new branch.
func TestWatchShowsRollbacks(t *testing.T) {
	var out bytes.Buffer
	w := &Watcher{run: "r", out: &out, train: trainView{seen: -1, evaluated: -1}}
	m := activities.Metrics{"reward/mean": 0.5}
	w.showTrain(workflows.Status{Iteration: 7, Iterations: 9, Metrics: m})
	out.Reset()
	back := workflows.Status{Branch: 1, Iteration: 3, Iterations: 9, Metrics: m, Events: []collapse.Event{{Text: "the gradient norm is not finite"}}}
	w.showTrain(back)
	require.Equal(t, "rolled back: branch 1 goes on at iteration 3: the gradient norm is not finite\n", out.String())
	out.Reset()
	back.Iteration, back.Last = 4, &workflows.Evaluated{Version: 4}
	w.showTrain(back)
	require.Contains(t, out.String(), "iteration 3 (4 of 9)")
	require.Contains(t, out.String(), "evaluation of version 4")
}

// scripted is a workflow as a server shows it: one status after the other; the last is
// the status at its end. Nil is a query that no worker answers.
type scripted struct {
	client.Client
	kind     string
	statuses []any
	end      enumspb.WorkflowExecutionStatus
	result   any
	err      error
	asked    int
	// describe are errors that come first, pending what is shown at each look.
	describe []error
	pending  [][]*workflowpb.PendingActivityInfo
}

func (p *scripted) DescribeWorkflowExecution(context.Context, string, string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	if len(p.describe) > 0 {
		err := p.describe[0]
		p.describe = p.describe[1:]
		return nil, err
	}
	if p.kind == "" {
		return nil, serviceerror.NewNotFound("no workflow")
	}
	state := enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING
	if p.asked >= len(p.statuses)-1 {
		state = p.end
	}
	var pending []*workflowpb.PendingActivityInfo
	if p.asked < len(p.pending) {
		pending = p.pending[p.asked]
	}
	return &workflowservice.DescribeWorkflowExecutionResponse{PendingActivities: pending, WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{
		Type: &commonpb.WorkflowType{Name: p.kind}, Status: state,
	}}, nil
}

func (p *scripted) QueryWorkflow(context.Context, string, string, string, ...any) (converter.EncodedValue, error) {
	status := p.statuses[min(p.asked, len(p.statuses)-1)]
	p.asked++
	if status == nil {
		return nil, errors.New("no poller")
	}
	payloads, err := converter.GetDefaultDataConverter().ToPayloads(status)
	return client.NewValue(payloads), err
}

func (p *scripted) GetWorkflow(context.Context, string, string) client.WorkflowRun {
	return scriptedRun{p: p}
}

type scriptedRun struct {
	client.WorkflowRun
	p *scripted
}

func (r scriptedRun) Get(_ context.Context, into any) error {
	if r.p.err != nil {
		return r.p.err
	}
	payloads, err := converter.GetDefaultDataConverter().ToPayloads(r.p.result)
	if err != nil {
		return err
	}
	return converter.GetDefaultDataConverter().FromPayloads(payloads, into)
}

// watched is what watch prints of a workflow, outside a terminal.
func watched(t *testing.T, p *scripted) (string, error) {
	t.Helper()
	var out bytes.Buffer
	err := New(p, "w-1", &out, time.Nanosecond).Follow(t.Context())
	return out.String(), err
}

func figures(success, low, high float64) activities.Metrics {
	return activities.Metrics{"success/mean": canon.Float(success), "success/low": canon.Float(low), "success/high": canon.Float(high), "reward/mean": canon.Float(success / 2),
		"reference/random_success": 0.25, "reference/best_success": 0.5117}
}

const (
	running   = enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING
	completed = enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED
	cancelled = enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED
	failed    = enumspb.WORKFLOW_EXECUTION_STATUS_FAILED
)

func TestWatchRun(t *testing.T) {
	first := &workflows.Evaluated{Version: 0, Suite: "in-distribution", Metrics: figures(0.25, 0.2, 0.31)}
	last := &workflows.Evaluated{Version: 2, Suite: "in-distribution", Metrics: figures(0.43, 0.37, 0.49)}
	metrics := activities.Metrics{"reward/mean": 0.5, "success/mean": 0.25, "actor/entropy": 1.25, "actor/grad_norm": 0.5}
	at := func(iteration int, phase string, last *workflows.Evaluated) workflows.Status {
		s := workflows.Status{Iteration: iteration, Iterations: 2, Phase: phase, First: first, Last: last, Metrics: metrics}
		if iteration == 0 {
			s.Metrics = nil
		}
		return s
	}
	paused := at(1, "paused", first)
	paused.Paused = true
	paused.LostDevices, paused.Recomputed = 1, 3
	waiting := at(1, "waiting for a device", first)
	waiting.Waiting = &workflows.Waiting{Wanted: "9386b8a1e66d", Present: []string{"51c0"}}
	waiting.AtRisk, waiting.RebuildSeconds = 3, 74.6
	p := &scripted{kind: "Train", end: completed, result: workflows.TrainResult{Iterations: 2, State: "6f76"}, statuses: []any{
		workflows.Status{Phase: "resolving"},
		at(0, "iteration 0 · turn 1 · generate", first), at(0, "iteration 0 · turn 1 · step", first),
		paused, paused, waiting, waiting, at(1, "iteration 1 · commit", last), at(2, "done", last),
	}}
	out, err := watched(t, p)
	require.NoError(t, err)
	require.Equal(t, `resolving
evaluation of version 0: in-distribution  success 0.25 (0.20–0.31)  reward 0.125  random 0.25  best 0.51
iteration 0
iteration 0 (1 of 2)  reward  0.500  success  25 %  entropy 1.250  grad norm 0.50  lost devices 1 (recomputed 3 updates)
paused
waiting for a device with fingerprint 9386b8a1e66d; there are 51c0; loading the policy and applying 3 updates again takes about 1m15s
iteration 1 (2 of 2)  reward  0.500  success  25 %  entropy 1.250  grad norm 0.50
evaluation of version 2: in-distribution  success 0.43 (0.37–0.49)  reward 0.215
w-1 is done: 2 iterations, state 6f76
`, out)
}

func TestWatchEvaluate(t *testing.T) {
	near := workflows.Evaluated{Version: 4, Suite: "sokoban", Metrics: figures(0.43, 0.37, 0.49)}
	near.Metrics["pass@1"], near.Metrics["pass@4"] = 0.43, 0.75
	far := workflows.Evaluated{Version: 4, Suite: "sokoban-new-vocabulary", Metrics: figures(0, 0, 0.19)}
	delete(far.Metrics, "reference/best_success")
	result := workflows.EvaluateResult{Run: "bandit-1", Version: 4, State: "6f76", Evaluations: []store.EvaluationRef{
		{Version: 4, Suite: near.Suite, Metrics: near.Metrics}, {Version: 4, Suite: far.Suite, Metrics: far.Metrics},
	}}
	at := func(phase string, done ...workflows.Evaluated) workflows.EvaluateStatus {
		return workflows.EvaluateStatus{Run: "bandit-1", Version: 4, Phase: phase, Suites: 2, Done: done}
	}
	const table = `suite                   success (95 % interval)   reward  random player  best play
sokoban                 0.43 (0.37–0.49)           0.215           0.25       0.51  pass@4 0.75
sokoban-new-vocabulary  0.00 (0.00–0.19)           0.000           0.25          –
w-1 is done: version 4 of bandit-1, state 6f76, on 2 suites; artifacts under evaluations/w-1/
`
	out, err := watched(t, &scripted{kind: "Evaluate", end: completed, result: result, statuses: []any{
		at(""), at("restoring"), at("version 4 · sokoban · turn 1 · generate"), at("version 4 · sokoban · turn 1 · step"),
		at("version 4 · far · turn 1 · generate", near), at("done", near, far),
	}})
	require.NoError(t, err)
	require.Equal(t, "restoring\n"+table, out)

	// Nobody answers any more: the result has the suites too.
	out, err = watched(t, &scripted{kind: "Evaluate", end: completed, result: result, statuses: []any{nil}})
	require.NoError(t, err)
	require.Equal(t, table, out)

	result.Run, result.Version = "w-1", 0
	out, err = watched(t, &scripted{kind: "Evaluate", end: completed, result: result, statuses: []any{at("done", near, far)}})
	require.NoError(t, err)
	require.Contains(t, out, "w-1 is done: the model, state 6f76, on 2 suites;")

	waiting := at("waiting for a device")
	waiting.Waiting = &workflows.Waiting{Wanted: "9386b8a1e66d"}
	busy := at("waiting for a device")
	busy.Waiting = &workflows.Waiting{Wanted: "9386b8a1e66d", Present: []string{"9386b8a1e66d"}}
	out, err = watched(t, &scripted{kind: "Evaluate", end: cancelled, statuses: []any{waiting, waiting, busy, at("ended: cancelled", near)}})
	require.NoError(t, err)
	require.Contains(t, out, "waiting for a device with fingerprint 9386b8a1e66d; none is there\n"+
		"waiting for a device: a device worker with fingerprint 9386b8a1e66d is there, and serves another workflow; this run stands in line (first come, first served among equal priorities)")
	require.Contains(t, out, "w-1 was cancelled; 1 of 2 suites were measured\n")
}

func TestWatchEnds(t *testing.T) {
	begun := workflows.Status{Phase: "resolving"}
	out, err := watched(t, &scripted{kind: "Train", end: cancelled, statuses: []any{begun}})
	require.NoError(t, err)
	require.Contains(t, out, "w-1 was cancelled before an iteration was committed\n")
	out, err = watched(t, &scripted{kind: "Train", end: cancelled, statuses: []any{workflows.Status{Iteration: 7, Iterations: 9}}})
	require.NoError(t, err)
	require.Contains(t, out, "w-1 was cancelled; its last committed iteration is 6 (7 of 9)\n")

	cause := temporal.NewNonRetryableApplicationError("resolve evaluation w-1: 3 problems", activities.KindSpecInvalid, nil)
	_, err = watched(t, &scripted{kind: "Evaluate", end: failed, statuses: []any{workflows.EvaluateStatus{}}, err: cause})
	require.EqualError(t, err, "w-1 ended, failed: resolve evaluation w-1: 3 problems (type: SpecInvalid, retryable: false)")
	_, err = watched(t, &scripted{kind: "Train", end: enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED, statuses: []any{begun}, err: errors.New("terminated by operator")})
	require.EqualError(t, err, "w-1 ended, terminated: terminated by operator")

	_, err = watched(t, &scripted{})
	require.ErrorContains(t, err, `no workflow "w-1" on this server`)
	_, err = watched(t, &scripted{kind: "Sweepstake", statuses: []any{begun}, end: running})
	require.EqualError(t, err, "w-1 is a workflow of type Sweepstake; only Train, Evaluate and Sweep can be watched")
}

// Problems that a person must fix are shown as such and not as work: what is retried and
// why, a server that does not answer, a server that refuses.
func TestWatchTroubles(t *testing.T) {
	pending := func(kind string, attempt int32, failure *failurepb.Failure) *workflowpb.PendingActivityInfo {
		return &workflowpb.PendingActivityInfo{ActivityId: kind, ActivityType: &commonpb.ActivityType{Name: kind}, Attempt: attempt, LastFailure: failure}
	}
	denied := &failurepb.Failure{Message: "put batch: \x1b[2J403", FailureInfo: &failurepb.Failure_ApplicationFailureInfo{
		ApplicationFailureInfo: &failurepb.ApplicationFailureInfo{Type: "StoreAccessDenied"}}}
	timeout := func(kind enumspb.TimeoutType) *failurepb.Failure {
		return &failurepb.Failure{FailureInfo: &failurepb.Failure_TimeoutFailureInfo{TimeoutFailureInfo: &failurepb.TimeoutFailureInfo{TimeoutType: kind}}}
	}
	at := workflows.Status{Phase: "iteration 3 · update", Iteration: 3, Iterations: 9, Metrics: activities.Metrics{"reward/mean": 0.5}}
	p := &scripted{kind: "Train", end: cancelled, statuses: []any{at, at, at, at, at, at}, pending: [][]*workflowpb.PendingActivityInfo{
		{pending("Step", 1, nil), pending("internalSessionCreationActivity", 9, denied)},
		{pending("Step", 2, denied)}, {pending("Step", 3, denied)}, {pending("Step", 4, denied)},
		{pending("Update", 2, timeout(enumspb.TIMEOUT_TYPE_START_TO_CLOSE)), pending("Credit", 2, timeout(enumspb.TIMEOUT_TYPE_HEARTBEAT))},
	}}
	out, err := watched(t, p)
	require.NoError(t, err)
	_, out, _ = strings.Cut(out, "\n")
	require.Equal(t, `Step is tried again (attempt 2): StoreAccessDenied: put batch:  [2J403
Step is tried again (attempt 4): StoreAccessDenied: put batch:  [2J403
Update is tried again (attempt 2): it took longer than its time-out; if it does so again although the bucket answers, the spec's limits.activity_seconds is too small for this device
Credit is tried again (attempt 2): its worker was silent
w-1 was cancelled; its last committed iteration is 2 (3 of 9)
`, out)

	for _, refusal := range []error{
		serviceerror.NewNamespaceNotFound("typo"), serviceerror.NewPermissionDenied("no", ""), serviceerror.NewInvalidArgument("long id"),
		status.Error(codes.Unauthenticated, "expired key"),
	} {
		_, err := watched(t, &scripted{kind: "Train", statuses: []any{at}, describe: []error{refusal}})
		require.ErrorIs(t, err, refusal)
		require.ErrorContains(t, err, "look w-1 up: ")
	}
	synctest.Test(t, func(t *testing.T) {
		p := &scripted{kind: "Train", statuses: []any{at}, end: cancelled, describe: []error{serviceerror.NewUnavailable("connection refused"), serviceerror.NewUnavailable("connection refused")}}
		out, err := watched(t, p)
		require.NoError(t, err)
		require.Equal(t, 1, strings.Count(out, "the Temporal server does not answer, trying again: connection refused\n"))
	})
}

// In a terminal, too, where a bar shows the phase.
func TestWatchTellsInTerminal(t *testing.T) {
	var out bytes.Buffer
	w := &Watcher{run: "r", out: &out, bar: progressbar.NewOptions(-1, progressbar.OptionSetWriter(io.Discard))}
	w.say("resolving")
	require.Empty(t, out.String())
	w.tell("no worker answers")
	w.tell("no worker answers")
	require.Equal(t, "no worker answers\n", out.String())
}

// A phase that lasts is told again, less and less often.
func TestWatchRepeatsLongPhases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		w := &Watcher{run: "r", out: &out}
		for range 50 {
			w.say("warm start, step 0 of 80")
			time.Sleep(500 * time.Millisecond)
		}
		w.say("warm start, step 1 of 80")
		w.say("warm start, step 1 of 80")
		require.Equal(t, `warm start, step 0 of 80
warm start, step 0 of 80 (for 5s)
warm start, step 0 of 80 (for 10s)
warm start, step 0 of 80 (for 20s)
warm start, step 1 of 80
`, out.String())
	})
}

// Until waits for the status asked for, past queries that no worker answers; when its
// context ends, the error has both causes.
func TestUntil(t *testing.T) {
	p := &scripted{statuses: []any{nil, workflows.Status{Iteration: 1}, workflows.Status{Iteration: 2}, workflows.Status{Iteration: 3}}}
	var seen []int
	require.NoError(t, Until(t.Context(), p, "w-1", time.Nanosecond, func(s workflows.Status) bool {
		seen = append(seen, s.Iteration)
		return s.Iteration >= 2
	}))
	require.Equal(t, []int{1, 2}, seen)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := Until(ctx, &scripted{statuses: []any{nil}}, "w-1", time.Hour, func(workflows.Status) bool { return true })
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "no poller")
}

// A run that has paused by itself says why, and what to do.
func TestWatchTellsWhyPaused(t *testing.T) {
	paused := workflows.Status{Iterations: 2, Phase: "paused: Update failed", Paused: true, PausedBy: &workflows.PausedBy{
		Failing: workflows.Failing{Step: "Update: iteration 0", Count: 5, Kind: "DeviceFailed", Error: "the device is poisoned"},
		Do:      "Replace it.",
	}}
	p := &scripted{kind: "Train", end: completed, result: workflows.TrainResult{Iterations: 2, State: "6f76"}, statuses: []any{paused, paused}}
	out, err := watched(t, p)
	require.NoError(t, err)
	require.Equal(t, `paused: Update: iteration 0 failed 5 times in a row; the last error: the device is poisoned (DeviceFailed). Replace it.
w-1 is done: 2 iterations, state 6f76
`, out)
}

// A worker that was silent and is here again is told once.
func TestSilentWorkerIsTold(t *testing.T) {
	silent := workflows.Status{Iterations: 2, Iteration: 0, Phase: "restoring", Failing: []workflows.Failing{
		{Step: "Generate: iteration 0", Silent: 2, Kind: "SessionLost", Error: "its worker was silent for more than 15s, and is here again: its machine has too much to do (load 31 on 2 cores)"},
		{Step: "Score: iteration 0", Count: 1, Kind: "SessionLost", Error: "its session was lost"},
	}}
	p := &scripted{kind: "Train", end: completed, result: workflows.TrainResult{Iterations: 2, State: "6f76"}, statuses: []any{silent}}
	out, err := watched(t, p)
	require.NoError(t, err)
	require.Contains(t, out, "the worker of Generate: iteration 0 was silent 2 times in a row; the last error: its worker was silent for more than 15s, and is here again: "+
		"its machine has too much to do (load 31 on 2 cores)\n")
	require.NotContains(t, out, "Score")
}

// A run whose fingerprint is served by another build shows both sets of programs.
func TestWaitingForPrograms(t *testing.T) {
	require.Equal(t, `waiting for a worker with the run's programs: programs a differ
  a: wanted 1, there 3`, waitingText(&workflows.Waiting{Wanted: "f00d", Present: []string{"f00d"}, Reason: "programs a differ",
		Programs: []activities.OtherProgram{{Name: "a", Recorded: "1", Present: "3"}}}))
}

// Joined late, it shows evaluations and iterations in their order; a device that was lost
// is shown once, and neither it nor the iteration that was joined counts in the pace.
func TestWatchJoinedLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		w := &Watcher{run: "r", out: &out, train: trainView{seen: -1, evaluated: -1}}
		at := func(iteration, lost int) workflows.Status {
			return workflows.Status{
				Iteration: iteration, Iterations: 30, Phase: "iteration 19 · update", LostDevices: lost, Recomputed: 9 * lost,
				Metrics: activities.Metrics{"reward/mean": 0.5},
				First:   &workflows.Evaluated{Version: 0, Suite: "s"}, Last: &workflows.Evaluated{Version: 10, Suite: "s"},
			}
		}
		for _, s := range []workflows.Status{at(20, 0), at(21, 0), at(22, 0), at(22, 1), at(23, 1), at(24, 1), at(25, 1)} {
			w.showTrain(s)
			if s.LostDevices == 1 && s.Iteration == 22 {
				time.Sleep(time.Minute)
			}
			time.Sleep(2 * time.Second)
		}
		const rest = "  reward  0.500  success –  entropy –  grad norm –"
		require.Equal(t, "evaluation of version 0: s  success – (–––)  reward –\n"+
			"evaluation of version 10: s  success – (–––)  reward –\n"+
			"iteration 19 (20 of 30)"+rest+"\n"+
			"iteration 20 (21 of 30)"+rest+"\n"+
			"iteration 21 (22 of 30)"+rest+"  2.0 s/it, 16s left\n"+
			"iteration 22 (23 of 30)"+rest+"  lost devices 1 (recomputed 9 updates)\n"+
			"iteration 23 (24 of 30)"+rest+"  2.0 s/it, 12s left\n"+
			"iteration 24 (25 of 30)"+rest+"  2.0 s/it, 10s left\n", out.String())
	})
}

// A warm start shows the time to its end.
func TestWatchWarmStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		w := &Watcher{run: "r", out: &out, train: trainView{seen: -1, evaluated: -1}}
		for _, step := range []int{0, 4, 14} {
			for range 10 { // asked every second: a step that takes long is shown again after 5 s
				w.showTrain(workflows.Status{Iterations: 30, Phase: fmt.Sprintf("warm start, step %d of 150", step)})
				time.Sleep(time.Second)
			}
		}
		require.Equal(t, "warm start, step 0 of 150\nwarm start, step 0 of 150 (for 5s)\nwarm start, step 4 of 150\nwarm start, step 4 of 150 (for 5s)\n"+
			"warm start, step 14 of 150, 2m16s left\nwarm start, step 14 of 150, 2m16s left (for 5s)\n", out.String())
	})
}

// Why a workflow ended is printed once: by the error.
func TestWatchTellsAnEndOnce(t *testing.T) {
	cause := temporal.NewNonRetryableApplicationError("resolve run w-1: 2 problems", activities.KindSpecInvalid, nil)
	out, err := watched(t, &scripted{kind: "Train", end: failed, statuses: []any{workflows.Status{Phase: "ended: activity error: 2 problems"}}, err: cause})
	require.ErrorContains(t, err, "2 problems")
	require.Empty(t, out)
}
