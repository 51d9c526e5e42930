package program

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/sdk/client"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/connect"
	"github.com/reprise-rl/reprise/infra/human"
	"github.com/reprise-rl/reprise/workers"
	"github.com/reprise-rl/reprise/workers/runs"
	"github.com/reprise-rl/reprise/workers/stack"
)

const (
	nameWorkers = "workers"
	// workersTime bounds the questions about workers.
	workersTime = 10 * time.Second
	// pollTime is how long a poll lasts: who polled earlier may be gone.
	pollTime = 70 * time.Second
	// mostNamed is how many workers of a queue are named.
	mostNamed = 4
)

// workersCheck says who polls the queues. A cluster has none before the first worker is started: so nobody is a warning.
// before are the checks of the server.
func workersCheck(ctx context.Context, conn stack.Connection, before []connect.Check) connect.Check {
	unreached := connect.Check{Name: nameWorkers, Status: connect.Skipped, Detail: "Temporal or the namespace cannot be used"}
	for _, c := range before {
		if c.Status == connect.Fail && (c.Name == "temporal" || c.Name == "namespace") {
			return unreached
		}
	}
	ctx, cancel := context.WithTimeout(ctx, workersTime)
	defer cancel()
	c, err := conn.Temporal(ctx)
	if err != nil {
		return unreached
	}
	defer c.Close()
	return workersOf(ctx, c, time.Now())
}

// workersOf is the check of a server.
func workersOf(ctx context.Context, c client.Client, now time.Time) connect.Check {
	check := connect.Check{Name: nameWorkers, Status: connect.OK}
	var missing []string
	var found []string
	for _, role := range []struct {
		role  workers.Role
		queue string
		kind  enumspb.TaskQueueType
	}{
		{workers.RoleWorkflow, activities.WorkflowQueue, enumspb.TASK_QUEUE_TYPE_WORKFLOW},
		{workers.RoleHost, activities.WorkflowQueue, enumspb.TASK_QUEUE_TYPE_ACTIVITY},
		{workers.RoleDevice, activities.AnyDeviceQueue, enumspb.TASK_QUEUE_TYPE_ACTIVITY},
	} {
		described, err := c.DescribeTaskQueue(ctx, role.queue, role.kind)
		if err != nil {
			return unasked(err)
		}
		pollers := described.GetPollers()
		if len(pollers) == 0 {
			missing = append(missing, string(role.role))
		}
		found = append(found, fmt.Sprintf("%s (queue %s): %s", role.role, role.queue, polledBy(pollers, now)))
	}
	census, err := runs.TakeCensus(ctx, c)
	if err == nil {
		err = census.CountWorkers(ctx, c)
	}
	if err != nil {
		return unasked(err)
	}
	var unserved []string
	for _, fingerprint := range slices.Sorted(maps.Keys(census.Workers)) {
		if census.Workers[fingerprint] == 0 {
			unserved = append(unserved, fingerprint)
			found = append(found, fmt.Sprintf("fingerprint %s of open runs: nobody", fingerprint))
		}
	}
	check.Detail = strings.Join(found, "; ")
	switch {
	case len(missing) > 0:
		check.Status, check.Advice = connect.Warn, fmt.Sprintf("%s worker --roles %s", stack.ProgramName(), strings.Join(missing, ","))
	case len(unserved) > 0:
		check.Status = connect.Warn
		check.Advice = "start a device worker of the build and the kind of device that those runs had, or send adopt-programs"
	}
	return check
}

func unasked(err error) connect.Check {
	return connect.Check{Name: nameWorkers, Status: connect.Warn, Detail: err.Error(), Advice: "check the namespace and the API key's permissions"}
}

// polledBy names who polls a queue, and since when one has not.
func polledBy(pollers []*taskqueuepb.PollerInfo, now time.Time) string {
	var names []string
	for _, p := range pollers {
		name := human.Visible(strings.TrimSuffix(p.GetIdentity(), "@"))
		if ago := now.Sub(p.GetLastAccessTime().AsTime()); ago > pollTime {
			name += fmt.Sprintf(" (%s ago)", ago.Round(time.Second))
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	switch {
	case len(names) == 0:
		return "nobody"
	case len(names) > mostNamed:
		return strings.Join(names[:mostNamed], ", ") + fmt.Sprintf(" and %d more", len(names)-mostNamed)
	}
	return strings.Join(names, ", ")
}
