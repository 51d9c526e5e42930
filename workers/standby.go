package workers

import (
	"context"
	"fmt"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.uber.org/zap"

	"github.com/reprise-rl/reprise/activities/device"
)

const (
	standbyFirst = 2 * time.Second
	standbyEvery = 20 * time.Second
	// standbyRuns bounds the runs one look prepares for.
	standbyRuns = 8
)

// standby compiles, while the device is idle, the programs of the running runs that this
// device may have to take over. XLA's executables cannot be stored, and a preempted run
// should not wait for the compiler. It finds them by the search attribute
// RepriseFingerprint; if that is not registered, a run compiles when it comes.
func standby(ctx context.Context, c client.Client, d *device.Device, logger *zap.Logger) {
	query := fmt.Sprintf("WorkflowType = 'Train' AND ExecutionStatus = 'Running' AND RepriseFingerprint = '%s'",
		d.Engine.Info().Fingerprint)
	for wait := standbyFirst; ; wait = standbyEvery {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
		listed, err := c.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{Query: query, PageSize: standbyRuns})
		if err != nil {
			continue // not registered, or the server is away: a run compiles when it comes
		}
		d.Engine.BeginScan()
		for _, e := range listed.GetExecutions() {
			run := e.GetExecution().GetWorkflowId()
			begin := time.Now()
			compiled, err := d.Engine.Prepare(ctx, d, run)
			switch {
			case err != nil && ctx.Err() == nil:
				logger.Debug("could not prepare for a run", zap.String("run", run), zap.Error(err))
			case compiled:
				logger.Info("programs of a run are ready, should it come here", zap.String("run", run), zap.Duration("took", time.Since(begin)))
			}
		}
	}
}
