package device

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/host"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/envs/starter"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/draw"
	"github.com/reprise-rl/reprise/model/methods/methodstest"
	"github.com/reprise-rl/reprise/workflows/iteration"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// tinySpec is a run of seconds: one layer of width 32 and a warm start that
// teaches nothing. The edits are dotted paths with JSON values.
func tinySpec(t *testing.T, edits ...string) json.RawMessage {
	t.Helper()
	methodstest.NeedsOf(t, edits...)
	doc := map[string]any{}
	require.NoError(t, json.Unmarshal([]byte(`{
		"seed": 1, "iterations": 3,
		"policy": {"from": "starter", "starter": {"layers": 1, "hidden_size": 32, "intermediate_size": 64, "heads": 2, "kv_heads": 1},
			"warm_start": {"steps": 2, "rows": 4}},
		"environment": {"name": "bandit"},
		"rollout": {"groups": 2, "group_size": 3, "turns": 1, "max_new_tokens": 8, "think": false},
		"selection": {"method": "all"}, "update": {"micro_batch": 4}, "snapshot": {"every": 2}, "evaluation": {"every": 2, "instances": 3}
	}`), &doc))
	for _, edit := range edits {
		path, value, _ := strings.Cut(edit, "=")
		at := doc
		keys := strings.Split(path, ".")
		for _, k := range keys[:len(keys)-1] {
			if at[k] == nil {
				at[k] = map[string]any{}
			}
			at = at[k].(map[string]any)
		}
		var v any
		require.NoError(t, json.Unmarshal([]byte(value), &v), edit)
		at[keys[len(keys)-1]] = v
	}
	b, err := json.Marshal(doc)
	require.NoError(t, err)
	return b
}

// testRun is a resolved run in a store, ready for its steps.
type testRun struct {
	Host   *host.Host
	Device *Device
	store  *store.Memory
	activities.Run
	activities.Plan
	state    string
	programs map[string]string
	frozen   string
	head     *store.Ref
	commits  []activities.CommitInput
}

// resolved is a run that needs no device: its base model is drawn.
func resolved(t *testing.T, id string, document json.RawMessage) *testRun {
	t.Helper()
	s := store.NewMemory()
	h := &host.Host{Store: s, Environments: served, Judges: judged}
	r, err := h.Resolve(t.Context(), activities.ResolveInput{Run: id, Spec: document})
	require.NoError(t, err)
	written, err := run.ReadSpec(t.Context(), s, r.Spec)
	require.NoError(t, err)
	files, err := model.DrawnFiles(StarterConfig(*written.Policy.Starter), draw.Address{Seed: 1, Purpose: draw.Weights})
	require.NoError(t, err)
	base, err := run.PutModel(t.Context(), s, append(run.Streamed(files), run.FolderFiles(starter.Files())...))
	require.NoError(t, err)
	return &testRun{Host: h, store: s, Run: activities.Run{ID: id, Spec: r.Spec, Base: base}, Plan: r.Plan}
}

// begun is a run whose first version is on the device.
func begun(t *testing.T, id string, document json.RawMessage) *testRun {
	t.Helper()
	return begunIn(t, store.NewMemory(), id, document)
}

// modelsOf makes a store with the models of another one, so that a run in it needs no warm start.
func modelsOf(t *testing.T, from *store.Memory) *store.Memory {
	t.Helper()
	s := store.NewMemory()
	for o, err := range from.List(t.Context(), store.ModelPrefix) {
		require.NoError(t, err)
		b, _, err := store.ReadFixed(t.Context(), from, o.Key, store.MaxBody)
		require.NoError(t, err)
		require.NoError(t, s.Put(t.Context(), o.Key, b, store.PutOptions{}))
	}
	return s
}

