package workers

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/device"
	"github.com/reprise-rl/reprise/activities/host"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// Replay is an iteration computed again from what it was computed from.
type Replay struct {
	Run       string `json:"run"`
	Branch    int    `json:"branch"`
	Iteration int    `json:"iteration"`
	// Recorded and Computed are the digests of the manifests.
	Recorded string `json:"recorded"`
	Computed string `json:"computed"`
	// Rebuilt counts the updates applied again to have the policy first.
	Rebuilt int `json:"rebuilt"`
	// Fingerprint is this device's, Wanted the one of the run.
	Fingerprint string `json:"fingerprint"`
	Wanted      string `json:"wanted"`
	// Differences are JSON paths of the manifests with both values.
	Differences []string `json:"differences,omitempty"`
}

// Same tells whether every bit agrees.
func (r Replay) Same() bool { return r.Recorded == r.Computed }

// ReplayIteration recomputes a committed iteration on this machine's device and
// compares it with what was recorded. Nothing is written to the store. say is
// told what goes on. An iteration that the run took over from another (`from`) is
// refused before anything is computed: it is the other's.
func ReplayIteration(ctx context.Context, s store.Store, opened *model.Device, runID string, iteration int, say func(string)) (Replay, error) {
	engine, err := device.NewEngine(opened)
	if err != nil {
		return Replay{}, err
	}
	over := store.NewOverlay(s)
	d := device.Direct{Host: &host.Host{Store: over}, Device: &device.Device{Store: over, Engine: engine}}
	version := iteration + 1
	loaded, err := d.Host.Find(ctx, activities.FindInput{Run: runID, Version: &version})
	if err != nil {
		return Replay{}, err
	}
	m, err := store.ReadManifest(ctx, s, loaded.Head.Manifest)
	if err != nil {
		return Replay{}, err
	}
	if m.Run != runID {
		// The chain goes on into the run that this one began behind: computed under
		// this one's id its manifest would be another.
		return Replay{}, fmt.Errorf("iteration %d is of run %s: reprise replay %[2]s --iteration %[1]d", iteration, m.Run)
	}
	out := Replay{
		Run: runID, Branch: m.Branch, Iteration: iteration, Recorded: loaded.Head.Manifest.Digest,
		Fingerprint: engine.Info().Fingerprint, Wanted: m.Fingerprint,
	}
	if out.Fingerprint != out.Wanted {
		say(fmt.Sprintf("this device has fingerprint %s, the run %s: other bits are to be expected", out.Fingerprint, out.Wanted))
	}
	say(fmt.Sprintf("rebuilding version %d", iteration))
	in := activities.RestoreInput{
		Version: activities.Version{Run: loaded.Run, Branch: m.Branch, Version: iteration, State: m.StateBefore}, Head: m.Parent,
	}
	restored, err := d.Device.Restore(ctx, in)
	if err != nil {
		return out, err
	}
	out.Rebuilt = restored.Telemetry.Recomputed
	say(fmt.Sprintf("rebuilt from version %d by %d recorded updates; computing iteration %d", restored.From, out.Rebuilt, iteration))
	var settings spec.Settings
	if err := json.Unmarshal(m.Settings, &settings); err != nil {
		return out, fmt.Errorf("settings of iteration %d: %w", iteration, err)
	}
	it := device.Iteration{
		Run: loaded.Run, Plan: loaded.Plan, Branch: m.Branch, Number: iteration, Parent: m.Parent, State: m.StateBefore,
		Settings: settings, Programs: restored.Programs, Snapshot: m.Snapshot != nil,
		Took: func(step string, t activities.Telemetry) { say(fmt.Sprintf("%s: %.2f s", step, t.Seconds)) },
	}
	if err := before(ctx, s, m, &it); err != nil {
		return out, err
	}
	if m.Rollout != nil && m.Rollout.Update > 0 {
		it.Rolled = &activities.Rolled{RolloutRef: *m.Rollout, Trajectories: *m.Trajectories, Scores: m.Scores}
	}
	if it.Replay, err = run.RecentBatches(ctx, s, m.Run, m.Parent, loaded.Plan.Freshness.ReplayIterations); err != nil {
		return out, err
	}
	for _, e := range m.Evaluations {
		it.Baseline = it.Baseline || e.Version == iteration
		it.Evaluate = it.Evaluate || e.Version == iteration+1
	}
	commit, err := d.Iterate(ctx, it)
	if err != nil {
		return out, err
	}
	computed, err := d.Host.Manifest(ctx, commit)
	if err != nil {
		return out, err
	}
	b, err := computed.Encode()
	if err != nil {
		return out, err
	}
	out.Computed = canon.Digest(b)
	if out.Same() {
		return out, nil
	}
	recorded, err := store.GetArtifact(ctx, s, loaded.Head.Manifest)
	if err != nil {
		return out, err
	}
	out.Differences = canon.Diff(recorded, b, 50)
	return out, nil
}

// before fills in what an iteration began with besides the policy: why its branch
// was opened, where it is the first of one, what the detectors knew, the values of
// states, and the metrics of the iteration before.
func before(ctx context.Context, s store.Store, m *store.Manifest, it *device.Iteration) error {
	if m.Parent != nil {
		parent, err := store.ReadManifest(ctx, s, *m.Parent)
		if err != nil {
			return err
		}
		own := parent.Run == m.Run // else it began behind another's iteration, with its policy alone
		if own {
			it.Previous, it.States = parent.Metrics, run.StatesOf(parent)
		}
		if own && parent.Detected != nil {
			if err := json.Unmarshal(parent.Detected, &it.Before); err != nil {
				return fmt.Errorf("what was detected in iteration %d: %w", parent.Iteration, err)
			}
		}
	}
	if m.Opened != nil {
		it.Opened = &activities.Opened{}
		if err := json.Unmarshal(m.Opened, it.Opened); err != nil {
			return fmt.Errorf("why branch %d was opened: %w", m.Branch, err)
		}
		it.Before = it.Opened.Detected
	}
	return nil
}
