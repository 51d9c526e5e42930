package host

import (
	"context"
	"errors"
	"fmt"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// from finds the iteration of another run that a run is forked from. The two share what
// version 0 is made of; all else may differ. policy is the spec's, with the adapters that
// the other run started with; document is what a person wrote. id is the fork's.
func (h *Host) from(ctx context.Context, id string, t spec.Train, document []byte) (_ *activities.Head, policy spec.Policy, err error) {
	policy = t.Policy
	f := *t.From
	if err := store.RefuseRemoved(ctx, h.Store, f.Run); err != nil {
		return nil, policy, fmt.Errorf("from: %w", err)
	}
	m, ref, err := h.committed(ctx, f)
	if errors.Is(err, store.ErrNotFound) || errors.Is(err, activities.ErrNotFound) {
		return nil, policy, fmt.Errorf("from: iteration %d of run %q is not committed in %s: %w", f.Iteration, f.Run, h.Store.Location(store.RunsDir), activities.ErrNotFound)
	}
	if err != nil {
		return nil, policy, fmt.Errorf("from: %w", err)
	}
	theirs, err := run.ReadSpec(ctx, h.Store, m.Spec)
	if err != nil {
		return nil, policy, fmt.Errorf("from: %w", err)
	}
	var problems spec.Problems
	policy = startingAs(policy, theirs.Policy, document).WithDefaultsOf(theirs.Policy, document)
	for _, d := range spec.Diff(spec.Train{Policy: theirs.Policy}, spec.Train{Policy: policy}) {
		problems = append(problems, spec.Problem{Path: d.Path, Found: d.Other, Allowed: d.One, Hint: fmt.Sprintf("run %s has it, and this one goes on with its policy", f.Run)})
	}
	if a, b := theirs.Credit, t.Credit; a.Critic() != b.Critic() || a.PRM() != b.PRM() || a.Promises() != b.Promises() {
		problems = append(problems, spec.Problem{
			Path: "credit.algorithm", Found: t.Credit.Algorithm, Allowed: "an algorithm that needs a critic or a process reward model where " + theirs.Credit.Algorithm + " does, and none where it does not",
			Hint: fmt.Sprintf("this run continues the critic or the process reward model of run %s too", f.Run),
		})
	}
	if len(problems) > 0 {
		return nil, policy, problems
	}
	base, err := run.PutIndex(ctx, h.Store, m.Base)
	if err != nil {
		return nil, policy, err
	}
	recorded, err := activities.Recorded(m, base)
	if err != nil {
		return nil, policy, fmt.Errorf("from: %w", err)
	}
	out := activities.HeadOf(recorded, ref).Forked(spec.SettingsOf(t))
	found, err := store.FindRebuild(ctx, h.Store, ref, nil)
	if err != nil {
		return nil, policy, fmt.Errorf("from: %w", err)
	}
	if found.Snapshot != nil {
		out.Snapshot = found.Snapshot.Version
		if err := store.KeepFor(ctx, h.Store, id, *found.Snapshot); err != nil {
			return nil, policy, fmt.Errorf("from: %w", err)
		}
	}
	for _, link := range found.Again {
		out.Passes += max(len(link.Manifest.Passes)-1, 0)
	}
	return out, policy, nil
}

// committed reads the manifest that a From names.
func (h *Host) committed(ctx context.Context, f spec.From) (*store.Manifest, store.Ref, error) {
	if f.Branch >= 0 {
		return store.ReadManifestAt(ctx, h.Store, f.Run, f.Branch, f.Iteration)
	}
	head, err := run.FindHead(ctx, h.Store, f.Run, new(f.Iteration+1))
	if err == nil && head == nil {
		err = activities.ErrNotFound
	}
	if err != nil {
		return nil, store.Ref{}, err
	}
	m, err := store.ReadManifest(ctx, h.Store, head.Manifest)
	return m, head.Manifest, err
}
