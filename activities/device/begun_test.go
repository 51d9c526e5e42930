package device

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gomlx/go-xla/pjrt"
	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/store"
)

// piecewise is a run with a critic whose updates have two epochs of two minibatches: of two
// micro-batches and of one, which has a row of padding. That makes 12 for an update.
func piecewise(t *testing.T, e *Engine, id string, edits ...string) *testRun {
	t.Helper()
	r := resolved(t, id, tinySpec(t, append([]string{
		`credit.algorithm="gae"`, `update.kl_in="loss"`, "update.epochs=2", "update.micro_batch=2", "update.minibatch=4",
		"rollout.groups=1", "rollout.group_size=5", "evaluation.every=0",
	}, edits...)...))
	r.Device = &Device{Store: r.store, Engine: e}
	r.forget(t)
	restored := r.restore(t, activities.RestoreInput{})
	r.state, r.programs = restored.State, restored.Programs
	return r
}

const piecewiseOf = 12

// updateOf is the update of an iteration that was made.
func (r *testRun) updateOf(c activities.CommitInput) activities.UpdateInput {
	return activities.UpdateInput{Policy: activities.Version{Run: r.Run, Version: c.Iteration, State: c.StateBefore}, Batch: *c.Batch, Settings: c.Settings}
}

// piece makes a piece of an update up to a bound.
func (r *testRun) piece(t *testing.T, in activities.UpdateInput, end bound) activities.UpdateResult {
	t.Helper()
	w, done, err := r.Device.begin(t.Context(), r.Run)
	require.NoError(t, err)
	defer done(&err)
	out, err := w.apply(t.Context(), r.store, in, end)
	require.NoError(t, err)
	return out
}

// What an update makes does not depend on where it was cut: not a bit of the policy and the
// critic, and no figure. A piece has at least one micro-batch, whatever the time.
func TestUpdateCutEverywhere(t *testing.T) {
	t.Parallel()
	r := piecewise(t, engine(t), "cut")
	in := r.updateOf(r.iterate(t))
	begin := func() {
		r.forget(t)
		require.True(t, r.restore(t, activities.RestoreInput{Version: in.Policy}).Done)
	}
	begin()
	want := r.piece(t, in, bound{})
	require.Equal(t, r.state, want.State)
	require.EqualValues(t, 4, want.Counts.Steps)
	require.EqualValues(t, piecewiseOf/2, want.Counts.MicroBatches)
	const rows = 2
	for at := 1; at < piecewiseOf; at++ {
		begin()
		got := r.piece(t, in, bound{rows: at * rows})
		require.Equal(t, activities.UpdateResult{Begun: &activities.BegunUpdate{Done: at, Of: piecewiseOf}}, got)
		require.Equal(t, want, r.piece(t, in, bound{}), "cut after %d", at)
	}
	for name, end := range map[string]bound{"by rows": {rows: 1}, "by time": {until: time.Now()}} {
		begin()
		for at := 1; at < piecewiseOf; at++ {
			require.Equal(t, at, r.piece(t, in, end).Begun.Done, name)
		}
		require.Equal(t, want, r.piece(t, in, end), name)
	}
}

