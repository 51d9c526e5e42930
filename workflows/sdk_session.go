package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/reprise-rl/reprise/activities"
)

// sdkSession is a session of Temporal's SDK on one device worker, by which runs of earlier builds have a device up to the end
// of their history. Its root context is disconnected from the workflow's, so that a cancelled workflow can still give the
// device back in order.
type sdkSession struct {
	ctx  workflow.Context
	info *workflow.SessionInfo
}

// openSDKSession opens a session, trying so long as none is there.
func (w *Workflows) openSDKSession(ctx workflow.Context, fingerprint string, commanded func() bool, run inLine) (given, error) {
	var there present
	for wait := sessionWait; ; wait = min(wait*2, sessionWaitMax) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if workflow.GetInfo(ctx).GetContinueAsNewSuggested() {
			return nil, errLongHistory
		}
		s, err := w.trySDKSession(ctx, fingerprint, wait, commanded)
		if err == nil {
			return s, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if commanded() {
			return nil, errCommanded
		}
		there.ask(ctx, fingerprint, commanded, run)
	}
}

func (w *Workflows) trySDKSession(
	ctx workflow.Context, fingerprint string, wait time.Duration, commanded func() bool,
) (*sdkSession, error) {
	root, _ := workflow.NewDisconnectedContext(ctx)
	root = workflow.WithActivityOptions(root, workflow.ActivityOptions{
		TaskQueue:           activities.DeviceQueue(fingerprint),
		StartToCloseTimeout: sessionLife,
	})
	creation, stopCreation := workflow.WithCancel(root)
	open := false
	// A cancelled workflow must not sit out the wait for a device, nor one that has something else to do.
	workflow.Go(root, func(own workflow.Context) {
		_ = workflow.Await(own, func() bool { return open || ctx.Err() != nil || commanded() })
		if !open {
			stopCreation()
		}
	})
	sctx, err := workflow.CreateSession(creation, &workflow.SessionOptions{
		CreationTimeout:  wait,
		ExecutionTimeout: sessionLife,
		HeartbeatTimeout: w.SessionHeartbeat,
	})
	open = true
	if err != nil {
		return nil, err
	}
	return &sdkSession{ctx: sctx, info: workflow.GetSessionInfo(sctx)}, nil
}

func (s *sdkSession) context() workflow.Context { return s.ctx }

func (s *sdkSession) queue() string { return "" }

func (s *sdkSession) worker() string { return string(s.info.GetRecreateToken()) }

func (s *sdkSession) over() *loss {
	if s.info.SessionState == workflow.SessionStateOpen {
		return nil
	}
	return &loss{kind: kindSessionLost, text: sessionLost}
}

func (s *sdkSession) gone() {}

func (s *sdkSession) giveBack() { workflow.CompleteSession(s.ctx) }