// begunIn is begun for a run whose store may have its models already.
func begunIn(t *testing.T, s *store.Memory, id string, document json.RawMessage) *testRun {
	t.Helper()
	r := &testRun{store: s, Host: &host.Host{Store: s}, Device: &Device{Store: s, Engine: engine(t)}}
	got, err := r.Host.Resolve(t.Context(), activities.ResolveInput{Run: id, Spec: document})
	require.NoError(t, err)
	r.Run, r.Plan = activities.Run{ID: id, Spec: got.Spec}, got.Plan
	if got.Base != nil && !got.Plan.Prepare {
		r.Run.Base = *got.Base
	}
	for in := (activities.WarmStartInput{Run: id, Spec: got.Spec, Base: got.Base, Steps: 100}); r.Run.Base.Digest == ""; {
		w, err := r.Device.WarmStart(t.Context(), in)
		require.NoError(t, err)
		if in.From = w.Snapshot; w.Base != nil {
			r.Run.Base = *w.Base
		}
	}
	restored := r.restore(t, activities.RestoreInput{})
	r.state, r.programs, r.frozen = restored.State, restored.Programs, restored.Frozen
	return r
}

func (r *testRun) version() activities.Version {
	return activities.Version{Run: r.Run, Version: len(r.commits), State: r.state}
}

// restore requests the version reached, or the one named by in.
func (r *testRun) restore(t *testing.T, in activities.RestoreInput) activities.RestoreResult {
	t.Helper()
	if in.Version.Run.ID == "" {
		in.Version = r.version()
		in.Head = r.head
	}
	got, err := r.Device.Restore(t.Context(), in)
	require.NoError(t, err)
	return got
}

// Iteration says what an iteration of a test begins with and does besides training.
type Iteration struct {
	Run                          activities.Run
	Plan                         activities.Plan
	Branch, Number               int
	Parent                       *store.Ref // manifest of the iteration before
	State                        string     // state fingerprint of version Number
	Settings                     spec.Settings
	Programs                     map[string]string
	Frozen                       string
	Baseline, Evaluate, Snapshot bool
	Tables                       activities.Tables
	Rolled                       *activities.Rolled
	NextRollout                  *activities.NextRollout
	Replay                       []store.Ref
	Previous                     activities.Metrics
	Before                       activities.Detected
}

// start is the iteration as the order of an iteration takes it.
func (it Iteration) start(info activities.DeviceInfo) iteration.Start {
	out := iteration.Start{
		Run: it.Run, Plan: it.Plan, Branch: it.Branch, Number: it.Number, Policy: it.State, Programs: it.Programs, Frozen: it.Frozen,
		Due:      iteration.Due{Baseline: it.Baseline, Evaluate: it.Evaluate, Snapshot: it.Snapshot},
		Previous: it.Previous, Before: it.Before, Fingerprint: info.Fingerprint, Device: info.Fields,
	}
	if it.Parent != nil {
		out.Head = &activities.Head{
			Manifest: *it.Parent, Tables: it.Tables, Batches: it.Replay, NextRollout: it.NextRollout,
		}
	}
	out.NextSettings = it.Plan.NextSettings(it.Settings, it.Number)
	return out
}

// state is the iteration's before its first step.
func (it Iteration) state(head *activities.Head) *iteration.State {
	if it.NextRollout != nil {
		return iteration.BeginAfter(head, it.Settings)
	}
	return iteration.Begin(it.Settings, it.Rolled)
}

// Iterate does an iteration up to its commit, whose input it gives.
func (r *testRun) Iterate(ctx context.Context, it Iteration) (activities.CommitInput, error) {
	start := it.start(r.Device.Engine.Info())
	return r.run(ctx, iteration.New(start, it.state(start.Head)))
}

// run calls an iteration's steps directly.
func (r *testRun) run(ctx context.Context, it *iteration.Iteration) (activities.CommitInput, error) {
	bound := append(r.Host.Steps(), r.Device.Steps()...)
	return it.ToCommit(func(c iteration.Call) (any, error) {
		for _, b := range bound {
			if b.Name == c.Name {
				return b.Call(ctx, c.Input)
			}
		}
		return nil, fmt.Errorf("nothing does %s", c.Name)
	})
}

