package workflows

import (
	"errors"
	"fmt"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/steps"
	"github.com/reprise-rl/reprise/infra/store"
)

// errDescribing is the answer to a second command while a first one waits for the environments' descriptions.
var errDescribing = errors.New("the environments are being asked for their descriptions: try again in a moment")

// kindDescribed is the kind of a resume that is refused because a description has changed.
const kindDescribed = "DescriptionChanged"

// uncommitted tells whether the run has committed nothing of its own.
func (t *train) uncommitted() bool { return t.Branch == 0 && t.Next == t.plan.First }

// asksAgain tells whether a resume asks the environments for their descriptions first: they, or a judge, are why the
// run has paused, and a person may have corrected them. A run that is about to go back has its answer.
func (t *train) asksAgain() bool {
	return t.Paused && t.Stuck != nil && t.Stuck.ofEnvironments() && t.plan.AsksEnvironments() && t.RollTo == nil
}

// validResume refuses a resume while the environments are asked, and before the spec is resolved, unless the run has paused
// by itself there.
func (t *train) validResume(ctx workflow.Context) error {
	switch {
	case t.describing:
		return errDescribing
	case t.Stuck != nil:
		return nil
	}
	return t.validReady(ctx)
}

// askResume lets a paused run go on. Where its environment was why it paused, it is first asked for its description.
// Nothing is lost by a new one before the first commit: the run takes it and begins anew. After it, the iterations that
// are committed have the one before, and another one needs a branch.
func (t *train) askResume(ctx workflow.Context) (string, error) {
	text := ""
	if t.asksAgain() {
		stuck := t.Stuck
		r, err := t.describe(ctx, t.uncommitted())
		if err != nil {
			return "", unasked("the run stays paused", err)
		}
		if t.Stuck != stuck {
			return "", errors.New("the run has gone on meanwhile")
		}
		if r.Changed != "" && !t.uncommitted() {
			return "", temporal.NewNonRetryableApplicationError(t.refusedDescription(r.Changed), kindDescribed, nil)
		}
		if r.Changed != "" {
			text = t.beginDescribed(ctx, r)
		}
	}
	t.resume()
	if t.RollTo != nil {
		return fmt.Sprintf("goes back to iteration %d, and on in branch %d", t.RollTo.Iteration, t.Branch+1), nil
	}
	return fmt.Sprintf("goes on with iteration %d%s", t.Next, text), nil
}

// refusedDescription is the answer to a resume after which committed iterations would have another description.
func (t *train) refusedDescription(changed string) string {
	return fmt.Sprintf("the run stays paused: the environment describes itself otherwise than in the iterations that are committed: %s. "+
		"A branch takes the new description: update roll-back with %s, then resume; or start a run `from` iteration %d. "+
		"Or serve the description as it was, and resume", changed, t.describedRollBack(), t.Next-1)
}

// adviceOnEnvironments says what to do about an environment for which the run has paused.
func (t *train) adviceOnEnvironments() string {
	if t.RollTo != nil {
		return fmt.Sprintf("The run goes back to iteration %d, and on in branch %d, when it is resumed.", t.RollTo.Iteration, t.Branch+1)
	}
	if t.uncommitted() {
		text := "Correct the environment or its server. Its description may change (widest, version, rules): " +
			"nothing is committed, and the resume takes the new one"
		if t.plan.Prepare {
			text += " and makes the warm start again"
		}
		return text + "."
	}
	return fmt.Sprintf("Correct the environment or its server: nothing of the turn was stored, and it is asked again. "+
		"If its description has to change (widest, version, rules), open a branch that takes the new one: "+
		"temporal workflow update execute -w %s --name roll-back --input '%s'.", t.Run.ID, t.describedRollBack())
}

// describedRollBack is the input of the update that opens a branch with a new description and gives up no iteration.
func (t *train) describedRollBack() string {
	return fmt.Sprintf(`{"iteration": %d, "describe": true}`, t.Next-1)
}

// describe asks the environments whether they describe themselves as the run's spec does, when nothing runs any longer.
// take asks for a spec with what has changed.
func (t *train) describe(ctx workflow.Context, take bool) (activities.ResolveResult, error) {
	t.describing = true
	defer func() { t.describing = false }()
	if err := workflow.Await(ctx, func() bool { return t.resting || !t.Paused }); err != nil {
		return activities.ResolveResult{}, err
	}
	in := activities.ResolveInput{Run: t.Run.ID, Spec: t.input, Describe: &activities.Describe{Spec: t.Run.Spec, Take: take}}
	if t.uncommitted() && t.plan.Prepare {
		in.Describe.Base = t.Imported
	} else if base := t.Run.Base; base.Digest != "" {
		in.Describe.Base = &base
	}
	return steps.Resolve.Do(t.onHost(ctx, 0), "ask the environments for their descriptions again", in)
}

// unasked is the answer to a command for which the environments could not be asked.
func unasked(so string, err error) error {
	var app *temporal.ApplicationError
	if errors.As(err, &app) {
		text := fmt.Sprintf("%s: the environment was asked for its description: %s", so, app.Message())
		return temporal.NewNonRetryableApplicationError(text, app.Type(), nil)
	}
	return fmt.Errorf("%s: ask the environment for its description: %w", so, err)
}

// described takes another resolved spec over, which differs in the environments' descriptions and in what follows from
// them. Knobs that were changed stay changed.
func (t *train) described(ctx workflow.Context, spec store.Ref, plan activities.Plan) {
	t.Run.Spec = spec
	t.planned(plan)
	t.Settings = plan.Settings.WithKnobs(t.Settings)
	if err := workflow.UpsertMemo(ctx, map[string]any{"spec": spec.Digest}); err != nil {
		workflow.GetLogger(ctx).Warn("memo was not set", "error", err)
	}
}

// beginDescribed begins a run anew that has committed nothing, with another description. The warm start speaks of the
// environment's texts, so it is made again.
func (t *train) beginDescribed(ctx workflow.Context, r activities.ResolveResult) string {
	t.described(ctx, r.Spec, r.Plan)
	t.Current, t.ahead, t.restored, t.Programs, t.Frozen = nil, nil, nil, nil, ""
	t.First, t.Last = nil, nil
	if t.plan.First == 0 {
		t.State = ""
	}
	text := "; the description is new: " + r.Changed
	if t.plan.Prepare {
		t.Run.Base, t.WarmStartBase, t.WarmStart, t.Pace = store.Ref{}, t.Imported, nil, 0
		text += "; the warm start begins anew"
	}
	return text
}

// askRollBack notes the request of a rollback, with the environments' new descriptions if they are asked for.
func (t *train) askRollBack(ctx workflow.Context, r RollBack) (string, error) {
	to := &RollTo{Iteration: r.Iteration}
	text := ""
	if r.Describe {
		answer, err := t.describe(ctx, true)
		if err != nil {
			return "", unasked("the run does not go back", err)
		}
		if err := t.validRollBack(ctx, RollBack{Iteration: r.Iteration}); err != nil { // the run may have gone on meanwhile
			return "", temporal.NewNonRetryableApplicationError(err.Error(), activities.KindInvalid, nil)
		}
		text = "; the description is as it was"
		if answer.Changed != "" {
			to.Spec = &answer.Spec
			text = "; its description is new: " + answer.Changed
		}
	}
	t.RollTo = to
	if r.Describe && t.resting {
		t.show(ctx, t.phase) // it shows what to do next
	}
	return fmt.Sprintf("goes back to iteration %d when the running one is committed, and on in branch %d%s",
		r.Iteration, t.Branch+1, text), nil
}
