// Package train runs Reprise without a workflow: the steps of an iteration, in the order
// of package workflows/iteration, called one after the other in this process. Replay, the
// bench and the studies are built on it. It computes the same as a Train workflow, bit
// for bit.
package train

import (
	"context"
	"fmt"
	"time"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/device"
	"github.com/reprise-rl/reprise/activities/host"
	"github.com/reprise-rl/reprise/activities/steps"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workers/toolservers"
	"github.com/reprise-rl/reprise/workflows/iteration"
)

// Runner calls the steps on one device and one store.
type Runner struct {
	Host   *host.Host
	Device *device.Device
	steps  map[string]steps.Binding
}

// New makes a runner on an engine and a store.
func New(engine *device.Engine, s store.Store) *Runner {
	answering, err := toolservers.Open(toolservers.Flags{})
	if err != nil {
		panic(fmt.Sprintf("train: servers of tools without flags: %v", err)) // only flags can be wrong
	}
	// Processes that run programs of the policy end with this one.
	r := &Runner{
		Host:   &host.Host{Store: s, Tools: answering.Askers()},
		Device: &device.Device{Store: s, Engine: engine},
		steps:  map[string]steps.Binding{},
	}
	for _, b := range append(r.Host.Steps(), r.Device.Steps()...) {
		r.steps[b.Name] = b
	}
	return r
}

// ToCommit runs an iteration up to its commit, whose input it gives. observe, where not
// nil, receives each step's name and the seconds of its own work.
func (r *Runner) ToCommit(ctx context.Context, it *iteration.Iteration,
	observe func(step string, seconds float64)) (activities.CommitInput, error) {
	info := r.Device.Engine.Info()
	it.Fingerprint, it.Device = info.Fingerprint, info.Fields
	var last iteration.Call
	before := 0.0
	report := func() {
		if observe != nil && last.Timing != "" {
			observe(last.Timing, it.Timings[last.Timing].Seconds-before)
		}
	}
	in, err := it.ToCommit(func(c iteration.Call) (any, error) {
		report()
		last, before = c, it.Timings[c.Timing].Seconds
		return r.steps[c.Name].Call(ctx, c.Input)
	})
	if err == nil {
		report()
	}
	return in, err
}

// Iteration is one iteration as it was measured.
type Iteration struct {
	// Seconds is from the commit before to its own.
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

// Train resolves a spec, warms a starter up, and trains to the end. text is the spec's
// JSON.
func (r *Runner) Train(ctx context.Context, runID string, text []byte) (Trained, error) {
	var out Trained
	t, err := r.Begin(ctx, runID, text)
	if err != nil {
		return out, err
	}
	for !t.Ended() {
		measured, err := t.Next(ctx)
		if err != nil {
			return out, err
		}
		out.Iterations = append(out.Iterations, measured)
	}
	out.State = t.State()
	return out, nil
}

// Training is a run between two iterations.
type Training struct {
	runner *Runner
	start  iteration.Start
	next   int // number of the next iteration
	newest int // version of the newest snapshot
	spent  bool
}

// Begin resolves a spec, warms a starter up and loads version 0. text is the spec's JSON.
func (r *Runner) Begin(ctx context.Context, runID string, text []byte) (*Training, error) {
	start, err := r.begin(ctx, runID, text)
	if err != nil {
		return nil, err
	}
	return &Training{runner: r, start: start}, nil
}

// Ended reports whether no iteration is left.
func (t *Training) Ended() bool { return t.spent || t.next >= t.start.Plan.Iterations }

// State is the state fingerprint of the newest version.
func (t *Training) State() string { return t.start.Policy }

// Next runs and commits the next iteration.
func (t *Training) Next(ctx context.Context) (Iteration, error) {
	began := time.Now()
	s, n := &t.start, t.next
	s.Number, s.Due = n, iteration.DueAt(s.Plan, 0, n, s.Plan.Iterations)
	s.NextSettings = s.Plan.NextSettings(s.Plan.Settings, n)
	it := iteration.New(*s, iteration.BeginAfter(s.Head, s.Plan.SettingsAt(s.Plan.Settings, n)))
	if err := t.runner.iterate(ctx, it); err != nil {
		return Iteration{}, fmt.Errorf("iteration %d: %w", n, err)
	}
	measured := Iteration{Seconds: time.Since(began).Seconds(), Steps: map[string]float64{}}
	for step, timing := range it.Timings {
		measured.Steps[step] = timing.Seconds
	}
	s.Head = it.Committed(t.newest)
	t.newest, s.Policy, s.Previous = s.Head.Snapshot, s.Head.State, it.Metrics
	if it.Detected != nil {
		s.Before = *it.Detected
	}
	t.spent = s.Plan.Reached(it.Metrics)
	t.next++
	return measured, nil
}

// begin resolves a spec, makes version 0 and loads it.
func (r *Runner) begin(ctx context.Context, runID string, text []byte) (iteration.Start, error) {
	resolved, err := r.Host.Resolve(ctx, activities.ResolveInput{Run: runID, Spec: text})
	if err != nil {
		return iteration.Start{}, err
	}
	start := iteration.Start{Run: activities.Run{ID: runID, Spec: resolved.Spec}, Plan: resolved.Plan}
	if resolved.Base != nil && !resolved.Plan.Prepare {
		start.Run.Base = *resolved.Base
	}
	in := activities.WarmStartInput{Run: runID, Spec: resolved.Spec, Base: resolved.Base, Steps: resolved.Plan.WarmStartSteps}
	for start.Run.Base.Digest == "" {
		w, err := r.Device.WarmStart(ctx, in)
		if err != nil {
			return start, err
		}
		if in.From = w.Snapshot; w.Base != nil {
			start.Run.Base = *w.Base
		}
	}
	restored, err := r.Device.Restore(ctx, activities.RestoreInput{Version: activities.Version{Run: start.Run}})
	start.Policy, start.Programs, start.Frozen = restored.State, restored.Programs, restored.Frozen
	return start, err
}

// iterate runs and commits an iteration.
func (r *Runner) iterate(ctx context.Context, it *iteration.Iteration) error {
	in, err := r.ToCommit(ctx, it, nil)
	if err != nil {
		return err
	}
	out, err := r.Host.Commit(ctx, in)
	if err != nil {
		return err
	}
	it.Record("commit", out.Telemetry)
	return it.Commit(out)
}
