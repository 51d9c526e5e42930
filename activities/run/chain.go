package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// StatesArtifact is the table of initial states' values among a manifest's further
// artifacts.
const StatesArtifact = "states"

// ArtifactOf is one of a manifest's further artifacts, nil without it.
func ArtifactOf(m *store.Manifest, name string) *store.Ref {
	if ref, ok := m.Artifacts[name]; ok {
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
		if m.Batch != nil { // a run with passes draws from none
			out = append(out, *m.Batch)
		}
		if len(out) == most {
			break
		}
	}
	return out, nil
}

// ReferenceArtifact is the manifest whose snapshot is the reference, among a manifest's further
// artifacts; version 0 is the reference without it.
const ReferenceArtifact = "reference"

// FindHead finds a committed policy version of a run: the newest, or the given one
// on the newest branch's chain. It returns nil if nothing is committed.
func FindHead(ctx context.Context, s store.Store, run string, version *int) (*activities.Head, error) {
	return FindHeadOf(ctx, s, run, version, nil)
}

// FindHeadOf is findHead on the chain that ends with a given manifest; nil is the newest
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
	out := &activities.Head{}
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
		if out.Snapshot == 0 && m.Snapshot != nil {
			out.Snapshot = m.Snapshot.Version
		}
		if out.Snapshot == 0 {
			out.Passes += max(len(m.Passes)-1, 0)
		}
		for i := range m.Evaluations {
			// Backwards; a version's first suite represents all its suites.
			e := &m.Evaluations[len(m.Evaluations)-1-i]
			e.Turns = nil // the manifest keeps them; what a workflow carries stays small
			if out.Last == nil || out.Last.Version == e.Version {
				out.Last = e
			}
			out.First = e
		}
	}
	if found == nil {
		return nil, fmt.Errorf("version %d of run %s is not committed; the newest is %d: %w", *version, run, newest, activities.ErrNotFound)
	}
	m := found.Manifest
	base, err := PutIndex(ctx, s, m.Base)
	if err != nil {
		return nil, err
	}
	var settings spec.Settings
	if err := json.Unmarshal(m.Settings, &settings); err != nil {
		return nil, fmt.Errorf("settings of iteration %d: %w", m.Iteration, err)
	}
	out.States, out.Texts, out.Rolled = ArtifactOf(m, StatesArtifact), ArtifactOf(m, TextsArtifact), activities.RolledOf(m)
	if out.NextRollout, err = activities.NextRolloutOf(m); err != nil {
		return nil, err
	}
	out.Pivots = ArtifactOf(m, PivotsArtifact)
	out.Reference = activities.ReferenceAfter(settings, m.Snapshot, found.Ref, ArtifactOf(m, ReferenceArtifact))
	out.Manifest, out.Branch, out.Iteration, out.State = found.Ref, m.Branch, m.Iteration, m.StateAfter
	if m.Detected != nil {
		out.Detected = &activities.Detected{}
		if err := json.Unmarshal(m.Detected, out.Detected); err != nil {
			return nil, fmt.Errorf("what was detected in iteration %d: %w", m.Iteration, err)
		}
	}
	out.Fingerprint, out.Device, out.Base, out.Settings, out.Metrics = m.Fingerprint, m.Device, base, settings, m.Metrics
	out.Programs = m.Programs
	return out, nil
}
