package workflows

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// EnvTurnName is the name under which EnvTurn is registered.
const EnvTurnName = "EnvTurn"

// EnvQueue is the queue that the server of a foreign environment polls.
func EnvQueue(environment string) string { return "reprise-env." + environment }

// EnvTurnInput is one call to the server of a foreign environment.
type EnvTurnInput struct {
	// Environment is its name.
	Environment string `json:"environment"`
	// Call is the name of the activity, and Input its input.
	Call  string          `json:"call"`
	Input json.RawMessage `json:"input"`
	// Timeout is how long a worker may take to begin, and then how long it may take to answer.
	Timeout time.Duration `json:"timeout"`
}

// The kinds of an EnvTurn's failures. They stand for the errors of envs/foreign.
const (
	KindEnvBusy    = "EnvBusy"    // it asked to be called later until the time was over
	KindEnvBroken  = "EnvBroken"  // the activity raised an error
	KindEnvTimeout = "EnvTimeout" // the activity did not answer in time
	KindEnvAbsent  = "EnvAbsent"  // no worker took the call
	KindEnvFlood   = "EnvFlood"   // the answer does not fit into a payload
	KindEnvAnswer  = "EnvAnswer"  // the answer is not JSON
)

const (
	// envAttempts is how many workers a call may lose. Calls are pure functions, so a lost
	// one can be made again; one that kills every worker must end.
	envAttempts = 3
	// envSilence is the part of the time limit after which a worker that does not heartbeat
	// is lost.
	envSilence = 4
	// envBusyWait is the first pause after "busy"; each later one is twice as long, at most
	// envBusyMost.
	envBusyWait = 100 * time.Millisecond
	envBusyMost = 10 * time.Second
	// envBusyType is the type of the failure with which a server says that it is busy.
	envBusyType = "busy"
)

// EnvTurn calls the server of a foreign environment: an activity on the server's own queue,
// in any language. Its history is the one place where texts of episodes are; the run that
// asks gets the answer as an artifact. It fails with one of the kinds above.
//
// Which failures are retried is decided here, not by the server: busy ones until the time is
// over, and calls whose worker was lost. An error that the environment raised is not. The
// activity's input is plain JSON whatever the worker's codec is, because the server has no key.
func (w *Workflows) EnvTurn(ctx workflow.Context, in EnvTurnInput) ([]byte, error) {
	ctx = workflow.WithDataConverter(ctx, converter.GetDefaultDataConverter())
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue: EnvQueue(in.Environment), ScheduleToStartTimeout: in.Timeout, StartToCloseTimeout: in.Timeout,
		HeartbeatTimeout: in.Timeout / envSilence, RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 1},
	})
	until := workflow.Now(ctx).Add(in.Timeout)
	wait, lost := envBusyWait, 0
	for {
		var out json.RawMessage
		err := workflow.ExecuteActivity(ctx, in.Call, in.Input).Get(ctx, &out)
		if err == nil {
			return out, nil
		}
		if temporal.IsCanceledError(ctx.Err()) {
			return nil, err
		}
		switch kind := envFailure(err); {
		case kind == "":
			if lost++; lost == envAttempts {
				return nil, temporal.NewNonRetryableApplicationError(fmt.Sprintf("%s was lost with its worker %d times: %s", in.Call, lost, envText(in, "", err)), KindEnvTimeout, nil)
			}
		case kind == KindEnvBusy && workflow.Now(ctx).Add(wait).Before(until):
			if err := workflow.Sleep(ctx, wait); err != nil {
				return nil, err
			}
			wait = min(2*wait, envBusyMost)
		default:
			return nil, temporal.NewNonRetryableApplicationError(envText(in, kind, err), kind, nil)
		}
	}
}

// envFailure is the kind of an activity's failure; "" is a lost worker.
func envFailure(err error) string {
	var late *temporal.TimeoutError
	var raised *temporal.ApplicationError
	var refused *temporal.ServerError
	var cancelled *temporal.CanceledError
	switch {
	case errors.As(err, &late):
		switch late.TimeoutType() {
		case enums.TIMEOUT_TYPE_SCHEDULE_TO_START:
			return KindEnvAbsent
		case enums.TIMEOUT_TYPE_HEARTBEAT:
			return ""
		}
		return KindEnvTimeout
	case errors.As(err, &raised):
		if raised.Type() == envBusyType {
			return KindEnvBusy
		}
		return KindEnvBroken
	case errors.As(err, &cancelled): // its worker was stopped
		return ""
	case errors.As(err, &refused): // the server's own failure of an activity is about its size
		return KindEnvFlood
	}
	return KindEnvAnswer
}

// envText says what went wrong, and what to do where the cause does not say it.
func envText(in EnvTurnInput, kind string, err error) string {
	switch kind {
	case KindEnvAbsent:
		return fmt.Sprintf("no worker of queue %s took %s within %v: start the environment's worker, or more of them", EnvQueue(in.Environment), in.Call, in.Timeout)
	case KindEnvTimeout:
		return fmt.Sprintf("%s took longer than %v", in.Call, in.Timeout)
	}
	if raised, ok := errors.AsType[*temporal.ApplicationError](err); ok {
		return raised.Type() + ": " + raised.Message()
	}
	if cause := errors.Unwrap(err); cause != nil {
		return cause.Error() // without the activity's identifiers
	}
	return err.Error()
}
