package host

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/store"
)

// Commit makes an iteration count: one conditional PUT of its manifest. The
// same manifest again is fine; another one is a divergence, which nothing
// overwrites and no retry fixes.
func (h *Host) Commit(ctx context.Context, in activities.CommitInput) (_ activities.CommitResult, err error) {
	defer run.Edge(ctx, &err, "commit iteration %d of run %s", in.Iteration, in.Run.ID)
	defer run.Heartbeat(ctx)()
	start := time.Now()
	m, err := h.Manifest(ctx, in)
	if err != nil {
		return activities.CommitResult{}, err
	}
	ref, err := store.CommitManifest(ctx, h.Store, m)
	if err != nil {
		return activities.CommitResult{}, err
	}
	if err := h.bury(ctx, m.Run, m.Tombstones); err != nil {
		return activities.CommitResult{}, err
	}
	took := activities.Telemetry{Seconds: time.Since(start).Seconds()}
	if err := h.putTelemetry(ctx, in, took); err != nil {
		return activities.CommitResult{}, err
	}
	return activities.CommitResult{Manifest: ref, Telemetry: took}, nil
}

// Manifest puts an iteration's manifest together: nothing in it differs between
// attempts.
func (h *Host) Manifest(ctx context.Context, in activities.CommitInput) (*store.Manifest, error) {
	base, err := run.ReadIndex(ctx, h.Store, in.Run.Base)
	if err != nil {
		return nil, err
	}
	settings, digest, err := store.NewSettings(in.Settings)
	if err != nil {
		return nil, err
	}
	m := &store.Manifest{
		Run: in.Run.ID, Branch: in.Branch, Iteration: in.Iteration, Parent: in.Parent, Spec: in.Run.Spec, Base: base,
		Settings: settings, SettingsDigest: digest,
		Fingerprint: in.Fingerprint, Device: in.Device, Programs: in.Programs,
		StateBefore: in.StateBefore, StateAfter: in.StateAfter,
		Turns: in.Turns, Rollout: in.Rollout, Trajectories: &in.Trajectories, Scores: in.Scores, Batch: in.Batch, Passes: in.Passes,
		Artifacts: in.Tables, Snapshot: in.Snapshot, Evaluations: in.Evaluations, Metrics: in.Metrics,
	}
	m.RolledOutBy = in.RolledOutBy
	if next := in.NextRollout; next != nil {
		m.NextRollout = &store.NextRollout{Turns: next.Turns}
		if m.NextRollout.Settings, _, err = store.NewSettings(next.Settings); err != nil {
			return nil, err
		}
	}
	if in.Detected != nil {
		if m.Detected, err = run.Canonical(in.Detected); err != nil {
			return nil, err
		}
	}
	if in.Opened != nil {
		if m.Opened, err = run.Canonical(in.Opened); err != nil {
			return nil, err
		}
	}
	m.Base.State, m.Base.Frozen = in.StateBefore, in.Frozen
	var before store.UpdateCounts
	if in.Parent != nil {
		parent, err := store.ReadManifest(ctx, h.Store, *in.Parent)
		if err != nil {
			return nil, fmt.Errorf("manifest before: %w", err)
		}
		before, m.Base.State = parent.Update, parent.Base.State
		m.Base.Frozen = cmp.Or(parent.Base.Frozen, in.Frozen)
	}
	t, err := run.ReadSpec(ctx, h.Store, in.Run.Spec)
	if err != nil {
		return nil, err
	}
	m.Base.Name = t.Policy.From
	if m.Teacher, err = h.besidePolicy(ctx, t.Teacher.Apart()); err != nil {
		return nil, fmt.Errorf("teacher: %w", err)
	}
	if m.Judge, err = h.besidePolicy(ctx, t.JudgeModel()); err != nil {
		return nil, fmt.Errorf("judge: %w", err)
	}
	if m.Tombstones, err = h.tombstones(ctx, t, in); err != nil {
		return nil, err
	}
	m.Update = in.Update
	m.Update.Steps += before.Steps
	m.Update.SkippedTotal += before.SkippedTotal
	return m, nil
}

// putTelemetry writes the iteration's timings and costs beside the chain; a retried commit
// writes them again.
func (h *Host) putTelemetry(ctx context.Context, in activities.CommitInput, took activities.Telemetry) error {
	steps := map[string]activities.Telemetry{"commit": took}
	maps.Copy(steps, in.Timings)
	b, err := json.MarshalIndent(run.IterationTelemetry{
		Branch: in.Branch, Iteration: in.Iteration, Committed: time.Now().UTC(),
		Steps: steps, LostDevices: in.Lost, Costs: in.Costs, LostSessions: in.LostSessions,
	}, "", " ")
	if err != nil {
		return fmt.Errorf("encode telemetry: %w", err)
	}
	return h.Store.Put(ctx, run.TelemetryKey(in.Run.ID, in.Branch, in.Iteration), b, store.PutOptions{})
}