// iteration describes the next iteration.
func (r *testRun) iteration() Iteration {
	n := len(r.commits)
	replay, err := run.RecentBatches(context.Background(), r.store, r.Run.ID, r.head, r.Plan.Freshness.ReplayIterations)
	if err != nil {
		panic(err) // the store is memory
	}
	return Iteration{
		Run: r.Run, Plan: r.Plan, Number: n, Parent: r.head, State: r.state, Settings: r.Plan.SettingsAt(r.Plan.Settings, n), Programs: r.programs, Frozen: r.frozen,
		Before: r.known(), Previous: r.metrics(), Tables: r.tables(), Rolled: r.rolled(), NextRollout: r.nextRollout(), Replay: replay, Baseline: n == 0, Snapshot: r.Plan.Snapshot.Due(n+1, r.Iterations), Evaluate: r.Plan.EvaluationDue(n+1, r.Iterations),
	}
}

// known is what the detectors know.
func (r *testRun) known() activities.Detected {
	if n := len(r.commits); n > 0 && r.commits[n-1].Detected != nil {
		return *r.commits[n-1].Detected
	}
	return activities.Detected{}
}

// tables are those that the next iteration begins with.
func (r *testRun) tables() activities.Tables {
	if n := len(r.commits); n > 0 {
		return activities.HeadOf(r.commits[n-1], *r.head).Tables
	}
	return nil
}

func (r *testRun) nextRollout() *activities.NextRollout {
	if len(r.commits) == 0 {
		return nil
	}
	return r.commits[len(r.commits)-1].NextRollout
}

func (r *testRun) rolled() *activities.Rolled {
	if n := len(r.commits); n > 0 {
		return r.commits[n-1].Next()
	}
	return nil
}

func (r *testRun) metrics() activities.Metrics {
	if n := len(r.commits); n > 0 {
		return r.commits[n-1].Metrics
	}
	return nil
}

// iterate does and commits an iteration.
func (r *testRun) iterate(t *testing.T) activities.CommitInput {
	t.Helper()
	in, err := r.Iterate(t.Context(), r.iteration())
	require.NoError(t, err)
	r.commit(t, in)
	return in
}

func (r *testRun) commit(t *testing.T, in activities.CommitInput) {
	t.Helper()
	documented(t, in.Metrics)
	got, err := r.Host.Commit(t.Context(), in)
	require.NoError(t, err)
	r.head, r.state = &got.Manifest, in.StateAfter
	r.commits = append(r.commits, in)
	// A run that is started again finds what one that never ended carries.
	found, err := run.FindHead(t.Context(), r.store, in.Run.ID, nil)
	require.NoError(t, err)
	carried := activities.HeadOf(in, got.Manifest)
	carried.Snapshot, carried.Passes, carried.First, carried.Last = found.Snapshot, found.Passes, found.First, found.Last
	want, err := run.Canonical(carried)
	require.NoError(t, err)
	have, err := run.Canonical(found)
	require.NoError(t, err)
	require.JSONEq(t, string(want), string(have))
}

// forget makes the device lose what it holds, as a new worker's.
func (r *testRun) forget(t *testing.T) {
	t.Helper()
	release, _, err := r.Device.Engine.acquire(t.Context(), activities.Run{ID: "somebody else"})
	require.NoError(t, err)
	release()
}

// objects are the store's objects and their digests, without telemetry.
func (r *testRun) objects(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for o, err := range r.store.List(t.Context(), "") {
		require.NoError(t, err)
		if strings.Contains(o.Key, "/telemetry/") {
			continue
		}
		b, ref, err := store.ReadFixed(t.Context(), r.store, o.Key, store.MaxBody)
		require.NoError(t, err)
		require.Len(t, b, int(o.Size))
		out[o.Key] = ref.Digest
	}
	return out
}

// alter flips a byte of a stored object.
func alter(t *testing.T, s store.Store, key string) {
	t.Helper()
	b, _, err := store.ReadFixed(context.Background(), s, key, store.MaxBody)
	require.NoError(t, err)
	b[len(b)/2] ^= 1
	require.NoError(t, s.Put(context.Background(), key, b, store.PutOptions{}))
}
