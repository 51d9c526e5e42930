package host

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/foreign"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// written is the resolved spec of a run, and its ref. It is the spec of the newest committed iteration, or of the start if
// nothing is committed; nil if the run has none, or if its object is gone.
func (h *Host) written(ctx context.Context, runID string, head *activities.Head) (*spec.Train, store.Ref, error) {
	if head != nil {
		m, err := store.ReadManifest(ctx, h.Store, head.Manifest)
		if err != nil {
			return nil, store.Ref{}, err
		}
		if m.Spec.Key != store.SpecKey(runID) { // the environment's description has changed since the start
			t, err := run.ReadSpec(ctx, h.Store, m.Spec)
			return &t, m.Spec, err
		}
	}
	return run.WrittenSpec(ctx, h.Store, runID)
}

// describedAgain asks the environments of a run under way for their descriptions again. Where they have changed and are
// to be taken, it writes another resolved spec beside the first one: all else is as the run has it, and what follows
// from the descriptions (the widths of contexts, the sizes of pieces) is computed again. That the spec counts is the
// decision of the workflow, and the next manifest names it.
func (h *Host) describedAgain(ctx context.Context, in activities.ResolveInput) (out activities.ResolveResult, err error) {
	had := in.Describe.Spec
	written, err := run.ReadSpec(ctx, h.Store, had)
	if err != nil {
		return out, err
	}
	t, err := h.decoded(ctx, in.Spec)
	if err != nil {
		return out, err
	}
	same := completedFrom(t, written, in.Spec)
	changed, err := describedOtherwise(written, same)
	if err != nil {
		return out, err
	}
	out.Spec, out.Plan, out.Changed = had, PlanOf(written), changed
	if changed == "" {
		if d := spec.Diff(written, same); len(d) > 0 {
			return out, fmt.Errorf("%w: stored and given differ in\n%s", activities.ErrSpecDiffers, d)
		}
		return out, nil
	}
	if !in.Describe.Take {
		return out, nil
	}
	t = t.WithDefaultsOf(written, in.Spec)
	t.Policy = written.Policy
	t = takenFrom(t, written)
	var base store.Ref
	if in.Describe.Base != nil {
		base = *in.Describe.Base
	} else if t.Policy.Starter == nil {
		return out, fmt.Errorf("describe a run again whose model is not named: %w", store.ErrInvalid)
	}
	if t, err = h.completed(ctx, t, in.Spec, base, in.Describe.Base != nil); err != nil {
		return out, err
	}
	b, err := t.JSON()
	if err != nil {
		return out, err
	}
	out.Plan = PlanOf(t)
	out.Spec, err = store.PutArtifact(ctx, h.Store, store.RunDir(in.Run), "spec", "json", b)
	return out, err
}

// differs is the error of a run that is started again with another spec than the one it has: the differences, and what can
// be done.
func (h *Host) differs(written, given spec.Train, d spec.Differences, ref store.Ref, head *activities.Head) error {
	changed, err := describedOtherwise(written, given)
	if err == nil && changed != "" && head != nil {
		return fmt.Errorf("%w: the environment describes itself otherwise than in the iterations that are committed: %s; "+
			"serve the description as it was and start it again (update roll-back with describe then opens a branch with a new one), "+
			"or start another run `from` iteration %d of this one",
			activities.ErrSpecDiffers, changed, head.Iteration)
	}
	return fmt.Errorf("%w: stored and given differ in\n%s\nstart it under another workflow id, or with the stored spec (%s)",
		activities.ErrSpecDiffers, d, h.Store.Location(ref.Key))
}

// describedOtherwise says how two specs differ if they do in the descriptions of foreign environments alone; "" if they
// differ in nothing, or in anything else.
func describedOtherwise(was, now spec.Train) (string, error) {
	a, err := undescribed(was)
	if err != nil {
		return "", err
	}
	b, err := undescribed(now)
	if err != nil || len(spec.Diff(a, b)) > 0 {
		return "", err
	}
	return sayChanged(was, now)
}

// undescribed is a spec without the descriptions of its foreign environments.
func undescribed(t spec.Train) (spec.Train, error) {
	without := func(name string, options json.RawMessage) (json.RawMessage, error) {
		env, err := envs.New(name, options)
		if err != nil {
			return nil, fmt.Errorf("environment %s: %w", name, err)
		}
		if e, ok := env.(*foreign.Environment); ok {
			return e.Undescribed()
		}
		return options, nil
	}
	var err error
	if t.Environment, err = t.Environment.WithOptions(without); err != nil {
		return t, err
	}
	t.Evaluation.Suites = slices.Clone(t.Evaluation.Suites)
	for i, s := range t.Evaluation.Suites {
		if t.Evaluation.Suites[i].Environment, err = s.Environment.WithOptions(without); err != nil {
			return t, err
		}
	}
	return t, nil
}

// sayChanged says how the descriptions of two specs differ, shortly: it is in the run's history and in the answer to a
// person.
func sayChanged(was, now spec.Train) (string, error) {
	before, err := descriptions(was)
	if err != nil {
		return "", err
	}
	after, err := descriptions(now)
	if err != nil {
		return "", err
	}
	var parts []string
	for i, d := range after {
		if change := before[i].Changed(d); !slices.Contains(parts, change) && change != "" { // a suite has the same
			parts = append(parts, change)
		}
	}
	return strings.Join(parts, "; "), nil
}

// descriptions are those of the foreign environments in a spec, in its order.
func descriptions(t spec.Train) ([]foreign.Description, error) {
	var out []foreign.Description
	all := []spec.Environment{t.Environment}
	for _, s := range t.Evaluation.Suites {
		all = append(all, s.Environment)
	}
	for _, e := range all {
		for _, part := range e.Parts() {
			env, err := envs.New(part.Name, part.Options)
			if err != nil {
				return nil, fmt.Errorf("environment %s: %w", part.Name, err)
			}
			if env, ok := env.(*foreign.Environment); ok {
				d, _ := env.Description()
				out = append(out, d)
			}
		}
	}
	return out, nil
}
