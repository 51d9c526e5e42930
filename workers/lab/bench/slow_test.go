package bench

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/store"
)

// Only the reads of the slow run wait, and they stop waiting when their context ends.
func TestSlowStore(t *testing.T) {
	slow := &slowStore{Store: store.NewMemory(), prefix: store.RunDir(slowRun), delay: time.Hour}
	for _, key := range []string{store.SpecKey(slowRun + "-1"), store.SpecKey("bench-bucket-1")} {
		require.NoError(t, slow.Put(t.Context(), key, []byte("{}"), store.PutOptions{}))
	}
	r, _, err := slow.Open(t.Context(), store.SpecKey("bench-bucket-1"), 0)
	require.NoError(t, err)
	require.NoError(t, r.Close())
	require.Zero(t, slow.reads.Load())
	ended, end := context.WithCancel(t.Context())
	end()
	_, _, err = slow.Open(ended, store.SpecKey(slowRun+"-1"), 0)
	require.ErrorIs(t, err, context.Canceled)
	require.EqualValues(t, 1, slow.reads.Load())
	slow.delay = 0
	r, _, err = slow.Open(t.Context(), store.SpecKey(slowRun+"-1"), 0)
	require.NoError(t, err)
	require.NoError(t, r.Close())
}

// The worker ends when the measurement does, and its end ends the measurement.
func TestBesideAWorker(t *testing.T) {
	waits := func(ctx context.Context, ready func()) error {
		ready()
		<-ctx.Done()
		return nil
	}
	require.NoError(t, beside(t.Context(), waits, func(context.Context) error { return nil }))
	failed := errors.New("failed")
	require.ErrorIs(t, beside(t.Context(), waits, func(context.Context) error { return failed }), failed)
	dies := func(_ context.Context, ready func()) error {
		ready()
		return failed
	}
	require.ErrorIs(t, beside(t.Context(), dies, func(ctx context.Context) error {
		<-ctx.Done()
		return context.Cause(ctx)
	}), failed)
	require.ErrorIs(t, beside(t.Context(), func(context.Context, func()) error { return failed }, nil), failed)
}
