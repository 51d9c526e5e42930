package workers

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/device"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/workers/train"
	"github.com/reprise-rl/reprise/workflows/iteration"
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

// Same reports whether every bit agrees.
func (r Replay) Same() bool { return r.Recorded == r.Computed }

// ReplayIteration recomputes a committed iteration on this machine's device and
// compares it with what was recorded. Nothing is written to the store. say receives
// progress. An iteration that the run took over from another (`from`) is
// refused before anything is computed: it is the other's.
func ReplayIteration(ctx context.Context, s store.Store, opened *model.Device, runID string, number int, say func(string)) (Replay, error) {
	engine, err := device.NewEngine(opened)
	if err != nil {
		return Replay{}, err
	}
	r := train.New(engine, store.NewOverlay(s))
	loaded, err := r.Host.Find(ctx, activities.FindInput{Run: runID, Version: new(number + 1)})
	if err != nil {
		return Replay{}, err
	}
	m, err := store.ReadManifest(ctx, s, loaded.Head.Manifest)
	if err != nil {
		return Replay{}, err
	}
	if m.Run != runID {
		// The chain continues into the run after which this one began: under this
		// run's id, its manifest would be another.
		return Replay{}, fmt.Errorf("iteration %d is of run %s: reprise replay %[2]s --iteration %[1]d", number, m.Run)
	}
	out := Replay{
		Run: runID, Branch: m.Branch, Iteration: number, Recorded: loaded.Head.Manifest.Digest,
		Fingerprint: engine.Info().Fingerprint, Wanted: m.Fingerprint,
	}
	if out.Fingerprint != out.Wanted {
		say(fmt.Sprintf("this device has fingerprint %s, the run %s: other bits are to be expected", out.Fingerprint, out.Wanted))
	}
	say(fmt.Sprintf("rebuilding version %d", number))
	var branch activities.Opened
	if m.Opened != nil {
		if err := json.Unmarshal(m.Opened, &branch); err != nil {
			return out, fmt.Errorf("why branch %d was opened: %w", m.Branch, err)
		}
	}
	in := activities.RestoreInput{
		Version: activities.Version{Run: loaded.Run, Branch: m.Branch, Version: number, State: m.StateBefore}, Head: m.Parent,
		Adopt: branch.Adopted != nil, // its parent was computed by other programs
		Whole: true,
	}
	restored, err := r.Device.Restore(ctx, in)
	if err != nil {
		return out, err
	}
	// Restore compares with the programs of the iteration before, if there is one of the run.
	if err := activities.SamePrograms(m.Programs, restored.Programs); err != nil {
		return out, err
	}
	out.Rebuilt = restored.Telemetry.Recomputed
	say(fmt.Sprintf("rebuilt from version %d by %d recorded updates; computing iteration %d", restored.From, out.Rebuilt, number))
	recorded, err := activities.Recorded(m, loaded.Run.Base)
	if err != nil {
		return out, err
	}
	start := iteration.Start{
		Run: loaded.Run, Plan: loaded.Plan, Branch: m.Branch, Number: number, Policy: m.StateBefore, Programs: restored.Programs,
		Frozen: restored.Frozen,
		Due:    iteration.Due{Snapshot: m.Snapshot != nil}, Recorded: iteration.Recorded{Turns: m.Turns, Evaluations: m.Evaluations},
	}
	for _, e := range m.Evaluations {
		start.Due.Baseline = start.Due.Baseline || e.Version == number
		start.Due.Evaluate = start.Due.Evaluate || e.Version == number+1
	}
	if err := before(ctx, s, m, &start); err != nil {
		return out, err
	}
	if next := recorded.NextRollout; next != nil {
		start.NextSettings = &next.Settings
	}
	state := iteration.Begin(recorded.Settings, nil)
	if m.Rollout != nil && m.Rollout.Update > 0 || m.RolledOutBy != nil {
		state = iteration.BeginAfter(start.Head, recorded.Settings)
	}
	if m.RolledOutBy != nil { // the iteration before has made the rollout, and replays it
		say(fmt.Sprintf("version %d has rolled out: iteration %[1]d computes that rollout again", m.RolledOutBy.Version))
	}
	it := iteration.New(start, state)
	commit, err := r.ToCommit(ctx, it, func(step string, seconds float64) { say(fmt.Sprintf("%s: %.2f s", step, seconds)) })
	if err != nil {
		return out, err
	}
	computed, err := r.Host.Manifest(ctx, commit)
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
	was, err := store.GetArtifact(ctx, s, loaded.Head.Manifest)
	if err != nil {
		return out, err
	}
	out.Differences = canon.Diff(was, b, 50)
	return out, nil
}

// before fills in what an iteration began with in addition to the policy: the iteration before it, its
// metrics, the batches of the replay buffer, the state of the detectors and, for the first iteration of a
// branch, why the branch was opened.
func before(ctx context.Context, s store.Store, m *store.Manifest, it *iteration.Start) error {
	if m.Parent != nil {
		head, err := run.FindHeadOf(ctx, s, m.Run, nil, m.Parent)
		if err != nil {
			return err
		}
		parent, err := store.ReadManifest(ctx, s, *m.Parent)
		if err != nil {
			return err
		}
		if parent.Run != m.Run { // this run began after another's iteration
			head = head.Forked(head.Settings)
		} else if parent.Spec != m.Spec { // its batches have other shapes
			head.Batches = nil
		} else if head.Batches, err = run.RecentBatches(ctx, s, m.Run, m.Parent, it.Plan.Freshness.ReplayIterations); err != nil {
			return err
		}
		if it.Head, it.Previous = head, head.Metrics; head.Detected != nil {
			it.Before = *head.Detected
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
