package workflows

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"

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
	trials, err := f.sweeps.SweepTrials(t.Context(), activities.SweepTrialsInput{Sweep: written, Count: pageTrials})
	require.NoError(t, err)
	report := func(version int) TrialReport {
		return TrialReport{Trial: "seed=1", Committed: []TrialIteration{{Version: version, Metrics: activities.Metrics{"success/mean": canon.Float(version)}}}}
	}

	h := &eventLog{t: t}
	carry := &SweepCarry{Written: written, Parallel: 1, Records: []activities.TrialRecord{{State: sweep.Running}}}
	h.start(carry)
	h.task(false)
	h.complete(h.schedule("SweepTrials"), trials)
	h.task(false)
	look := h.schedule("LookUp")
	h.timer() // of those that say nothing
	h.complete(look, activities.LookUpResult{Found: []activities.Found{{State: sweep.Running, Sweep: testSweep}}})
	h.signal(report(1))
	h.signal(report(2))
	h.task(true)
	h.next(enums.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW).Attributes = &history.HistoryEvent_WorkflowExecutionContinuedAsNewEventAttributes{
		WorkflowExecutionContinuedAsNewEventAttributes: &history.WorkflowExecutionContinuedAsNewEventAttributes{WorkflowType: &common.WorkflowType{Name: "Sweep"}},
	}

	// The carried state is checked below.
	ended := h.replay((&Workflows{}).Sweep)
	record := sweepCarryOf(t, ended).Records[0]
	require.Equal(t, 2, record.Iterations)
	require.Equal(t, sweep.Value{Last: 2, Best: 2, At: 1}, record.Values[0])
	require.Equal(t, 2, record.Curve.N, "in their order")
}

// A trial that reports its end before the server says that its workflow has started keeps
// its sweep from continuing as new until then, and not for longer.
func TestSweepHearsAnEndBeforeTheStart(t *testing.T) {
	f := newField(t)
	written := f.written(`{"base": BASE, "seeds": [1, 2]}`)
	page := func(specs bool) activities.SweepTrialsResult {
		r, err := f.sweeps.SweepTrials(t.Context(), activities.SweepTrialsInput{Sweep: written, Count: pageTrials, Specs: specs})
		require.NoError(t, err)
		return r
	}
	trials := page(true).Trials
	h := &eventLog{t: t}
	h.start(&SweepCarry{Written: written, Parallel: 1})
	h.task(false)
	h.complete(h.schedule("SweepTrials"), page(false))
	h.task(false)
	h.complete(h.schedule("SweepTrials"), page(true))
	h.task(false)
	first := h.child(trials[0].Label)
	h.signal(TrialReport{Trial: trials[0].Label, Begun: true, Ended: &TrialEnd{State: sweep.Done}})
	h.task(true)
	second := h.child(trials[1].Label)
	summary := h.schedule("Summarize")
	h.childStarted(first, trials[0].Label)
	h.childDone(first, trials[0].Label)
	h.complete(summary, activities.SummarizeResult{Outcomes: []activities.Outcome{{Iterations: 4}}})
	h.task(true)
	h.childStarted(second, trials[1].Label)
	h.task(true)
	h.next(enums.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW).Attributes = &history.HistoryEvent_WorkflowExecutionContinuedAsNewEventAttributes{
		WorkflowExecutionContinuedAsNewEventAttributes: &history.WorkflowExecutionContinuedAsNewEventAttributes{WorkflowType: &common.WorkflowType{Name: "Sweep"}},
	}
	carry := sweepCarryOf(t, h.replay((&Workflows{}).Sweep))
	require.Len(t, carry.Records, 2)
	require.Equal(t, sweep.Done, carry.Records[0].State)
	require.Equal(t, sweep.Running, carry.Records[1].State)
}
