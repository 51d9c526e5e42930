package workflows

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/workflows/sweep"
)

// A report that comes in the workflow task in which a sweep continues as new is
// carried along. The SDK hands a signal to the coroutine that waits for it, and
// runs the main one first: so the task in which both an activity has ended and
// reports have come is played from a history.
func TestSweepHearsReportsBeforeItContinues(t *testing.T) {
	f := newField(t)
	written := f.written(`{"base": BASE, "seeds": [1]}`)
	payloads := func(args ...any) *common.Payloads {
		p, err := converter.GetDefaultDataConverter().ToPayloads(args...)
		require.NoError(t, err)
		return p
	}
	trials, err := f.sweeps.SweepTrials(t.Context(), activities.SweepTrialsInput{Sweep: written, Count: pageTrials})
	require.NoError(t, err)
	report := func(version int) TrialReport {
		return TrialReport{Trial: "seed=1", Committed: []TrialIteration{{Version: version, Metrics: activities.Metrics{"success/mean": canon.Float(version)}}}}
	}

	h := &history.History{}
	next := func(kind enums.EventType) *history.HistoryEvent {
		e := &history.HistoryEvent{EventId: int64(len(h.Events) + 1), EventType: kind}
		h.Events = append(h.Events, e)
		return e
	}
	task := func(suggest bool) {
		at := next(enums.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED).EventId
		h.Events[at-1].Attributes = &history.HistoryEvent_WorkflowTaskScheduledEventAttributes{WorkflowTaskScheduledEventAttributes: &history.WorkflowTaskScheduledEventAttributes{}}
		next(enums.EVENT_TYPE_WORKFLOW_TASK_STARTED).Attributes = &history.HistoryEvent_WorkflowTaskStartedEventAttributes{
			WorkflowTaskStartedEventAttributes: &history.WorkflowTaskStartedEventAttributes{ScheduledEventId: at, SuggestContinueAsNew: suggest},
		}
		next(enums.EVENT_TYPE_WORKFLOW_TASK_COMPLETED).Attributes = &history.HistoryEvent_WorkflowTaskCompletedEventAttributes{
			WorkflowTaskCompletedEventAttributes: &history.WorkflowTaskCompletedEventAttributes{ScheduledEventId: at, StartedEventId: at + 1},
		}
	}
	schedule := func(id, name string) int64 {
		e := next(enums.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED)
		e.Attributes = &history.HistoryEvent_ActivityTaskScheduledEventAttributes{ActivityTaskScheduledEventAttributes: &history.ActivityTaskScheduledEventAttributes{
			ActivityId: id, ActivityType: &common.ActivityType{Name: name}, TaskQueue: &taskqueue.TaskQueue{Name: activities.HostQueue},
		}}
		return e.EventId
	}
	complete := func(scheduled int64, result any) {
		e := next(enums.EVENT_TYPE_ACTIVITY_TASK_STARTED)
		e.Attributes = &history.HistoryEvent_ActivityTaskStartedEventAttributes{
			ActivityTaskStartedEventAttributes: &history.ActivityTaskStartedEventAttributes{ScheduledEventId: scheduled},
		}
		next(enums.EVENT_TYPE_ACTIVITY_TASK_COMPLETED).Attributes = &history.HistoryEvent_ActivityTaskCompletedEventAttributes{
			ActivityTaskCompletedEventAttributes: &history.ActivityTaskCompletedEventAttributes{ScheduledEventId: scheduled, StartedEventId: e.EventId, Result: payloads(result)},
		}
	}
	signal := func(r TrialReport) {
		next(enums.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED).Attributes = &history.HistoryEvent_WorkflowExecutionSignaledEventAttributes{
			WorkflowExecutionSignaledEventAttributes: &history.WorkflowExecutionSignaledEventAttributes{SignalName: trialSignal, Input: payloads(r)},
		}
	}
	carry := &SweepCarry{Written: written, Parallel: 1, Records: []activities.TrialRecord{{State: sweep.Running}}}
	next(enums.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED).Attributes = &history.HistoryEvent_WorkflowExecutionStartedEventAttributes{
		WorkflowExecutionStartedEventAttributes: &history.WorkflowExecutionStartedEventAttributes{
			WorkflowType: &common.WorkflowType{Name: "Sweep"}, TaskQueue: &taskqueue.TaskQueue{Name: activities.WorkflowQueue},
			Input: payloads(json.RawMessage(`{}`), carry),
		},
	}
	task(false)
	read := schedule("5", "SweepTrials")
	complete(read, trials)
	task(false)
	look := schedule("11", "LookUp")
	next(enums.EVENT_TYPE_TIMER_STARTED).Attributes = &history.HistoryEvent_TimerStartedEventAttributes{
		TimerStartedEventAttributes: &history.TimerStartedEventAttributes{TimerId: "12"}, // of those that say nothing
	}
	complete(look, activities.LookUpResult{Found: []activities.Found{{State: sweep.Running, Sweep: testSweep}}})
	signal(report(1))
	signal(report(2))
	task(true)
	next(enums.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW).Attributes = &history.HistoryEvent_WorkflowExecutionContinuedAsNewEventAttributes{
		WorkflowExecutionContinuedAsNewEventAttributes: &history.WorkflowExecutionContinuedAsNewEventAttributes{WorkflowType: &common.WorkflowType{Name: "Sweep"}},
	}

	var ended error
	r, err := worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{DisableDeadlockDetection: true})
	require.NoError(t, err)
	r.RegisterWorkflowWithOptions(func(ctx workflow.Context, input json.RawMessage, carry *SweepCarry) (*SweepResult, error) {
		var result *SweepResult
		result, ended = (&Workflows{}).Sweep(ctx, input, carry)
		return result, ended
	}, workflow.RegisterOptions{Name: "Sweep"})
	// The carried state is checked below.
	err = r.ReplayWorkflowHistoryWithOptions(silent, h, worker.ReplayWorkflowHistoryOptions{OriginalExecution: workflow.Execution{ID: testSweep}})
	if err != nil {
		require.NotContains(t, err.Error(), nonDeterministic)
	}
	record := sweepCarryOf(t, ended).Records[0]
	require.Equal(t, 2, record.Iterations)
	require.Equal(t, sweep.Value{Last: 2, Best: 2, At: 1}, record.Values[0])
	require.Equal(t, 2, record.Curve.N, "in their order")
}