// A piece that is done answers at once, and one that does not follow on what is in memory is
// refused: no micro-batch is added twice, and none is left out.
func TestPiecesOfAnUpdate(t *testing.T) {
	t.Parallel()
	e, _ := ownEngine(t, compiling)
	r := piecewise(t, e, "update-pieces", "limits.update_rows=10")
	c := r.iterate(t)
	in := r.updateOf(c)
	in.MaxSeconds = 3600
	at := func(done int) activities.UpdateInput {
		in := in
		in.Begun = &activities.BegunUpdate{Done: done, Of: piecewiseOf}
		return in
	}
	update := func(in activities.UpdateInput) activities.UpdateResult {
		t.Helper()
		got, err := r.Device.Update(t.Context(), in)
		require.NoError(t, err)
		return got
	}
	refused := func(in activities.UpdateInput) {
		t.Helper()
		_, err := r.Device.Update(t.Context(), in)
		require.ErrorIs(t, err, activities.ErrNotResident)
	}
	begin := func() {
		r.forget(t)
		r.restore(t, activities.RestoreInput{Version: in.Policy})
	}
	programs := 0
	e.device.Before = func(string) error { programs++; return nil }
	computes := func(yes bool, f func()) {
		t.Helper()
		before := programs
		f()
		require.Equal(t, yes, programs > before)
	}

	begin()
	refused(at(5))
	require.Equal(t, 5, update(in).Begun.Done)
	computes(false, func() { require.Equal(t, 5, update(in).Begun.Done, "a retry") })
	refused(at(6))
	computes(true, func() { require.Equal(t, 10, update(at(5)).Begun.Done) })
	computes(false, func() {
		for _, retried := range []activities.UpdateInput{in, at(1), at(5)} {
			require.Equal(t, 10, update(retried).Begun.Done)
		}
		other := at(10)
		other.Settings.Update.LearningRate *= 2
		refused(other)
		refused(at(11))
	})
	got := update(at(10))
	require.Equal(t, c.StateAfter, got.State)
	require.Equal(t, c.Update, got.Counts)
	require.Nil(t, got.Begun)
	computes(false, func() {
		require.Equal(t, c.StateAfter, update(at(10)).State)
		require.Equal(t, c.StateAfter, update(in).State)
	})

	// What another worker had done counts as recomputed when it is done again.
	begin()
	again := in
	again.Begun = activities.BegunUpdate{Done: 7, Of: piecewiseOf}.Again()
	first := update(again)
	require.Equal(t, &activities.BegunUpdate{Done: 5, Of: piecewiseOf, Lost: 7}, first.Begun)
	require.Equal(t, 1, first.Telemetry.Recomputed)
	require.Positive(t, first.Telemetry.RecomputeSeconds)
	require.LessOrEqual(t, first.Telemetry.RecomputeSeconds, first.Telemetry.Seconds)
	again.Begun = first.Begun
	second := update(again)
	require.Zero(t, second.Telemetry.Recomputed)
	require.Positive(t, second.Telemetry.RecomputeSeconds)
	require.Less(t, second.Telemetry.RecomputeSeconds, 0.5*second.Telemetry.Seconds, "two of five")
	again.Begun = second.Begun
	last := update(again)
	require.Zero(t, last.Telemetry.RecomputeSeconds)
	require.Equal(t, c.StateAfter, last.State)

	// Without a bound of time it is made in one, as by workflows of before.
	begin()
	in.MaxSeconds = 0
	require.Equal(t, c.StateAfter, update(in).State)
}

