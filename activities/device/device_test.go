package device

import (
	"context"
	"fmt"
	"io"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/host"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/model/batch"
)

// Law 1: from nothing, twice, in stores that know nothing of each other, the
// same bytes.
func TestTwiceFromScratch(t *testing.T) {
	t.Parallel()
	first := begun(t, "twice", tinySpec(t))
	first.iterate(t)
	first.iterate(t)
	first.forget(t)
	again := begun(t, "twice", tinySpec(t))
	require.Equal(t, first.programs, again.programs)
	again.iterate(t)
	again.iterate(t)
	require.Equal(t, first.head, again.head)
	require.Equal(t, first.objects(t), again.objects(t))
	require.NotEqual(t, first.commits[0].StateBefore, first.commits[0].StateAfter)
	require.NotEqual(t, first.commits[0].StateAfter, first.commits[1].StateAfter)

	m, err := store.ReadManifest(t.Context(), first.store, *first.head)
	require.NoError(t, err)
	require.Equal(t, 2, m.Snapshot.Version)
	require.Equal(t, m.StateAfter, m.Snapshot.State)
	require.EqualValues(t, 2, m.Update.Steps)
	require.Len(t, m.Evaluations, 1)
	require.Equal(t, canon.Float(6), m.Metrics["rollout/trajectories"])
	report, err := store.Verify(t.Context(), first.store, "twice", nil)
	require.NoError(t, err)
	require.Empty(t, report.Problems)

	t.Run("a commit twice is one", func(t *testing.T) {
		got, err := first.Host.Commit(t.Context(), first.commits[1])
		require.NoError(t, err)
		require.Equal(t, *first.head, got.Manifest)
	})
	t.Run("another is a divergence", func(t *testing.T) {
		other := first.commits[1]
		other.Metrics = activities.Metrics{"reward/mean": 7}
		_, err := first.Host.Commit(t.Context(), other)
		require.ErrorIs(t, err, store.ErrDivergence)
		require.Equal(t, activities.KindDivergence, run.KindOf(err))
		require.Equal(t, again.objects(t), first.objects(t), "nothing stored has changed")
	})
	t.Run("another seed differs", func(t *testing.T) {
		other := begun(t, "twice", tinySpec(t, "seed=2"))
		other.iterate(t)
		require.NotEqual(t, first.commits[0].Trajectories.Content, other.commits[0].Trajectories.Content)
		require.Equal(t, first.commits[0].StateBefore, other.commits[0].StateBefore, "the starter has its own seed")
	})
}

