package workflows

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/workflows/sweep"
)

// eventLog is a history that a test writes event by event.
type eventLog struct {
	t *testing.T
	history.History
	now time.Time
	// pace is the workflow time between two tasks.
	pace time.Duration
}

func (h *eventLog) payloads(args ...any) *common.Payloads {
	p, err := converter.GetDefaultDataConverter().ToPayloads(args...)
	require.NoError(h.t, err)
	return p
}

func (h *eventLog) next(kind enums.EventType) *history.HistoryEvent {
	e := &history.HistoryEvent{EventId: int64(len(h.Events) + 1), EventType: kind}
	if !h.now.IsZero() {
		e.EventTime = timestamppb.New(h.now)
	}
	h.Events = append(h.Events, e)
	return e
}

// start begins the history of a sweep.
func (h *eventLog) start(carry *SweepCarry) {
	h.next(enums.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED).Attributes = &history.HistoryEvent_WorkflowExecutionStartedEventAttributes{
		WorkflowExecutionStartedEventAttributes: &history.WorkflowExecutionStartedEventAttributes{
			WorkflowType: &common.WorkflowType{Name: "Sweep"}, TaskQueue: &taskqueue.TaskQueue{Name: activities.WorkflowQueue},
			Input: h.payloads(json.RawMessage(`{}`), carry),
		},
	}
}

// task is a workflow task.
func (h *eventLog) task(suggest bool) {
	h.now = h.now.Add(h.pace)
	at := h.next(enums.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED).EventId
	h.Events[at-1].Attributes = &history.HistoryEvent_WorkflowTaskScheduledEventAttributes{WorkflowTaskScheduledEventAttributes: &history.WorkflowTaskScheduledEventAttributes{}}
	h.next(enums.EVENT_TYPE_WORKFLOW_TASK_STARTED).Attributes = &history.HistoryEvent_WorkflowTaskStartedEventAttributes{
		WorkflowTaskStartedEventAttributes: &history.WorkflowTaskStartedEventAttributes{ScheduledEventId: at, SuggestContinueAsNew: suggest},
	}
	h.next(enums.EVENT_TYPE_WORKFLOW_TASK_COMPLETED).Attributes = &history.HistoryEvent_WorkflowTaskCompletedEventAttributes{
		WorkflowTaskCompletedEventAttributes: &history.WorkflowTaskCompletedEventAttributes{ScheduledEventId: at, StartedEventId: at + 1},
	}
}

// schedule schedules an activity; the SDK names it by its event.
func (h *eventLog) schedule(name string) int64 {
	e := h.next(enums.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED)
	e.Attributes = &history.HistoryEvent_ActivityTaskScheduledEventAttributes{ActivityTaskScheduledEventAttributes: &history.ActivityTaskScheduledEventAttributes{
		ActivityId: fmt.Sprint(e.EventId), ActivityType: &common.ActivityType{Name: name}, TaskQueue: &taskqueue.TaskQueue{Name: activities.WorkflowQueue},
	}}
	return e.EventId
}

// timer starts a timer.
func (h *eventLog) timer() {
	e := h.next(enums.EVENT_TYPE_TIMER_STARTED)
	e.Attributes = &history.HistoryEvent_TimerStartedEventAttributes{
		TimerStartedEventAttributes: &history.TimerStartedEventAttributes{TimerId: fmt.Sprint(e.EventId)},
	}
}

// complete completes an activity.
func (h *eventLog) complete(scheduled int64, result any) {
	e := h.next(enums.EVENT_TYPE_ACTIVITY_TASK_STARTED)
	e.Attributes = &history.HistoryEvent_ActivityTaskStartedEventAttributes{
		ActivityTaskStartedEventAttributes: &history.ActivityTaskStartedEventAttributes{ScheduledEventId: scheduled},
	}
	h.next(enums.EVENT_TYPE_ACTIVITY_TASK_COMPLETED).Attributes = &history.HistoryEvent_ActivityTaskCompletedEventAttributes{
		ActivityTaskCompletedEventAttributes: &history.ActivityTaskCompletedEventAttributes{ScheduledEventId: scheduled, StartedEventId: e.EventId, Result: h.payloads(result)},
	}
}

