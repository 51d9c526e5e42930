package chaos

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workflows"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// TestChaosCancel cancels a run in an Update, and starts another one at once on
// the same worker: the run ends at its last commit within seconds, the other's
// programs wait for the update to end, and the cancelled run, started again, ends
// with the same bytes.
func TestChaosCancel(t *testing.T) {
	beside(t)
	want := reference(t)
	l := newLane(t, sharedStack(t)).withStarter()
	p := l.worker(workerOptions{fault: "Update#2/stall:15000/1", trace: true, heartbeat: "20s"})
	l.start(chaosRun, preset(t, "chaos", nil))
	p.says(t, "Update#2/stall:15000/1 stalls", patience)
	l.cancel(chaosRun)
	l.start("other", preset(t, "chaos", map[string]any{"iterations": 2, "seed": 2}))
	l.ends(chaosRun, enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED)
	require.NotContains(t, p.text(), "goes on", "a cancelled run ends at once; the device may still be computing")
	require.Equal(t, 1, l.committed(chaosRun))
	l.verifies(chaosRun)
	l.completes("other")
	runs := l.alone(p)
	require.Equal(t, []string{chaosRun, "other"}, runs)

	l.start(chaosRun, preset(t, "chaos", nil))
	l.completes(chaosRun)
	require.Equal(t, []string{chaosRun, "other", chaosRun}, l.alone(p))
	l.isAs(chaosRun, want)
}

// TestChaosOneDevice has two runs and an Evaluate share a worker of one slot.
func TestChaosOneDevice(t *testing.T) {
	beside(t)
	reference(t)
	l := newLane(t, sharedStack(t)).withStarter()
	p := l.worker(workerOptions{fault: "Update#1/stall:1000/1", trace: true, heartbeat: "20s"})
	short := map[string]any{"iterations": 3}
	l.start("one", preset(t, "chaos", short))
	l.start("two", preset(t, "chaos", short))
	p.says(t, "Update#1/stall:1000/1 stalls", patience)
	// Whichever came first has a version by now.
	first := l.alone(p)[0]
	_, err := l.cli("workflow", "start", "--type", "Evaluate", "--task-queue", "reprise", "--workflow-id", "evaluate",
		"--input", `{"policy": "`+first+`", "instances": 4}`)
	require.NoError(t, err)
	for _, id := range []string{"one", "two", "evaluate"} {
		l.completes(id)
	}
	runs := l.alone(p)
	for _, id := range []string{"one", "two", "evaluate"} {
		require.Contains(t, runs, id)
	}
	if !l.hindered() {
		require.Len(t, runs, 3, "each had the device once: %v", runs)
		require.Equal(t, 1, strings.Count(p.text(), "evaluate Generate took"))
	}
	l.verifies("one")
	l.verifies("two")
}

// TestChaosContinueAsNew has a run continue as new every two iterations, on a server
// without our search attributes: it continues without them, and says so.
func TestChaosContinueAsNew(t *testing.T) {
	beside(t)
	want := reference(t)
	l := newNamedLane(t, sharedStack(t), "no-attributes", false).withStarter()
	l.worker(workerOptions{flags: []string{"--continue-as-new-after", "2"}})
	l.start(chaosRun, preset(t, "chaos", nil))
	l.completes(chaosRun)
	s, err := l.status(chaosRun)
	require.NoError(t, err)
	require.Len(t, s.Warnings, 1)
	require.Contains(t, s.Warnings[0], "search attributes are not registered")
	l.isAs(chaosRun, want)
	eventually(t, patience, "three executions", func() error {
		out, err := l.client.CountWorkflow(t.Context(), &workflowservice.CountWorkflowExecutionsRequest{
			Namespace: l.namespace, Query: "WorkflowId = '" + chaosRun + "'",
		})
		if err == nil && out.Count != 3 {
			err = fmt.Errorf("there are %d", out.Count)
		}
		return err
	})
}

// TestChaosCommands steers a run through the CLI.
func TestChaosCommands(t *testing.T) {
	beside(t)
	reference(t)
	l := newLane(t, sharedStack(t)).withStarter()
	// The stall outlasts the commands even on a busy machine; nothing is killed, so
	// silence may be long.
	p := l.worker(workerOptions{fault: "Update#1/stall:20000/1", trace: true, heartbeat: "20s"})
	const run = "steered"
	l.start(run, preset(t, "chaos", nil))
	p.says(t, "Update#1/stall:20000/1 stalls", patience)

	// A validator refuses a command that makes no sense, in words, and nothing changes.
	for _, c := range []struct{ name, input, says string }{
		{"stop-after", `{"iteration": 99}`, "the run is at iteration 1 of 6"},
		{"stop-after", `{"iteration": 0}`, "it must be from 1 to 5"},
		{"change-knob", `{"path": "update.learning_rat", "value": 1e-4}`, "update.learning_rate"},
		{"change-knob", `{"path": "update.learning_rate", "value": -1}`, "update.learning_rate"},
		{"change-knob", `{"path": "rollout.groups", "value": 8}`, "rollout.groups"},
		{"no-such", `{}`, "no-such"},
	} {
		_, err := l.update(run, c.name, c.input)
		require.ErrorContains(t, err, c.says, "%s %s", c.name, c.input)
	}
	out, err := l.update(run, "change-knob", `{"path": "update.learning_rate", "value": 1e-4}`)
	require.NoError(t, err)
	require.Contains(t, out, "update.learning_rate holds from iteration 2 on")
	_, err = l.update(run, "pause", "")
	require.NoError(t, err)
	s := l.reaches(run, "a pause", func(s workflows.Status) bool { return s.Paused && s.Phase == "paused" })
	require.Equal(t, 1, s.Iteration)

	// The device is given back: another run has it meanwhile.
	l.start("other", preset(t, "chaos", map[string]any{"iterations": 1, "seed": 2}))
	l.completes("other")
	s, err = l.status(run)
	require.NoError(t, err)
	require.Equal(t, "paused", s.Phase)

	_, err = l.update(run, "stop-after", `{"iteration": 3}`)
	require.NoError(t, err)
	_, err = l.update(run, "resume", "")
	require.NoError(t, err)
	l.completes(run)
	require.Equal(t, 3, l.committed(run))
	require.Equal(t, []string{run, "other", run}, l.alone(p))
	l.verifies(run)
	for iteration, rate := range []float64{3e-4, 3e-4, 1e-4, 1e-4} {
		var settings spec.Settings
		require.NoError(t, json.Unmarshal(l.manifest(run, iteration).Settings, &settings))
		require.InDelta(t, rate, settings.Update.LearningRate, 0, "iteration %d", iteration)
	}
	require.NotNil(t, l.manifest(run, 3).Snapshot, "the last iteration leaves a snapshot")
	require.True(t, slices.ContainsFunc(l.manifest(run, 3).Evaluations, func(e store.EvaluationRef) bool { return e.Version == 4 }),
		"and an evaluation")
}