func TestRestore(t *testing.T) {
	r := begun(t, "restore", tinySpec(t, "iterations=5", "snapshot.every=2", "evaluation.every=0"))
	for range 3 {
		r.iterate(t) // a snapshot of version 2
	}
	first, second := r.commits[0], r.commits[1]
	state := r.state

	t.Run("held", func(t *testing.T) {
		got := r.restore(t, activities.RestoreInput{})
		require.True(t, got.Resident)
		require.True(t, got.Done)
		require.Zero(t, got.Telemetry.Recomputed)
	})
	t.Run("from the snapshot", func(t *testing.T) {
		r.forget(t)
		got := r.restore(t, activities.RestoreInput{})
		require.Equal(t, state, got.State)
		require.Equal(t, state, got.Before)
		require.Equal(t, 2, got.From)
		require.Equal(t, 1, got.Telemetry.Recomputed)
		require.False(t, got.Resident)
		require.Equal(t, r.programs, got.Programs)
	})
	t.Run("from the base model", func(t *testing.T) {
		r.forget(t)
		one, err := store.ReadManifest(t.Context(), r.store, *second.Parent)
		require.NoError(t, err)
		got := r.restore(t, activities.RestoreInput{Version: activities.Version{Run: r.Run, Version: 1, State: one.StateAfter}, Head: second.Parent})
		require.Equal(t, first.StateAfter, got.State)
		require.Zero(t, got.From)
		require.Equal(t, 1, got.Telemetry.Recomputed)
	})
	t.Run("with an update that is not committed", func(t *testing.T) {
		r.forget(t)
		in := activities.RestoreInput{
			Version: activities.Version{Run: r.Run, Version: 1, State: second.StateBefore}, Head: second.Parent,
			Pending: &activities.PendingUpdate{Batch: *second.Batch, Settings: second.Settings, State: second.StateAfter},
		}
		got := r.restore(t, in)
		require.Equal(t, second.StateAfter, got.State)
		require.Equal(t, second.StateBefore, got.Before)
		require.Equal(t, 2, got.Telemetry.Recomputed)
		require.Zero(t, r.restore(t, in).Telemetry.Recomputed, "it is held now")
	})
	t.Run("another state than recorded", func(t *testing.T) {
		r.forget(t)
		_, err := r.Device.Restore(t.Context(), activities.RestoreInput{
			Version: activities.Version{Run: r.Run, Version: 1, State: second.StateBefore}, Head: second.Parent,
			Pending: &activities.PendingUpdate{Batch: *second.Batch, Settings: second.Settings, State: "0123"},
		})
		require.ErrorIs(t, err, activities.ErrStateDiffers)
		require.ErrorContains(t, err, "recorded is 0123")
		_, err = r.Device.Restore(t.Context(), activities.RestoreInput{Version: activities.Version{Run: r.Run, Version: 0, State: "0123"}})
		require.ErrorIs(t, err, activities.ErrStateDiffers)
	})
	t.Run("other programs than recorded", func(t *testing.T) {
		err := activities.SamePrograms(map[string]string{"a": "1", "b": "2", "c": "3"}, map[string]string{"a": "1", "b": "3"})
		require.ErrorIs(t, err, activities.ErrProgramsDiffer)
		require.ErrorContains(t, err, "programs b, c are not")
		require.NoError(t, activities.SamePrograms(nil, map[string]string{"a": "1"}))
		require.NoError(t, activities.SamePrograms(map[string]string{"a": "1"}, map[string]string{"a": "1", "more": "2"}))
	})
	t.Run("a batch was changed", func(t *testing.T) {
		key := r.commits[2].Batch.Key
		alter(t, r.store, key)
		defer alter(t, r.store, key)
		r.forget(t)
		_, err := r.Device.Restore(t.Context(), activities.RestoreInput{Version: r.version(), Head: r.head})
		require.ErrorIs(t, err, store.ErrAltered)
		require.ErrorContains(t, err, key)
	})
	t.Run("a snapshot's file is gone", func(t *testing.T) {
		require.NoError(t, r.store.Delete(t.Context(), second.Snapshot.Files["model.safetensors"].Key))
		r.forget(t)
		got := r.restore(t, activities.RestoreInput{})
		require.Equal(t, state, got.State, "the batches have it all")
		require.Zero(t, got.From)
		require.Equal(t, 3, got.Telemetry.Recomputed)
	})
}

func TestNotResident(t *testing.T) {
	r := begun(t, "absent", tinySpec(t))
	v := r.version()
	v.State = "feed"
	steps := map[string]func() error{
		"generate": func() error {
			_, err := r.Device.Generate(t.Context(), activities.GenerateInput{Policy: v, Settings: r.Settings, Turn: 1})
			return err
		},
		"score": func() error { _, err := r.Device.Score(t.Context(), activities.ScoreInput{Policy: v}); return err },
		"update": func() error {
			_, err := r.Device.Update(t.Context(), activities.UpdateInput{Policy: v, Settings: r.Settings})
			return err
		},
		"snapshot": func() error {
			_, err := r.Device.Snapshot(t.Context(), activities.SnapshotInput{Policy: v})
			return err
		},
	}
	for name, step := range steps {
		require.ErrorIs(t, step(), activities.ErrNotResident, name)
	}
	r.forget(t)
	for name, step := range steps {
		require.ErrorContains(t, step(), "in memory is nothing", name)
	}
}

// A retried Update is answered from memory: it computes nothing.
func TestUpdateTwice(t *testing.T) {
	r := begun(t, "retry", tinySpec(t, "evaluation.every=0"))
	before := r.version()
	in := r.iterate(t)
	update := activities.UpdateInput{Policy: before, Batch: *in.Batch, Settings: in.Settings}
	got, err := r.Device.Update(t.Context(), update)
	require.NoError(t, err)
	require.Equal(t, in.StateAfter, got.State)
	require.Equal(t, in.Update.Rows, got.Counts.Rows)
	require.Zero(t, got.Telemetry.Tokens)
	require.NotEmpty(t, got.Metrics)

	update.Settings.Update.LearningRate *= 2 // another update: it needs its parent
	_, err = r.Device.Update(t.Context(), update)
	require.ErrorIs(t, err, activities.ErrNotResident)
}

