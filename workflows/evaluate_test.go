package workflows

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/reprise-rl/reprise/activities"
)

func TestEvaluate(t *testing.T) {
	two, warm := 2, 0.7
	in := EvaluateInput{Run: "other-run", Version: &two, Instances: 4, Samples: 3, Temperature: &warm}
	s := &stage{plan: testPlan()}
	s.plan.Turns = 2
	p := newPlay(t, s)
	p.ExecuteWorkflow(p.w.Evaluate, in)
	require.NoError(t, p.GetWorkflowError())
	var r EvaluateResult
	require.NoError(t, p.GetWorkflowResult(&r))
	require.Equal(t, fields("Load Restore Generate Step Generate Step Measure"), s.names())
	require.Equal(t, 1, p.closed)
	require.Equal(t, activities.LoadInput{Run: "other-run", Version: &two}, inputs[activities.LoadInput](s, "Load")[0])
	restore := inputs[activities.RestoreInput](s, "Restore")[0]
	require.Equal(t, 2, restore.Version.Version)
	require.Equal(t, ref("manifest"), *restore.Head)
	suite := s.plan.Evaluation
	suite.Instances, suite.Samples, suite.Temperature = 4, 3, 0.7
	rollout := activities.Rollout{Iteration: 2, Evaluation: &activities.EvaluationOf{Suite: suite, Apart: testRun}}
	require.Equal(t, rollout, inputs[activities.GenerateInput](s, "Generate")[1].Rollout)
	require.Equal(t, rollout, inputs[activities.MeasureInput](s, "Measure")[0].Rollout)
	require.Equal(t, 2, r.Version)
	require.Equal(t, "other-run", r.Run)
	require.Len(t, r.Evaluation.Turns, 2)
}

func TestEvaluateErrors(t *testing.T) {
	p := newPlay(t, &stage{plan: testPlan()})
	p.ExecuteWorkflow(p.w.Evaluate, EvaluateInput{})
	require.Equal(t, activities.KindSpecInvalid, kind(t, p.GetWorkflowError()))

	s := &stage{plan: testPlan(), errors: map[string][]error{"Load": answer1(1, activities.KindNotFound)}}
	p = newPlay(t, s)
	p.ExecuteWorkflow(p.w.Evaluate, EvaluateInput{Run: "nobody"})
	require.Equal(t, activities.KindNotFound, kind(t, p.GetWorkflowError()))
	require.Zero(t, p.opened)
}

func TestEvaluateLosesDevice(t *testing.T) {
	s := &stage{plan: testPlan()}
	s.plan.Turns = 2
	p := newPlay(t, s)
	p.loseAt("Generate", 2)
	p.ExecuteWorkflow(p.w.Evaluate, EvaluateInput{Run: testRun})
	require.NoError(t, p.GetWorkflowError())
	require.Equal(t, fields("Load Restore Generate Step Generate Restore Generate Step Measure"), p.order)
}

func TestEvaluateIsCancelled(t *testing.T) {
	s := &stage{plan: testPlan(), stall: map[string]int{"Generate": 1}}
	p := newPlay(t, s)
	p.when("Generate", 1, p.CancelWorkflow)
	p.ExecuteWorkflow(p.w.Evaluate, EvaluateInput{Run: testRun})
	require.True(t, temporal.IsCanceledError(p.GetWorkflowError()))
	require.Equal(t, 1, p.closed)
}