// signal is a trial's report.
func (h *eventLog) signal(r TrialReport) {
	h.next(enums.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED).Attributes = &history.HistoryEvent_WorkflowExecutionSignaledEventAttributes{
		WorkflowExecutionSignaledEventAttributes: &history.WorkflowExecutionSignaledEventAttributes{SignalName: TrialSignal, Input: h.payloads(r)},
	}
}

// child has a trial's workflow started.
func (h *eventLog) child(label string) int64 {
	e := h.next(enums.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED)
	e.Attributes = &history.HistoryEvent_StartChildWorkflowExecutionInitiatedEventAttributes{
		StartChildWorkflowExecutionInitiatedEventAttributes: &history.StartChildWorkflowExecutionInitiatedEventAttributes{
			WorkflowId: sweep.ID(testSweep, label), WorkflowType: &common.WorkflowType{Name: "Train"},
		},
	}
	return e.EventId
}

// childStarted and childDone are the server's answers.
func (h *eventLog) childStarted(initiated int64, label string) {
	h.next(enums.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_STARTED).Attributes = &history.HistoryEvent_ChildWorkflowExecutionStartedEventAttributes{
		ChildWorkflowExecutionStartedEventAttributes: &history.ChildWorkflowExecutionStartedEventAttributes{
			InitiatedEventId: initiated, WorkflowType: &common.WorkflowType{Name: "Train"},
			WorkflowExecution: &common.WorkflowExecution{WorkflowId: sweep.ID(testSweep, label), RunId: label},
		},
	}
}

func (h *eventLog) childDone(initiated int64, label string) {
	h.next(enums.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_COMPLETED).Attributes = &history.HistoryEvent_ChildWorkflowExecutionCompletedEventAttributes{
		ChildWorkflowExecutionCompletedEventAttributes: &history.ChildWorkflowExecutionCompletedEventAttributes{
			InitiatedEventId: initiated, Result: h.payloads(TrainResult{}), WorkflowType: &common.WorkflowType{Name: "Train"},
			WorkflowExecution: &common.WorkflowExecution{WorkflowId: sweep.ID(testSweep, label), RunId: label},
		},
	}
}

// replay plays the history of a sweep, and gives how the workflow ended.
func (h *eventLog) replay(sweep func(workflow.Context, json.RawMessage, *SweepCarry) (*SweepResult, error)) error {
	h.t.Helper()
	var ended error
	r, err := worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{DisableDeadlockDetection: true})
	require.NoError(h.t, err)
	r.RegisterWorkflowWithOptions(func(ctx workflow.Context, input json.RawMessage, carry *SweepCarry) (*SweepResult, error) {
		var result *SweepResult
		result, ended = sweep(ctx, input, carry)
		return result, ended
	}, workflow.RegisterOptions{Name: "Sweep"})
	err = r.ReplayWorkflowHistoryWithOptions(silent, &h.History, worker.ReplayWorkflowHistoryOptions{OriginalExecution: workflow.Execution{ID: testSweep}})
	if err != nil {
		require.NotContains(h.t, err.Error(), nonDeterministic)
	}
	return ended
}

// swept is the history of a whole sweep: its trials report twice each, and the tasks bring
// so many ends each. It writes what the workflow does next, in the workflow's order.
type swept struct {
	eventLog
	f        *field
	carry    *SweepCarry
	trials   []sweep.Trial
	parallel int
	began    int // trials
	specs    int // trials whose specs are read
	open     []openTrial
	ended    int   // trials that have ended
	summed   int   // trials that are summarized
	summing  int   // trials whose summary is under way
	waits    int64 // the activity for which the main loop waits; 0 for none
	result   func() any
	over     bool
}

type openTrial struct {
	label              string
	initiated          int64
	started, committed bool
}

