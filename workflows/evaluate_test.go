package workflows

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/reprise-rl/reprise/activities"
)

var evaluateInput = json.RawMessage(`{"policy":"other-run"}`)

func TestEvaluate(t *testing.T) {
	s := &stage{plan: testPlan()}
	s.plan.Turns = 3
	s.plan.Suites = []activities.PlanSuite{{Name: "near", Turns: 2, Rows: 4}, {Name: "far", Turns: 1, Rows: 8}}
	p := newPlay(t, s)
	p.ExecuteWorkflow(p.w.Evaluate, evaluateInput)
	require.NoError(t, p.GetWorkflowError())
	var r EvaluateResult
	require.NoError(t, p.GetWorkflowResult(&r))
	require.Equal(t, fields("ResolveEvaluation Restore Generate Step Generate Step Measure Generate Step Measure"), s.names())
	require.Equal(t, 1, p.closed)
	require.Equal(t, activities.ResolveEvaluationInput{ID: testRun, Input: evaluateInput}, inputs[activities.ResolveEvaluationInput](s, "ResolveEvaluation")[0])
	restore := inputs[activities.RestoreInput](s, "Restore")[0]
	require.Equal(t, 2, restore.Version.Version)
	require.True(t, restore.Evaluate)
	require.Equal(t, ref("manifest"), *restore.Head)
	rollout := activities.Rollout{Iteration: 2, Evaluation: &activities.EvaluationOf{Suite: "near", Apart: testRun}}
	require.Equal(t, rollout, inputs[activities.GenerateInput](s, "Generate")[1].Rollout)
	require.Equal(t, rollout, inputs[activities.MeasureInput](s, "Measure")[0].Rollout)
	require.Equal(t, testPrint, inputs[activities.MeasureInput](s, "Measure")[0].Fingerprint)
	require.Equal(t, "far", inputs[activities.MeasureInput](s, "Measure")[1].Rollout.Evaluation.Suite)
	require.Equal(t, 2, r.Version)
	require.Equal(t, "other-run", r.Run)
	require.Len(t, r.Evaluations, 2)
	require.Equal(t, "far", r.Evaluations[1].Suite)
	require.Empty(t, r.Evaluations[0].Turns, "the result stays small")

	v, err := p.QueryWorkflow("status")
	require.NoError(t, err)
	var status EvaluateStatus
	require.NoError(t, v.Get(&status))
	require.Equal(t, "done", status.Phase)
	require.Len(t, status.Done, 2)
}

func TestEvaluateModel(t *testing.T) {
	s := &stage{plan: testPlan(), model: true}
	p := newPlay(t, s)
	p.ExecuteWorkflow(p.w.Evaluate, json.RawMessage(`{"policy": "folder:x", "suites": ["bandit"]}`))
	require.NoError(t, p.GetWorkflowError())
	var r EvaluateResult
	require.NoError(t, p.GetWorkflowResult(&r))
	require.Equal(t, testRun, r.Run)
	require.Zero(t, r.Version)
	require.Equal(t, testPrint, r.Fingerprint)
	require.NotEmpty(t, r.State, "a model's state is known once it is loaded")
	require.Nil(t, inputs[activities.RestoreInput](s, "Restore")[0].Head)
	require.Equal(t, r.State, inputs[activities.MeasureInput](s, "Measure")[0].State)
}

func TestEvaluateErrors(t *testing.T) {
	s := &stage{plan: testPlan(), errors: map[string][]error{"ResolveEvaluation": answer1(1, activities.KindNotFound)}}
	p := newPlay(t, s)
	p.ExecuteWorkflow(p.w.Evaluate, evaluateInput)
	require.Equal(t, activities.KindNotFound, kind(t, p.GetWorkflowError()))
	require.Zero(t, p.opened)
}

func TestEvaluateLosesDevice(t *testing.T) {
	s := &stage{plan: testPlan()}
	s.plan.Suites[0].Turns = 2
	p := newPlay(t, s)
	p.loseAt("Generate", 2)
	p.ExecuteWorkflow(p.w.Evaluate, evaluateInput)
	require.NoError(t, p.GetWorkflowError())
	require.Equal(t, fields("ResolveEvaluation Restore Generate Step Generate Restore Generate Step Measure"), p.order)
}

func TestEvaluateIsCancelled(t *testing.T) {
	s := &stage{plan: testPlan(), stall: map[string]int{"Generate": 1}}
	p := newPlay(t, s)
	p.when("Generate", 1, p.CancelWorkflow)
	p.ExecuteWorkflow(p.w.Evaluate, evaluateInput)
	require.True(t, temporal.IsCanceledError(p.GetWorkflowError()))
	require.Equal(t, 1, p.closed)
}
