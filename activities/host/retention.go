package host

import (
	"context"
	"fmt"
	"path"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// tombstones are the files of snapshots that retention removes with a commit: a
// function of the chain and the spec, so that a retried commit says the same. Only an
// iteration that has a snapshot removes older ones. Snapshots on a branch that a
// rollback abandoned stay, and so does the newest one at or before the version at which a
// branch began: under other programs no version before it can be rebuilt any more, and what
// was abandoned is compared with what came instead.
func (h *Host) tombstones(ctx context.Context, t spec.Train, in activities.CommitInput) ([]store.Tombstone, error) {
	if t.Snapshot.Retain == 0 || in.Snapshot == nil || in.Parent == nil {
		return nil, nil
	}
	older, err := store.KeptSnapshots(ctx, h.Store, *in.Parent)
	if err != nil {
		return nil, fmt.Errorf("retention: %w", err)
	}
	gone := expired(t, in.Snapshot.Version, older)
	forks, err := forkPoints(ctx, h.Store, in, gone)
	if err != nil {
		return nil, fmt.Errorf("retention: %w", err)
	}
	var out []store.Tombstone
	for _, s := range gone {
		if begins(s, older, forks) {
			continue
		}
		for _, name := range run.SortedKeys(s.Files) {
			ref := s.Files[name]
			out = append(out, store.Tombstone{Key: ref.Key, Digest: ref.Digest, Reason: fmt.Sprintf("snapshots: retain %d", t.Snapshot.Retain)})
		}
	}
	return out, nil
}

// forkPoints are the versions at which branches of the chain that a commit ends began, back to the oldest of the given
// snapshots.
func forkPoints(ctx context.Context, s store.Store, in activities.CommitInput, gone []*store.SnapshotRef) ([]int, error) {
	var out []int
	if len(gone) == 0 {
		return nil, nil
	}
	if in.Opened != nil {
		out = append(out, in.Iteration)
	}
	oldest := gone[len(gone)-1].Version
	for link, err := range store.Walk(ctx, s, *in.Parent) {
		if err != nil {
			return nil, err
		}
		m := link.Manifest
		if m.Iteration < oldest {
			break
		}
		if m.Opened != nil {
			out = append(out, m.Iteration) // the version before it
		}
	}
	return out, nil
}

// begins reports whether a snapshot is the newest one at or before a fork point. all are newest first.
func begins(s *store.SnapshotRef, all []*store.SnapshotRef, forks []int) bool {
	for _, version := range forks {
		for _, one := range all {
			if one.Version <= version {
				if one == s {
					return true
				}
				break
			}
		}
	}
	return false
}

// expired are the snapshots that are not kept, of those before the newest version,
// newest first.
func expired(t spec.Train, newest int, older []*store.SnapshotRef) []*store.SnapshotRef {
	earliest := newest - t.Collapse.Reach(t.Evaluation.Every)
	kept, covered := 1, newest <= earliest
	for i, s := range older {
		if kept >= t.Snapshot.Retain && covered {
			return older[i:]
		}
		kept, covered = kept+1, s.Version <= earliest
	}
	return nil
}

// bury removes what tombstones name, but for a snapshot that a fork begins with: whether there are forks is in no manifest.
// It comes after the commit that says so, and a retried commit does it again.
func (h *Host) bury(ctx context.Context, id string, tombstones []store.Tombstone) error {
	if len(tombstones) == 0 {
		return nil
	}
	kept, err := store.KeptForForks(ctx, h.Store, id)
	if err != nil {
		return fmt.Errorf("retention: %w", err)
	}
	for _, t := range tombstones {
		if kept[path.Dir(t.Key)] {
			continue
		}
		if err := h.Store.Delete(ctx, t.Key); err != nil {
			return fmt.Errorf("retention: remove %s: %w", h.Store.Location(t.Key), err)
		}
	}
	return nil
}
