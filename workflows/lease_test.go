package workflows

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/reprise-rl/reprise/activities"
)

// A run that waits keeps its place in line: it asks for a lease once, says who has the device and how many are before it, and
// others find that it waits.
func TestStandsInLine(t *testing.T) {
	s := &stage{plan: testPlan(), base: true, attributes: true}
	s.device = activities.DeviceInfo{Busy: "other", Line: []string{"before", testRun, "after"}}
	p := newPlay(t, s)
	p.creation.After(30 * time.Second)
	var seen Status
	p.when("Describe", 3, func() { seen = p.status() })
	p.train(nil)
	p.result()
	require.Equal(t, &Waiting{Wanted: testPrint, Present: []string{testPrint}, Busy: "other", Place: 2, Of: 3}, seen.Waiting)
	require.Equal(t, "a device worker with fingerprint f00df00df00d is there, and is busy with other; this run is number 2 of 3 in line "+
		"(first come, first served among equal priorities), and another worker of that fingerprint would take it at once", seen.Waiting.InLine())
	require.Len(t, p.tried, 1, "it stands in line once")
	require.Nil(t, p.status().Waiting)
}

// A run's place in line has the run's name as its fairness key, or its sweep's, unless a person has given one. A name that is too long
// for a key is hashed.
func TestLinePriority(t *testing.T) {
	long := strings.Repeat("ä", 33)
	for name, c := range map[string]struct {
		of   workflow.Info
		want temporal.Priority
	}{
		"a run":          {workflow.Info{WorkflowExecution: workflow.Execution{ID: "r"}}, temporal.Priority{FairnessKey: "r"}},
		"a trial":        {workflow.Info{WorkflowExecution: workflow.Execution{ID: "s/1"}, ParentWorkflowExecution: &workflow.Execution{ID: "s"}}, temporal.Priority{FairnessKey: "s"}},
		"a person's key": {workflow.Info{WorkflowExecution: workflow.Execution{ID: "r"}, Priority: temporal.Priority{FairnessKey: "team"}}, temporal.Priority{}},
		"a person's priority": {workflow.Info{WorkflowExecution: workflow.Execution{ID: "r"}, Priority: temporal.Priority{PriorityKey: 1}},
			temporal.Priority{FairnessKey: "r"}},
		"a long name": {workflow.Info{WorkflowExecution: workflow.Execution{ID: long}},
			temporal.Priority{FairnessKey: fmt.Sprintf("%x", sha256.Sum256([]byte(long)))}},
	} {
		t.Run(name, func(t *testing.T) {
			got := linePriority(&c.of)
			require.Equal(t, c.want, got)
			require.LessOrEqual(t, len(got.FairnessKey), fairnessKeyMax)
		})
	}
}

// What becomes of a lease is said as it was: a process that was lost counts as a failure of its step and a device that was lost, a
// drained one and a lease that nobody held do not.
func TestEndsOfLeases(t *testing.T) {
	for name, c := range map[string]struct {
		end     activities.HoldResult
		lost    int
		drained int
		failing *Failing
	}{
		"lost": {activities.HoldResult{End: activities.LeaseLost, Reason: "signal: killed", Signal: "killed"}, 1, 0,
			&Failing{Step: "Update: iteration 0 · update on 4 rows", Count: 1, Kind: "WorkerLost", Error: "the process that computes was lost: signal: killed"}},
		"drained": {activities.HoldResult{End: activities.LeaseDrained}, 0, 1, nil},
		"refused": {activities.HoldResult{End: activities.LeaseRefused}, 0, 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := &stage{plan: testPlan(), base: true, stall: map[string]int{"Update": 1}}
			p := newPlay(t, s)
			p.when("Update", 1, func() { p.ends[1] <- c.end })
			var failing []Failing
			p.when("Restore", 2, func() { failing = p.status().Failing })
			p.train(nil)
			r := p.result()
			require.Equal(t, c.lost, r.LostDevices)
			require.Equal(t, c.drained, p.status().DrainedDevices)
			require.Equal(t, 2, p.opened)
			require.Equal(t, 1, p.closed)
			if c.failing == nil {
				require.Empty(t, failing)
			} else {
				require.Equal(t, []Failing{*c.failing}, failing)
			}
			require.Equal(t, manifests(undisturbed(t, s)), manifests(s.commits))
		})
	}
}

// A run that is told to do something else while it stands in line leaves it, and so does one that is cancelled.
func TestLeavesTheLine(t *testing.T) {
	s := &stage{plan: testPlan(), base: true}
	p := newPlay(t, s)
	p.creation.After(time.Hour)
	p.RegisterDelayedCallback(func() { p.send("pause") }, 10*time.Second)
	p.RegisterDelayedCallback(func() {
		require.Equal(t, "paused", p.status().Phase)
		p.CancelWorkflow()
	}, 20*time.Second)
	p.train(nil)
	require.ErrorContains(t, p.GetWorkflowError(), "canceled")
	require.Zero(t, p.started["Hold"])
}
