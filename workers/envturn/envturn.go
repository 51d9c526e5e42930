// Package envturn reaches a foreign environment over Temporal: its server is a worker of
// the queue reprise-env.NAME, in any SDK, with the activities EnvDescribe and EnvPlay. A call
// starts the workflow EnvTurn, whose history is the one place with texts.
package envturn

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/envs/foreign"
	"github.com/reprise-rl/reprise/workflows"
)

// MaxInput is the most bytes of a call's input. Temporal takes 2 MiB for a payload and warns
// from 256 KiB on.
const MaxInput = 256 << 10

// slack is how many time limits an EnvTurn may be open: for the waits, and for what
// envAttempts lost workers take.
const slack = 8

// taskTimeout is how long a workflow task of EnvTurn may take; one that is lost with its worker
// costs as much. They take milliseconds.
const taskTimeout = 3 * time.Second

// stickyTime is how long a workflow task waits for a worker that had the workflow and may be
// dead.
const stickyTime = time.Second

// askAgain is how long one request for an answer waits.
const askAgain = time.Second

// Transport calls servers through one Temporal client. Several goroutines may use it.
type Transport struct {
	Client client.Client
	// Queue is that of the worker which runs EnvTurn; "" is a run's own.
	Queue string
	// Timeout is how long an answer may take once a worker has begun with it; 0 is 60
	// seconds. A worker that does not heartbeat for a quarter of it is lost.
	Timeout time.Duration
}

// Call is a foreign.Call to the environment. turn names what the calls are for, as in
// RUN/b0/12/3: the same call for the same turn has the same workflow id. If that workflow is
// running, the call waits for it; if it has completed, its answer is taken again. So a caller
// that was killed finds its own.
//
// A caller that ends does not end the workflow, which ends by its own time limits.
func (t Transport) Call(environment, turn string) foreign.Call {
	return func(ctx context.Context, name string, input []byte) ([]byte, error) {
		if len(input) > MaxInput {
			return nil, fmt.Errorf("%w: %s has an input of %d bytes, at most %d are sent over Temporal", foreign.ErrFlood, name, len(input), MaxInput)
		}
		timeout := t.timeout()
		run, err := t.Client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
			ID: id(turn, environment, name, input), TaskQueue: t.queue(), WorkflowExecutionTimeout: slack * timeout,
			WorkflowIDConflictPolicy: enums.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
			WorkflowIDReusePolicy:    enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE_FAILED_ONLY,
			WorkflowTaskTimeout:      taskTimeout,
			StaticSummary:            name + " of environment " + environment,
		}, workflows.EnvTurnName, workflows.EnvTurnInput{Environment: environment, Call: name, Input: input, Timeout: timeout})
		if err != nil {
			return nil, failure(ctx, name, err)
		}
		out, err := await(ctx, run)
		if err != nil {
			return nil, failure(ctx, name, err)
		}
		return out, nil
	}
}

// await waits for the answer. A server sometimes does not tell a client that waits that the
// workflow has ended, and lets it wait for 20 seconds: so the client asks again.
func await(ctx context.Context, run client.WorkflowRun) (out []byte, err error) {
	for {
		asking, stop := context.WithTimeout(ctx, askAgain)
		err := run.Get(asking, &out)
		var late *serviceerror.DeadlineExceeded // the server's clock may end the wait a moment earlier
		again := asking.Err() != nil || errors.Is(err, context.DeadlineExceeded) || errors.As(err, &late)
		stop()
		if err == nil || !again || ctx.Err() != nil {
			return out, err
		}
	}
}

// Way is a foreign.Way to the environment: for a turn it is Call, except that a call that has been
// answered is asked anew, for the episodes of which the environment said that it is busy. Without a
// turn it is Fresh.
func (t Transport) Way(environment, turn string) foreign.Call {
	if turn == "" {
		return t.Fresh(environment)
	}
	var mu sync.Mutex
	answered := map[string]int{}
	return func(ctx context.Context, name string, input []byte) ([]byte, error) {
		call := name + " " + string(input)
		mu.Lock()
		n := answered[call]
		mu.Unlock()
		of := turn
		if n > 0 {
			of = fmt.Sprintf("%s/%d", turn, n+1)
		}
		out, err := t.Call(environment, of)(ctx, name, input)
		if err == nil {
			mu.Lock()
			answered[call]++
			mu.Unlock()
		}
		return out, err
	}
}

// Fresh is a foreign.Call that asks anew at every call, for a check of the environment.
func (t Transport) Fresh(environment string) foreign.Call {
	var calls atomic.Int64
	of := "check/" + environment + "/" + rand.Text()
	return func(ctx context.Context, name string, input []byte) ([]byte, error) {
		return t.Call(environment, fmt.Sprintf("%s/%d", of, calls.Add(1)))(ctx, name, input)
	}
}

func (t Transport) timeout() time.Duration {
	if t.Timeout <= 0 {
		return time.Minute
	}
	return t.Timeout
}

func (t Transport) queue() string {
	if t.Queue == "" {
		return activities.WorkflowQueue
	}
	return t.Queue
}

// id is the workflow id of a call. The digest is there for callers whose turns have several
// calls, and so that no call gets the answer to another one.
func id(turn, environment, name string, input []byte) string {
	of, _ := json.Marshal([]string{environment, name, string(input)}) // texts can be encoded
	sum := sha256.Sum256(of)
	return turn + "/env/" + hex.EncodeToString(sum[:6])
}

// kinds are the errors of EnvTurn's kinds.
var kinds = map[string]error{
	workflows.KindEnvBusy: foreign.ErrBusy, workflows.KindEnvBroken: foreign.ErrBroken, workflows.KindEnvTimeout: foreign.ErrTimeout,
	workflows.KindEnvAbsent: foreign.ErrExited, workflows.KindEnvFlood: foreign.ErrFlood, workflows.KindEnvAnswer: foreign.ErrAnswer,
}

// failure is why a call has no answer, as an error of the foreign environment's kinds.
func failure(ctx context.Context, name string, err error) error {
	var failed *temporal.ApplicationError
	var late *temporal.TimeoutError
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%w: %s: %w", foreign.ErrTimeout, name, ctx.Err())
	case errors.As(err, &failed) && kinds[failed.Type()] != nil:
		return fmt.Errorf("%w: %s", kinds[failed.Type()], failed.Message())
	case errors.As(err, &late):
		return fmt.Errorf("%w: the workflow EnvTurn of %s did not end in time; a worker of role workflow must serve its queue: %w", foreign.ErrTimeout, name, err)
	}
	return fmt.Errorf("%w: the workflow EnvTurn of %s: %w", foreign.ErrExited, name, err)
}

// Serve runs a worker for EnvTurn alone, on the transport's queue, for programs that have no
// workflow worker.
func (t Transport) Serve() (stop func(), err error) {
	w := worker.New(t.Client, t.queue(), worker.Options{
		DisableRegistrationAliasing: true, LocalActivityWorkerOnly: true, StickyScheduleToStartTimeout: stickyTime,
	})
	w.RegisterWorkflowWithOptions((&workflows.Workflows{}).EnvTurn, workflow.RegisterOptions{Name: workflows.EnvTurnName})
	if err := w.Start(); err != nil {
		return nil, fmt.Errorf("start a worker for %s: %w", workflows.EnvTurnName, err)
	}
	return w.Stop, nil
}
