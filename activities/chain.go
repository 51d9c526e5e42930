package activities

import (
	"context"

	"github.com/reprise-rl/reprise/infra/store"
)

// statesArtifact is the table of initial states' values among a manifest's further
// artifacts.
const statesArtifact = "states"

// StatesOf is the table of initial states' values that a manifest names, nil
// without one.
func StatesOf(m *store.Manifest) *store.Ref {
	if ref, ok := m.Artifacts[statesArtifact]; ok {
		return &ref
	}
	return nil
}

// RecentBatches are a run's newest batches at and before a manifest, newest first, at most
// so many. Iterations whose update was skipped have none and are passed over, as the
// workflow does; another run's have shapes of their own.
func RecentBatches(ctx context.Context, s store.Store, run string, head *store.Ref, most int) ([]store.Ref, error) {
	var out []store.Ref
	if head == nil || most == 0 {
		return nil, nil
	}
	for link, err := range store.Walk(ctx, s, *head) {
		if err != nil {
			return nil, err
		}
		m := link.Manifest
		if m.Run != run {
			break
		}
		if m.Batch != nil {
			out = append(out, *m.Batch)
		}
		if len(out) == most {
			break
		}
	}
	return out, nil
}
