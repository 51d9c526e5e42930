package run

import (
	"context"
	"errors"
	"fmt"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/store"
)

// RecentBatches are a run's newest batches at and before a manifest, newest first, at most
// so many. Iterations whose update was skipped have none and are passed over, as the
// workflow does; those of another run, or of another description of the environment, have shapes of their own.
func RecentBatches(ctx context.Context, s store.Store, run string, head *store.Ref, most int) ([]store.Ref, error) {
	var out []store.Ref
	var spec *store.Ref // of the newest
	if head == nil || most == 0 {
		return nil, nil
	}
	for link, err := range store.Walk(ctx, s, *head) {
		if err != nil {
			return nil, err
		}
		m := link.Manifest
		if spec == nil {
			spec = &m.Spec
		}
		if m.Run != run || m.Spec != *spec {
			break
		}
		if m.Batch != nil { // a run with passes draws from none
			out = append(out, *m.Batch)
		}
		if len(out) == most {
			break
		}
	}
	return out, nil
}

// FindHead finds a committed policy version of a run: the newest, or the given one
// on the newest branch's chain. It returns nil if nothing is committed.
func FindHead(ctx context.Context, s store.Store, run string, version *int) (*activities.Head, error) {
	return FindHeadOf(ctx, s, run, version, nil)
}

// FindHeadOf is FindHead on the chain that ends with a given manifest; nil is the newest
// branch's.
func FindHeadOf(ctx context.Context, s store.Store, run string, version *int, end *store.Ref) (*activities.Head, error) {
	if end == nil {
		newest, err := store.Head(ctx, s, run)
		if errors.Is(err, store.ErrNotFound) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		end = &newest.Ref
	}
	newest := -1
	var found *store.Link
	var snapshot, passes int
	var first, last *store.EvaluationRef
	// The chain is walked to its beginning: that is also the check that all of
	// it is there before a run continues from it.
	for link, err := range store.Walk(ctx, s, *end) {
		if err != nil {
			return nil, err
		}
		m := link.Manifest
		newest = max(newest, m.Version())
		if found == nil && (version == nil || m.Version() == *version) {
			found = &link
		}
		if found == nil {
			continue
		}
		if m.Run != run {
			m.Evaluations = nil // the run began after another's iteration
		}
		if snapshot == 0 && m.Snapshot != nil {
			snapshot = m.Snapshot.Version
		}
		if snapshot == 0 {
			passes += max(len(m.Passes)-1, 0)
		}
		for i := range m.Evaluations {
			// Backwards; a version's first suite represents all its suites.
			e := &m.Evaluations[len(m.Evaluations)-1-i]
			e.Turns = nil // the manifest keeps them; what a workflow carries stays small
			if last == nil || last.Version == e.Version {
				last = e
			}
			first = e
		}
	}
	if found == nil {
		return nil, fmt.Errorf("version %d of run %s is not committed; the newest is %d: %w", *version, run, newest, activities.ErrNotFound)
	}
	base, err := PutIndex(ctx, s, found.Manifest.Base)
	if err != nil {
		return nil, err
	}
	recorded, err := activities.Recorded(found.Manifest, base)
	if err != nil {
		return nil, err
	}
	head := activities.HeadOf(recorded, found.Ref)
	head.Snapshot, head.Passes, head.First, head.Last = snapshot, passes, first, last
	return head, nil
}
