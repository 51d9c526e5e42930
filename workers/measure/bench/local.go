package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/device"
	"github.com/reprise-rl/reprise/activities/host"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/store"
)

// Local trains by calling the activities in this process, one after the other:
// no server, no queue. What it computes is what a Train workflow computes, bit
// for bit.
type Local struct {
	Engine *device.Engine
	Store  store.Store
}

// Iteration is one iteration as it was measured.
type Iteration struct {
	// Seconds is from the commit before to its own, or from the loaded policy on.
	Seconds float64
	// Steps are the seconds of its steps' own work, by name.
	Steps map[string]float64
}

// Trained is a run that has ended.
type Trained struct {
	Iterations []Iteration
	// State is the state fingerprint of the last version.
	State string
}

// Train resolves a spec, warms a starter up, and trains to the end.
func (l Local) Train(ctx context.Context, runID string, text []byte) (Trained, error) {
	var out Trained
	d := device.Direct{Host: &host.Host{Store: l.Store}, Device: &device.Device{Store: l.Store, Engine: l.Engine}}
	resolved, err := d.Host.Resolve(ctx, activities.ResolveInput{Run: runID, Spec: text})
	if err != nil {
		return out, err
	}
	r := activities.Run{ID: runID, Spec: resolved.Spec}
	plan := resolved.Plan
	base := resolved.Base
	if base != nil && !plan.Prepare {
		r.Base = *base
	}
	for from := (*store.SnapshotRef)(nil); r.Base.Digest == ""; {
		w, err := d.Device.WarmStart(ctx, activities.WarmStartInput{Run: runID, Spec: r.Spec, Base: base, From: from, Steps: plan.WarmStartSteps})
		if err != nil {
			return out, err
		}
		if from = w.Snapshot; w.Base != nil {
			r.Base = *w.Base
		}
	}
	restored, err := d.Device.Restore(ctx, activities.RestoreInput{Version: activities.Version{Run: r}})
	if err != nil {
		return out, err
	}
	var parent *store.Ref
	out.State = restored.State
	last := time.Now()
	var known activities.Detected
	var metrics activities.Metrics
	var before activities.CommitInput
	for n := range plan.Iterations {
		i := Iteration{Steps: map[string]float64{}}
		replay, err := run.RecentBatches(ctx, l.Store, r.ID, parent, plan.Freshness.ReplayIterations)
		if err != nil {
			return out, err
		}
		in, err := d.Iterate(ctx, device.Iteration{
			Run: r, Plan: plan, Number: n, Parent: parent, State: out.State, Settings: plan.Settings, Programs: restored.Programs,
			Baseline: n == 0 && plan.EvaluationDue(0, plan.Iterations), Evaluate: plan.EvaluationDue(n+1, plan.Iterations),
			Snapshot: plan.Snapshot.Due(n+1, plan.Iterations),
			Before:   known,
			Previous: metrics, States: before.States, Rolled: before.Next(), Replay: replay,
			Took: func(step string, t activities.Telemetry) { i.Steps[step] += t.Seconds },
		})
		if err != nil {
			return out, fmt.Errorf("iteration %d: %w", n, err)
		}
		c, err := d.Host.Commit(ctx, in)
		if err != nil {
			return out, err
		}
		i.Steps["commit"] = c.Telemetry.Seconds
		i.Seconds = time.Since(last).Seconds()
		last = time.Now()
		if in.Detected != nil {
			known = *in.Detected
		}
		metrics, before = in.Metrics, in
		parent, out.State = &c.Manifest, in.StateAfter
		out.Iterations = append(out.Iterations, i)
	}
	return out, nil
}