// Between two pieces the memory belongs to the update. Other work on the version before it
// takes the memory back; after an optimizer step there is no version that others could use.
// Nothing stays on the device.
func TestBetweenPieces(t *testing.T) {
	e, _ := ownEngine(t, compiling)
	r := piecewise(t, e, "between", "limits.update_rows=2")
	c := r.iterate(t)
	in := r.updateOf(c)
	in.MaxSeconds = 3600
	r.forget(t)
	empty := pjrt.BuffersAlive()
	restore := func(updating bool) activities.RestoreResult {
		again := activities.RestoreInput{Version: in.Policy}
		if updating {
			again.Updating = &activities.PendingUpdate{Batch: in.Batch, Settings: in.Settings}
		}
		return r.restore(t, again)
	}
	pieces := func(n int) {
		t.Helper()
		restore(false)
		for in := in; n > 0; n-- {
			got, err := r.Device.Update(t.Context(), in)
			require.NoError(t, err)
			in.Begun = got.Begun
		}
	}
	follows := func(done int) error {
		next := in
		next.Begun = &activities.BegunUpdate{Done: done, Of: piecewiseOf}
		_, err := r.Device.Update(t.Context(), next)
		return err
	}
	score := func() error {
		_, err := r.Device.Score(t.Context(), activities.ScoreInput{Policy: in.Policy, Settings: in.Settings, Trajectories: c.Trajectories})
		return err
	}

	pieces(1) // of the critic's first step
	require.NoError(t, score())
	require.ErrorIs(t, follows(1), activities.ErrNotResident)
	pieces(5) // the first step of the critic and of the policy are made
	require.ErrorIs(t, score(), activities.ErrNotResident)
	require.NoError(t, follows(5))

	// Another session on the same worker continues, if it asks for the same update.
	got := restore(true)
	require.True(t, got.Done)
	require.True(t, got.Resident)
	require.Zero(t, got.Telemetry.LoadSeconds)
	require.Empty(t, got.State, "a part of an update is no version")
	require.Equal(t, in.Policy.State, got.Before)
	require.NoError(t, follows(6))
	in.Settings.Update.LearningRate *= 2
	require.Positive(t, restore(true).Telemetry.LoadSeconds)
	in.Settings = c.Settings
	require.ErrorIs(t, follows(7), activities.ErrNotResident)

	for _, n := range []int{1, 5} {
		pieces(n)
		r.forget(t)
		require.ErrorIs(t, follows(n), activities.ErrNotResident)
		require.Equal(t, empty, pjrt.BuffersAlive(), n)
	}

	// A batch that cannot be read costs nothing.
	pieces(5)
	alter(t, r.store, in.Batch.Key)
	require.ErrorIs(t, follows(5), store.ErrAltered)
	alter(t, r.store, in.Batch.Key)
	require.NoError(t, follows(5))

	// A micro-batch that fails costs the update so far: the version before it stays only
	// while no optimizer step was made.
	injected := errors.New("injected")
	for n, left := range map[int]string{1: in.Policy.State, 5: ""} {
		pieces(n)
		e.device.Before = func(program string) error {
			if strings.Contains(program, "backward") {
				return injected
			}
			return nil
		}
		err := follows(n)
		e.device.Before = nil
		require.ErrorIs(t, err, injected)
		require.Equal(t, left, e.fingerprint)
		require.Equal(t, left == "", errors.Is(err, activities.ErrNotResident))
		require.Nil(t, e.begun)
		require.ErrorIs(t, follows(n), activities.ErrNotResident)
		require.Equal(t, left == in.Policy.State, restore(true).Resident)
	}
}

// An update of several pieces is rebuilt in as many calls, each of which continues with what
// the one before left in memory. If that is lost between two, the stored version is loaded
// again.
func TestRestoreInPieces(t *testing.T) {
	t.Parallel()
	e, _ := ownEngine(t, compiling)
	r := piecewise(t, e, "rebuilt", "limits.update_rows=10", "snapshot.every=3")
	r.iterate(t)
	r.iterate(t)
	last := r.iterate(t) // from version 0: 3 updates of 3 pieces
	in := activities.RestoreInput{
		Version: activities.Version{Run: r.Run, Version: 2, State: last.StateBefore}, Head: r.commits[2].Parent, MaxSeconds: 3600,
		Pending: &activities.PendingUpdate{Batch: *last.Batch, Settings: last.Settings, State: last.StateAfter},
	}
	type call struct {
		reached, done, recomputed int
		loaded                    bool
	}
	calls := func(lost int) (made []call) {
		r.forget(t)
		for n := 1; ; n++ {
			require.Less(t, n, 20)
			got := r.restore(t, in)
			c := call{reached: got.Reached, recomputed: got.Telemetry.Recomputed, loaded: got.Telemetry.LoadSeconds > 0}
			made = append(made, c)
			if got.Done {
				require.Equal(t, last.StateAfter, got.State)
				return made
			}
			require.Empty(t, got.State)
			require.Equal(t, piecewiseOf, got.Begun.Of)
			require.Positive(t, got.Telemetry.RecomputeSeconds)
			made[n-1].done = got.Begun.Done
			if n == lost {
				r.forget(t)
			}
		}
	}
	whole := []call{
		{0, 5, 0, true}, {0, 10, 0, false},
		{1, 5, 1, false}, {1, 10, 0, false},
		{2, 5, 1, false}, {2, 10, 0, false},
		{2, 0, 1, false},
	}
	require.Equal(t, whole, calls(0))
	for lost := 1; lost < len(whole); lost += 2 {
		t.Run(fmt.Sprint("lost after ", lost), func(t *testing.T) {
			require.Equal(t, append(whole[:lost:lost], whole...), calls(lost))
		})
	}
	in.MaxSeconds = 0
	r.forget(t)
	require.True(t, r.restore(t, in).Done, "in one")
}
