package bench

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/steps"
	"github.com/reprise-rl/reprise/workers/watch"
	"github.com/reprise-rl/reprise/workflows"
)

// Recovery is how long a run stalled after its worker was killed by SIGKILL during an
// iteration while another worker was idle. All times are in seconds.
type Recovery struct {
	// Iteration is the interrupted iteration, Step the activity that ran.
	Iteration int    `json:"iteration"`
	Step      string `json:"step"`
	// Detection is from the kill until the run's lease had ended: at once, where only the process that computed was killed.
	Detection float64 `json:"detection_seconds"`
	// Dispatch is from then until the idle worker began to restore the policy.
	Dispatch float64 `json:"dispatch_seconds"`
	// Compile, Load and Rebuild are the parts of restoring: compiling the programs, loading
	// the snapshot, and applying the recorded updates again.
	Compile float64 `json:"compile_seconds"`
	Load    float64 `json:"load_seconds"`
	Rebuild float64 `json:"rebuild_seconds"`
	Updates int     `json:"rebuilt_updates"`
	// Total is from the kill until a step of the iteration ran again.
	Total float64 `json:"total_seconds"`
}

// patience bounds one measured recovery, and the wait for its iteration.
const patience = 5 * time.Minute

// MeasureRecovery kills the process that computes for a started run while the
// activity named step of the iteration runs, and reads the recovery from the run's
// history. The workers are processes of this machine; kill ends one by SIGKILL.
func MeasureRecovery(ctx context.Context, c client.Client, run string, iteration int, step string,
	kill func(pid int) error) (Recovery, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	out := Recovery{Iteration: iteration, Step: step}
	pid, err := victim(ctx, c, run, iteration, step)
	if err != nil {
		return out, fmt.Errorf("wait for %s of iteration %d: %w", step, iteration, err)
	}
	killed := time.Now()
	if err := kill(pid); err != nil {
		return out, fmt.Errorf("kill worker %d: %w", pid, err)
	}
	for {
		events, err := readHistory(ctx, c, run)
		if err != nil {
			return out, err
		}
		got, done, err := recoveryIn(events, killed)
		if err != nil {
			return out, err
		}
		if done {
			got.Iteration, got.Step = iteration, step
			return got, nil
		}
		if err := watch.Sleep(ctx, 200*time.Millisecond); err != nil {
			return out, fmt.Errorf("wait for run %s to go on: %w", run, err)
		}
	}
}

// victim waits until the step of the iteration runs and returns the id of its process.
func victim(ctx context.Context, c client.Client, run string, iteration int, step string) (int, error) {
	if err := watch.Until(ctx, c, run, 20*time.Millisecond, func(s workflows.Status) bool { return s.Iteration >= iteration }); err != nil {
		return 0, err
	}
	for {
		d, err := c.DescribeWorkflowExecution(ctx, run, "")
		if err != nil {
			return 0, err
		}
		if d.WorkflowExecutionInfo.Status != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
			return 0, fmt.Errorf("run %s ended before", run)
		}
		for _, a := range d.PendingActivities {
			if a.ActivityType.GetName() != step || a.State != enumspb.PENDING_ACTIVITY_STATE_STARTED {
				continue
			}
			// An SDK client's identity is pid@host@…
			number, _, _ := strings.Cut(a.LastWorkerIdentity, "@")
			pid, err := strconv.Atoi(number)
			if err != nil || pid <= 1 {
				return 0, fmt.Errorf("worker %q is no process of this machine", a.LastWorkerIdentity)
			}
			return pid, nil
		}
		if err := watch.Sleep(ctx, 5*time.Millisecond); err != nil {
			return 0, err
		}
	}
}

var errNoSession = errors.New("the lease did not end: the killed process did not compute for the run")

// recoveryIn reads the recovery from a kill from a history. done is false until a step has
// run again.
func recoveryIn(events []*historypb.HistoryEvent, killed time.Time) (r Recovery, done bool, err error) {
	type activity struct {
		name    string
		started time.Time
	}
	scheduled := map[int64]*activity{}
	var lost, restoring time.Time
	for _, e := range events {
		at := e.EventTime.AsTime()
		switch e.EventType {
		case enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
			scheduled[e.EventId] = &activity{name: e.GetActivityTaskScheduledEventAttributes().ActivityType.GetName()}
		case enumspb.EVENT_TYPE_ACTIVITY_TASK_STARTED:
			scheduled[e.GetActivityTaskStartedEventAttributes().ScheduledEventId].started = at
		case enumspb.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT:
			if a := scheduled[e.GetActivityTaskTimedOutEventAttributes().ScheduledEventId]; a.name == steps.Hold.Name && at.After(killed) &&
				lost.IsZero() {
				lost = at
			}
		case enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
			completed := e.GetActivityTaskCompletedEventAttributes()
			a := scheduled[completed.ScheduledEventId]
			if a.name == steps.Hold.Name && at.After(killed) && lost.IsZero() {
				lost = at
			}
			if a.started.Before(killed) {
				continue
			}
			switch a.name {
			case "Restore":
				var result activities.RestoreResult
				if err := converter.GetDefaultDataConverter().FromPayloads(completed.Result, &result); err != nil {
					return r, false, fmt.Errorf("result of Restore: %w", err)
				}
				if restoring.IsZero() {
					restoring = a.started
				}
				r.restored(result.Telemetry)
			case "Generate", "Score", "Update":
				if lost.IsZero() || restoring.IsZero() {
					return r, false, errNoSession
				}
				r.Detection, r.Dispatch = lost.Sub(killed).Seconds(), restoring.Sub(lost).Seconds()
				r.Total = a.started.Sub(killed).Seconds()
				return r, true, nil
			}
		}
	}
	return r, false, nil
}

// restored adds the telemetry of one Restore activity.
func (r *Recovery) restored(t activities.Telemetry) {
	r.Compile += t.CompileSeconds
	r.Load += t.LoadSeconds
	r.Rebuild += t.Seconds - t.CompileSeconds - t.LoadSeconds
	r.Updates += t.Recomputed
}
