package workflows

import (
	"encoding/json"
	"errors"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/steps"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workflows/iteration"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// EvaluateResult is what an Evaluate workflow found.
type EvaluateResult struct {
	// Run and Version are the policy's; a model has the workflow's id and version 0.
	Run     string `json:"run"`
	Version int    `json:"version"`
	// State is the policy's state fingerprint, Fingerprint the device's.
	State       string `json:"state"`
	Fingerprint string `json:"fingerprint"`
	// Evaluations are the suites' figures, and where their artifacts are.
	Evaluations []store.EvaluationRef `json:"evaluations"`
}

// EvaluateStatus is the answer to the query "status" of an Evaluate workflow.
type EvaluateStatus struct {
	Run     string      `json:"run"`
	Version int         `json:"version"`
	Phase   string      `json:"phase"`
	Suites  int         `json:"suites"`
	Done    []Evaluated `json:"done"`
	Waiting *Waiting    `json:"waiting,omitempty"`
}

func (t *train) evaluateStatus() EvaluateStatus {
	s := EvaluateStatus{
		Run: t.Run.ID, Version: t.Next, Phase: t.phase, Suites: len(t.plan.Suites), Done: []Evaluated{}, Waiting: t.waiting(),
	}
	for i := range t.Current.Evaluations {
		s.Done = append(s.Done, *evaluated(&t.Current.Evaluations[i]))
	}
	return s
}

// Evaluate measures a policy on suites: a committed version of a run, or a
// model. input is spec.Evaluate's JSON as a person wrote it:
//
//	{"policy": {"run": "bandit-1", "version": 10}, "suites": ["in-distribution", "bandit-test"]}
//
// It opens a session of its own on the policy's kind of device and gives it
// back; a run may continue meanwhile.
func (w *Workflows) Evaluate(ctx workflow.Context, input json.RawMessage) (*EvaluateResult, error) {
	id := workflow.GetInfo(ctx).WorkflowExecution.ID
	t := &train{Workflows: w, measuring: true}
	t.Current = iteration.Begin(spec.Settings{}, nil)
	t.show(ctx, "resolving")
	status := func(nothing) (EvaluateStatus, error) { return t.evaluateStatus(), nil }
	if err := register(ctx, []command{question("status", status, "which suites are measured, and what they gave", "")}, nil); err != nil {
		return nil, err
	}
	loaded, err := steps.ResolveEvaluation.Do(w.onHost(ctx, 0), "check the input and find the policy",
		activities.ResolveEvaluationInput{ID: id, Input: input})
	if err != nil {
		t.show(ctx, "ended: "+reason(ctx, err))
		return nil, err
	}
	// The steps are the same as in a run's own evaluation, on a train that does nothing
	// else.
	t.plan, t.Workflows = loaded.Plan, w.with(loaded.Flags)
	t.Carry = Carry{
		Run: loaded.Run, Branch: loaded.Branch, Next: loaded.Version, State: loaded.State,
		Head: loaded.Head, Settings: loaded.Plan.Settings, Fingerprint: loaded.Fingerprint, Current: t.Current,
	}
	t.Current.Settings = t.Settings
	for {
		err := t.evaluateAlone(ctx, id)
		if errors.Is(err, errDeviceLost) {
			step := t.failedTooOften(err)
			if step == nil {
				if err := t.awaitMemory(ctx, err); err != nil {
					return nil, err
				}
				continue
			}
			// Nothing is lost: an evaluation that is started again writes the same files.
			err = temporal.NewNonRetryableApplicationError(step.Text()+". "+remedyOf(step.Kind)+" Then start the evaluation again.", step.Kind, nil)
		}
		if errors.Is(err, errLongHistory) {
			return nil, workflow.NewContinueAsNewError(ctx, "Evaluate", input)
		}
		if err != nil {
			t.show(ctx, "ended: "+reason(ctx, err))
			return nil, err
		}
		t.show(ctx, "done")
		out := &EvaluateResult{Run: t.Run.ID, Version: loaded.Version, State: t.State, Fingerprint: t.Fingerprint}
		for i := range t.Current.Evaluations {
			out.Evaluations = append(out.Evaluations, *brief(&t.Current.Evaluations[i]))
		}
		return out, nil
	}
}

// evaluateAlone opens a session, restores the version and measures what is left. id is
// the Evaluate workflow's.
func (t *train) evaluateAlone(ctx workflow.Context, id string) error {
	if err := t.chooseDevice(ctx); err != nil {
		return err
	}
	t.show(ctx, askingForDevice)
	s, err := t.openSession(ctx, t.Fingerprint, t.plan.ActivitySeconds, t.commanded(), t.inLine(ctx))
	if err != nil {
		return err
	}
	defer s.close()
	if err := t.restore(ctx, s); err != nil {
		return err
	}
	start := t.start()
	start.Apart = id
	return t.drive(ctx, s, iteration.NewEvaluation(start, t.Current))
}
