package device

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/host"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/store"
)

// write calls f before the n-th tensor that an optimizer writes from now on, once.
func (e *Engine) write(n int, f func() error) {
	e.device.Before = func(program string) error {
		if !strings.HasPrefix(program, "apply ") {
			return nil
		}
		if n--; n == -1 {
			return f()
		}
		return nil
	}
}

// An update that fails while it writes leaves no version in memory. The activity ends with
// NotResident, and the version is restored; the run ends with the bytes of one that never
// failed. So do an update that is cancelled between two optimizer steps, which stays as far as
// it is, and one that fails when it is applied again.
func TestUpdateFailsWhileItWrites(t *testing.T) {
	t.Parallel()
	e, _ := ownEngine(t, compiling)
	document := tinySpec(t, `credit.algorithm="gae"`, `update.kl_in="loss"`, "update.kl_coefficient=0.1", "update.epochs=2", "evaluation.every=0")
	start := func() *testRun {
		r := resolved(t, "in-place", document)
		r.Device = &Device{Store: r.store, Engine: e}
		r.forget(t)
		restored := r.restore(t, activities.RestoreInput{})
		r.state, r.programs = restored.State, restored.Programs
		return r
	}
	plain := start()
	critic, policy := len(e.second.Config().Tensors()), len(e.state.Config().Tensors())
	for range 3 {
		plain.iterate(t)
	}

	injected := errors.New("injected")
	r := start()
	r.iterate(t)
	for _, n := range []int{0, 1, critic - 1, critic, critic + 1, critic + policy - 1, critic + policy, 2*(critic+policy) - 1} {
		e.write(n, func() error { return injected })
		_, err := r.Iterate(t.Context(), r.iteration())
		require.ErrorIs(t, err, injected, "tensor %d", n)
		require.Equal(t, activities.KindNotResident, run.KindOf(err))
		require.Nil(t, e.state)
		require.Nil(t, e.second)
		_, err = r.Device.Snapshot(t.Context(), activities.SnapshotInput{Policy: r.version()})
		require.ErrorContains(t, err, "in memory is nothing")

		if n == critic { // the update of iteration 0 fails when it is applied again
			e.write(n, func() error { return injected })
			_, err := r.Device.Restore(t.Context(), activities.RestoreInput{Version: r.version(), Head: r.head})
			require.ErrorIs(t, err, injected)
			require.Equal(t, activities.KindNotResident, run.KindOf(err))
		}
		require.Equal(t, r.state, r.restore(t, activities.RestoreInput{}).State)
	}
	ctx, cancel := context.WithCancel(t.Context())
	e.write(critic+policy-1, func() error { cancel(); return nil })
	_, err := r.Iterate(ctx, r.iteration())
	require.ErrorIs(t, err, context.Canceled)
	require.NotNil(t, e.begun)
	require.Empty(t, e.fingerprint)
	require.Equal(t, r.state, r.restore(t, activities.RestoreInput{}).State)
	require.Nil(t, e.begun)

	r.iterate(t)
	r.iterate(t)
	require.Equal(t, plain.objects(t), r.objects(t))
}

// A warm start that fails while it writes begins its chunk again.
func TestWarmStartFailsWhileItWrites(t *testing.T) {
	e, _ := ownEngine(t, compiling)
	injected := errors.New("injected")
	var bases []string
	for _, n := range []int{-1, 0, 1} {
		s := store.NewMemory()
		got, err := (&host.Host{Store: s}).Resolve(t.Context(), activities.ResolveInput{Run: "in-place", Spec: tinySpec(t)})
		require.NoError(t, err)
		d := &Device{Store: s, Engine: e}
		in := activities.WarmStartInput{Run: "in-place", Spec: got.Spec, Steps: 2}
		if n >= 0 {
			e.write(n, func() error { return injected })
			_, err := d.WarmStart(t.Context(), in)
			require.ErrorIs(t, err, injected)
			require.Empty(t, run.KindOf(err), "tried again")
			require.Nil(t, e.state)
		}
		done, err := d.WarmStart(t.Context(), in)
		require.NoError(t, err)
		bases = append(bases, done.Base.Digest)
	}
	require.Equal(t, bases[0], bases[1])
	require.Equal(t, bases[0], bases[2])
}
