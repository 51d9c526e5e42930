package workflows

import (
	"errors"
	"fmt"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/store"
)

// EvaluateInput is what a person starts an Evaluate workflow with.
type EvaluateInput struct {
	// Run is the workflow id of the Train workflow.
	Run string `json:"run"`
	// Version is the policy version: the number of iterations it has seen. By
	// default the newest committed one.
	Version *int `json:"version,omitempty"`
	// Instances and Samples replace the suite's own sizes where set.
	Instances int `json:"instances,omitempty"`
	Samples   int `json:"samples,omitempty"`
	// Temperature replaces the suite's where set.
	Temperature *float64 `json:"temperature,omitempty"`
}

// EvaluateResult is an evaluation's figures and where its artifacts are.
type EvaluateResult struct {
	Run        string              `json:"run"`
	Version    int                 `json:"version"`
	Evaluation store.EvaluationRef `json:"evaluation"`
}

// Evaluate measures a committed policy version of a run on a suite. It opens a
// session of its own on the run's kind of device and gives it back; the run may
// go on meanwhile.
func (w *Workflows) Evaluate(ctx workflow.Context, in EvaluateInput) (*EvaluateResult, error) {
	if in.Run == "" {
		return nil, temporal.NewNonRetryableApplicationError(
			`evaluate: "run" is missing: {"run": "bandit-1", "version": 10}`, activities.KindSpecInvalid, nil)
	}
	var h *activities.Host
	var loaded activities.LoadResult
	if err := w.host(ctx, 0, "Load", "find the policy version", h.Load, activities.LoadInput{Run: in.Run, Version: in.Version}, &loaded); err != nil {
		return nil, err
	}
	suite := loaded.Plan.Evaluation
	if in.Instances > 0 {
		suite.Instances = in.Instances
	}
	if in.Samples > 0 {
		suite.Samples = in.Samples
	}
	if in.Temperature != nil {
		suite.Temperature = *in.Temperature
	}
	// The steps are those of a run's own evaluation: the same function, on a
	// train that has nothing else to do.
	t := &train{Workflows: w, plan: loaded.Plan, Carry: Carry{
		Run: loaded.Run, Branch: loaded.Branch, Next: loaded.Version, State: loaded.State,
		Head: loaded.Head, Settings: loaded.Plan.Settings, Fingerprint: loaded.Fingerprint,
	}}
	it := &iteration{Settings: t.Settings, Metrics: activities.Metrics{}, Timings: map[string]activities.Telemetry{}}
	r := &rolled{}
	apart := workflow.GetInfo(ctx).WorkflowExecution.ID
	for {
		e, err := t.evaluateAlone(ctx, it, r, activities.EvaluationOf{Suite: suite, Apart: apart})
		if errors.Is(err, errDeviceLost) {
			continue
		}
		if errors.Is(err, errLongHistory) {
			return nil, workflow.NewContinueAsNewError(ctx, "Evaluate", in)
		}
		if err != nil {
			return nil, err
		}
		t.show(ctx, fmt.Sprintf("version %d: success %s, reward %s", loaded.Version,
			metric(e.Metrics, "success/mean"), metric(e.Metrics, "reward/mean")))
		return &EvaluateResult{Run: in.Run, Version: loaded.Version, Evaluation: *e}, nil
	}
}

func (t *train) evaluateAlone(ctx workflow.Context, it *iteration, r *rolled, of activities.EvaluationOf) (*store.EvaluationRef, error) {
	if err := t.chooseDevice(ctx); err != nil {
		return nil, err
	}
	t.show(ctx, "opening a session on a device")
	s, err := t.openSession(ctx, t.Fingerprint, t.plan.ActivitySeconds, func(wanted string, present []string) {
		t.wanted, t.present = wanted, present
		t.show(ctx, waitingForDevice)
	})
	if err != nil {
		return nil, err
	}
	defer s.close()
	if err := t.restore(ctx, s); err != nil {
		return nil, err
	}
	return t.evaluateVersion(ctx, s, it, r, activities.Rollout{Iteration: t.Next, Evaluation: &of}, t.State)
}