// An update that is not finite changes nothing, and is counted and recorded.
func TestNonFiniteUpdate(t *testing.T) {
	r := begun(t, "infinite", tinySpec(t, "evaluation.every=0"))
	good, err := r.Iterate(t.Context(), r.iteration())
	require.NoError(t, err)
	r.restore(t, activities.RestoreInput{Version: r.version(), Head: r.head}) // back to version 0
	raw, err := store.GetArtifact(t.Context(), r.store, *good.Batch)
	require.NoError(t, err)
	rc, err := r.Device.contexts.Read(t.Context(), r.store, r.Run)
	require.NoError(t, err)
	rows, err := batch.Decode(raw, r.Settings.Update.MicroBatch, rc.Shapes(rc.Training, 1).Sequence, 0, batch.Advantages)
	require.NoError(t, err)
	for _, row := range rows {
		for at := range row.Columns[batch.Advantages] {
			if row.Mask[at] {
				row.Columns[batch.Advantages][at] = float32(math.Inf(1))
			}
		}
	}
	body, err := batch.Encode(rows, r.Settings.Update.MicroBatch)
	require.NoError(t, err)
	bad, err := store.PutArtifact(t.Context(), r.store, "runs/infinite", "batch", "safetensors", body)
	require.NoError(t, err)
	got, err := r.Device.Update(t.Context(), activities.UpdateInput{Policy: r.version(), Batch: bad, Settings: r.Settings})
	require.NoError(t, err, "it is skipped, and no error")
	require.True(t, got.Counts.Skipped)
	require.Equal(t, r.state, got.State)
	require.Equal(t, canon.Float(1), got.Metrics["actor/skipped"])

	in := good
	in.Batch, in.Update, in.StateAfter, in.Metrics = &bad, got.Counts, got.State, got.Metrics
	r.commit(t, in)
	m, err := store.ReadManifest(t.Context(), r.store, *r.head)
	require.NoError(t, err)
	require.True(t, m.Update.Skipped)
	require.EqualValues(t, 1, m.Update.SkippedTotal)
	require.Zero(t, m.Update.Steps)
	require.Equal(t, m.StateBefore, m.StateAfter)

	// The chain continues after it, and can be rebuilt through it.
	r.iterate(t)
	m, err = store.ReadManifest(t.Context(), r.store, *r.head)
	require.NoError(t, err)
	require.EqualValues(t, 1, m.Update.SkippedTotal)
	require.EqualValues(t, 1, m.Update.Steps)
	r.forget(t)
	require.NoError(t, r.store.Delete(t.Context(), m.Snapshot.Files["model.safetensors"].Key))
	chain, err := store.LoadChain(t.Context(), r.store, *r.head)
	require.NoError(t, err)
	restored := r.restore(t, activities.RestoreInput{
		Version: activities.Version{Run: r.Run, Version: 1, State: chain[0].Manifest.StateAfter}, Head: &chain[0].Ref,
		Pending: &activities.PendingUpdate{Batch: *m.Batch, Settings: r.Settings, State: m.StateAfter},
	})
	require.Equal(t, m.StateAfter, restored.State)
}

// Warm starts are shared: another run that asks for the same starter finds it.
func TestStarterIsShared(t *testing.T) {
	r := begun(t, "one", tinySpec(t))
	other, err := r.Host.Resolve(t.Context(), activities.ResolveInput{Run: "two", Spec: tinySpec(t, "seed=9")})
	require.NoError(t, err)
	w, err := r.Device.WarmStart(t.Context(), activities.WarmStartInput{Run: "two", Spec: other.Spec, Steps: 2})
	require.NoError(t, err)
	require.True(t, w.Shared)
	require.Equal(t, r.Run.Base, *w.Base)
	require.Equal(t, 2, w.Steps)

	third, err := r.Host.Resolve(t.Context(), activities.ResolveInput{Run: "three", Spec: tinySpec(t, "policy.starter.seed=9")})
	require.NoError(t, err)
	// In chunks of a step each, with the device lost between them.
	in := activities.WarmStartInput{Run: "three", Spec: third.Spec, Steps: 1}
	first, err := r.Device.WarmStart(t.Context(), in)
	require.NoError(t, err)
	require.Nil(t, first.Base)
	require.Equal(t, 1, first.Steps)
	r.forget(t)
	in.From = first.Snapshot
	second, err := r.Device.WarmStart(t.Context(), in)
	require.NoError(t, err)
	require.NotEqual(t, r.Run.Base, *second.Base)
	// At once it is the same.
	alone := &testRun{store: store.NewMemory()}
	alone.Host, alone.Device = &host.Host{Store: alone.store}, &Device{Store: alone.store, Engine: engine(t)}
	again, err := alone.Host.Resolve(t.Context(), activities.ResolveInput{Run: "three", Spec: tinySpec(t, "policy.starter.seed=9")})
	require.NoError(t, err)
	whole, err := alone.Device.WarmStart(t.Context(), activities.WarmStartInput{Run: "three", Spec: again.Spec, Steps: 60})
	require.NoError(t, err)
	require.Equal(t, *second.Base, *whole.Base)
}

