package host

import (
	"context"
	"fmt"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// ResolveEvaluation checks an Evaluate workflow's input and finds its policy: a run's
// committed version, or a model that it imports. It records the spec that the evaluation
// follows: the policy's own, with the requested suites.
func (h *Host) ResolveEvaluation(ctx context.Context, in activities.ResolveEvaluationInput) (_ activities.LoadResult, err error) {
	defer run.Edge(ctx, &err, "resolve evaluation %s", in.ID)
	defer run.Heartbeat(ctx)()
	if err := store.RefuseRemoved(ctx, h.Store, in.ID); err != nil {
		return activities.LoadResult{}, err
	}
	known := run.Known()
	e, err := spec.DecodeEvaluate(in.Input, known)
	if err != nil {
		return activities.LoadResult{}, err
	}
	var out activities.LoadResult
	var t spec.Train
	if e.Run != "" {
		if out, err = h.measured(ctx, e.Run, e.Version); err != nil {
			return activities.LoadResult{}, err
		}
		if t, err = run.ReadSpec(ctx, h.Store, out.Run.Spec); err != nil {
			return activities.LoadResult{}, err
		}
		if t, err = e.WithSuites(&t, known); err != nil {
			return activities.LoadResult{}, err
		}
	} else {
		if t, err = e.WithSuites(nil, known); err != nil {
			return activities.LoadResult{}, err
		}
		base, _, err := ImportBase(ctx, h.Store, t.Policy)
		if err != nil {
			return activities.LoadResult{}, err
		}
		if t.Policy, err = run.Starting(ctx, h.Store, t.Policy, base, nil); err != nil {
			return activities.LoadResult{}, err
		}
		// The workflow's id takes the place of a run's id: it holds the device.
		out = activities.LoadResult{Run: activities.Run{ID: in.ID, Base: base}}
	}
	if t, err = h.withPins(ctx, t); err != nil {
		return activities.LoadResult{}, err
	}
	if t, err = h.completed(ctx, t, nil, out.Run.Base, true); err != nil {
		return activities.LoadResult{}, err
	}
	b, err := t.JSON()
	if err != nil {
		return activities.LoadResult{}, err
	}
	if out.Run.Spec, err = store.PutArtifact(ctx, h.Store, store.ApartDir(in.ID), "spec", "json", b); err != nil {
		return activities.LoadResult{}, fmt.Errorf("write the spec: %w", err)
	}
	if e.Run != "" {
		if err := h.namePolicy(ctx, in.ID, out); err != nil {
			return activities.LoadResult{}, err
		}
	}
	out.Plan = PlanOf(t)
	out.Flags, err = h.flags(ctx, t, out.Run.Base, true)
	return out, err
}

// namePolicy records whose policy an evaluation measures, beside its spec: a run that an evaluation names is not removed.
func (h *Host) namePolicy(ctx context.Context, id string, of activities.LoadResult) error {
	b, err := canon.Marshal(store.Measured{Run: of.Run.ID, Version: of.Version, State: of.State})
	if err != nil {
		return err
	}
	if _, err := store.PutArtifact(ctx, h.Store, store.ApartDir(id), store.MeasuredName, "json", b); err != nil {
		return fmt.Errorf("write which policy is measured: %w", err)
	}
	// As for a fork: whoever removes the run marks it first, and then looks for evaluations that name it.
	return store.RefuseRemoved(ctx, h.Store, of.Run.ID)
}

// measured finds the version of a run that is measured. Version 0 is what the run
// began with: no manifest made it, and the first one names it.
func (h *Host) measured(ctx context.Context, run string, version *int) (activities.LoadResult, error) {
	if version == nil || *version > 0 {
		return h.find(ctx, run, version, nil)
	}
	out, err := h.find(ctx, run, new(1), nil)
	if err != nil {
		return out, err
	}
	m, err := store.ReadManifest(ctx, h.Store, out.Head.Manifest)
	if err != nil {
		return out, err
	}
	out.Version, out.State, out.Branch, out.Head = 0, m.StateBefore, 0, nil
	return out, nil
}