// writeSwept writes the history.
func writeSwept(f *field, text string, parallel, ends int) *swept {
	h := &swept{eventLog: eventLog{t: f.t, now: time.Unix(1763735000, 0), pace: 50 * time.Millisecond}, f: f, parallel: parallel}
	h.carry = &SweepCarry{Written: f.written(text), Parallel: parallel}
	h.start(h.carry)
	h.task(false)
	for total := 1; len(h.trials) < total; {
		r, err := f.sweeps.SweepTrials(f.t.Context(), activities.SweepTrialsInput{Sweep: h.carry.Written, From: len(h.trials), Count: pageTrials})
		require.NoError(f.t, err)
		h.trials, total = append(h.trials, r.Trials...), r.Total
		h.complete(h.schedule("SweepTrials"), r)
		h.task(false)
	}
	h.mainLoop()
	for !h.over {
		if waited := h.waits; waited != 0 {
			h.complete(waited, h.result())
		}
		over := h.events(ends)
		h.task(false)
		if h.waits != 0 { // it goes on before the reports are heard
			h.waits, h.summed, h.summing = 0, h.summed+h.summing, 0
			h.mainLoop()
		}
		h.open, h.ended = h.open[over:], h.ended+over
		if h.waits == 0 {
			h.mainLoop()
		}
	}
	h.next(enums.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED).Attributes = &history.HistoryEvent_WorkflowExecutionCompletedEventAttributes{
		WorkflowExecutionCompletedEventAttributes: &history.WorkflowExecutionCompletedEventAttributes{},
	}
	return h
}

// events are those before a task: trials start, report their first iteration, and some end.
func (h *swept) events(ends int) (over int) {
	report := func(label string, version int, end *TrialEnd) {
		h.signal(TrialReport{Trial: label, Begun: version == 1, Ended: end, Committed: []TrialIteration{
			{Version: version, Metrics: activities.Metrics{"success/mean": canon.Float(len(h.Events) % 97)}},
		}})
	}
	room := ends
	for i := range h.open {
		t := &h.open[i]
		switch {
		case !t.started:
			t.started = true
			h.childStarted(t.initiated, t.label)
		case !t.committed && room > 0:
			room--
			t.committed = true
			report(t.label, 1, nil)
		}
	}
	if len(h.open) < h.parallel && h.began < len(h.trials) {
		return 0
	}
	for over < min(ends, len(h.open)) && h.open[over].committed {
		report(h.open[over].label, 2, &TrialEnd{State: sweep.Done})
		h.childDone(h.open[over].initiated, h.open[over].label)
		over++
	}
	return over
}

// mainLoop writes what the main loop does until it waits.
func (h *swept) mainLoop() {
	begun := h.ended > 0 || len(h.open) > 0 && h.open[0].committed // others may share version 0
	for len(h.open) < h.parallel && h.began < len(h.trials) && (begun || len(h.open) == 0) {
		if h.began == h.specs {
			from := h.specs
			h.specs = min(h.specs+pageSpecs, len(h.trials))
			h.waits = h.schedule("SweepTrials")
			h.result = func() any {
				r, err := h.f.sweeps.SweepTrials(h.t.Context(), activities.SweepTrialsInput{Sweep: h.carry.Written, From: from, Count: pageSpecs, Specs: true})
				require.NoError(h.t, err)
				return r
			}
			return
		}
		label := h.trials[h.began].Label
		h.open = append(h.open, openTrial{label: label, initiated: h.child(label)})
		h.began++
	}
	switch {
	case h.summed < h.ended:
		h.summing = min(pageSummaries, h.ended-h.summed)
		h.waits = h.schedule("Summarize")
		n := h.summing
		h.result = func() any {
			var out activities.SummarizeResult
			for range n {
				out.Outcomes = append(out.Outcomes, activities.Outcome{Iterations: 2, Values: []sweep.Value{{Last: 1, Best: 1, At: 1}}})
			}
			return out
		}
	case h.began == len(h.trials) && len(h.open) == 0 && !h.over:
		h.complete(h.schedule("WriteTable"), activities.WriteTableResult{Table: ref("table")})
		h.task(false)
		h.over = true
	}
}
