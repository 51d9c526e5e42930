package workers

import (
	"context"
	"strings"

	"go.temporal.io/api/workflowservice/v1"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/workers/health"
)

// askServer asks the Temporal server something cheap.
func (p *process) askServer(ctx context.Context) error {
	_, err := p.Client.WorkflowService().GetSystemInfo(ctx, &workflowservice.GetSystemInfoRequest{})
	return err
}

// blocks ends the name of a queue of blocks.
var blocks = strings.TrimPrefix(activities.HelperQueue(""), activities.DeviceQueue(""))

// wantedPolls is how a queue of this process has to be polled. Of the queues of a fingerprint none is polled while a run has
// the device, and that of blocks only helps others.
func wantedPolls(queue string) health.Wanted {
	switch {
	case !strings.HasPrefix(queue, activities.DeviceQueue("")):
		return health.Always
	case strings.HasSuffix(queue, blocks):
		return health.Ignored
	}
	return health.Once
}

// childAlive is the check of the process that computes.
func (p *process) childAlive(context.Context) []health.Check {
	ready, reason := p.child.alive()
	return []health.Check{{Name: "device", Ready: ready, Reason: reason}}
}

// deviceAlive is the check of the device.
func (p *process) deviceAlive(context.Context) []health.Check {
	if err := p.device.Engine.Alive(); err != nil {
		return []health.Check{{Name: "device", Reason: err.Error()}}
	}
	return []health.Check{{Name: "device", Ready: true, Reason: "fingerprint " + p.device.Engine.Info().Fingerprint}}
}