func TestDraining(t *testing.T) {
	e, err := NewEngine(engine(t).device)
	require.NoError(t, err)
	release, _, err := e.acquire(t.Context(), activities.Run{ID: "a"})
	require.NoError(t, err)
	waiting := make(chan error, 1)
	go func() {
		_, _, err := e.acquire(context.Background(), activities.Run{ID: "a"})
		waiting <- err
	}()
	soon, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, e.Drain(soon), context.DeadlineExceeded, "a step is running")
	release()
	require.ErrorIs(t, <-waiting, activities.ErrDraining, "what waited for the device is refused")
	require.NoError(t, e.Drain(t.Context()))
	_, _, err = e.acquire(t.Context(), activities.Run{ID: "a"})
	require.ErrorIs(t, err, activities.ErrDraining)
	d := &Device{Store: store.NewMemory(), Engine: e}
	_, err = d.Generate(t.Context(), activities.GenerateInput{})
	require.ErrorIs(t, err, activities.ErrDraining)
	require.Equal(t, activities.KindDraining, run.KindOf(err))
}

// One lease a process: a second run waits, and finds the first one's policy gone.
func TestLease(t *testing.T) {
	r := begun(t, "holder", tinySpec(t))
	e := r.Device.Engine
	state := e.state
	require.NotNil(t, state)
	release, _, err := e.acquire(t.Context(), r.Run)
	require.NoError(t, err)
	soon, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, waited, err := e.acquire(soon, activities.Run{ID: "next"})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.GreaterOrEqual(t, waited, 20*time.Millisecond)
	require.Same(t, state, e.state, "nobody took it away meanwhile")

	got := make(chan func())
	go func() {
		release, _, _ := e.acquire(context.Background(), activities.Run{ID: "next"})
		got <- release
	}()
	select {
	case <-got:
		t.Fatal("two hold the device")
	case <-time.After(20 * time.Millisecond):
	}
	release()
	again := <-got
	require.Equal(t, "next", e.owner.ID)
	require.Nil(t, e.state, "the earlier policy is freed")
	again()
	_, err = r.Device.Snapshot(t.Context(), activities.SnapshotInput{Policy: r.version()})
	require.ErrorIs(t, err, activities.ErrNotResident)
	require.True(t, r.restore(t, activities.RestoreInput{}).Done)
}

// late hides a key from its first readers.
type late struct {
	store.Store
	key  string
	left int
}

func (l *late) Open(ctx context.Context, key string, offset int64) (io.ReadCloser, store.Object, error) {
	if key == l.key && l.left > 0 {
		l.left--
		return nil, store.Object{}, fmt.Errorf("not yet: %w", store.ErrNotFound)
	}
	return l.Store.Open(ctx, key, offset)
}

// A worker that was taken for dead finishes a starter while another does its last
// chunks again: that one takes what is there, and leaves nothing beside it.
func TestStarterIsFinishedMeanwhile(t *testing.T) {
	s := store.NewMemory()
	h := &host.Host{Store: s}
	got, err := h.Resolve(t.Context(), activities.ResolveInput{Run: "a", Spec: tinySpec(t, "policy.warm_start.steps=3")})
	require.NoError(t, err)
	chunk := func(s store.Store, from *store.SnapshotRef, steps int) activities.WarmStartResult {
		t.Helper()
		d := &Device{Store: s, Engine: engine(t)}
		(&testRun{Device: d}).forget(t)
		w, err := d.WarmStart(t.Context(), activities.WarmStartInput{Run: "a", Spec: got.Spec, From: from, Steps: steps})
		require.NoError(t, err)
		return w
	}
	first := chunk(s, nil, 1)
	done := chunk(s, first.Snapshot, 2)
	require.NotNil(t, done.Base)
	var place string
	for o, err := range s.List(t.Context(), store.ModelPrefix+"starter-") {
		require.NoError(t, err)
		require.NotContains(t, o.Key, "/steps/")
		place = o.Key
	}
	for name, w := range map[string]activities.WarmStartResult{
		"its state is gone":        chunk(&late{s, place, 1}, first.Snapshot, 2),
		"it stores a state behind": chunk(&late{s, place, 1}, nil, 1),
	} {
		require.True(t, w.Shared, name)
		require.Equal(t, done.Base, w.Base, name)
		require.Equal(t, 3, w.Steps, name)
	}
	for o, err := range s.List(t.Context(), store.ModelPrefix+"starter-") {
		require.NoError(t, err)
		require.Equal(t, place, o.Key)
	}
}
