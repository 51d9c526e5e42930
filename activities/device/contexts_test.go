package device

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/store"
)

// A host worker meets thousands of runs, and keeps what it read of the last ones; runs
// of one model share its tokenizer.
func TestKitsAreBounded(t *testing.T) {
	first := resolved(t, "run-0", tinySpec(t))
	var c run.Contexts
	var shared *run.BaseModel
	for i := range run.MaxContexts + 3 {
		got, err := first.Host.Resolve(t.Context(), activities.ResolveInput{Run: fmt.Sprint("run-", i), Spec: tinySpec(t, fmt.Sprintf("seed=%d", i+1))})
		require.NoError(t, err)
		rc, err := c.Read(t.Context(), first.store, activities.Run{ID: fmt.Sprint("run-", i), Spec: got.Spec, Base: first.Run.Base})
		require.NoError(t, err)
		if i == 0 {
			shared = rc.BaseModel
		}
		require.Same(t, shared, rc.BaseModel)
	}
	require.Equal(t, run.MaxContexts, c.Len())
}

// slowStore holds reads of a key back until the test releases them.
type slowStore struct {
	store.Store
	key     string
	reads   atomic.Int32
	started chan struct{}
	goOn    chan struct{}
}

func (s *slowStore) Open(ctx context.Context, key string, offset int64) (io.ReadCloser, store.Object, error) {
	if key == s.key {
		if s.reads.Add(1) == 1 {
			close(s.started)
		}
		select {
		case <-s.goOn:
		case <-ctx.Done():
			return nil, store.Object{}, ctx.Err()
		}
	}
	return s.Store.Open(ctx, key, offset)
}

// A run whose bucket is slow delays no other run, and what several of its steps miss is
// read once. If the step that reads is ended, another reads.
func TestSlowRunDelaysNoOther(t *testing.T) {
	first := resolved(t, "slow", tinySpec(t))
	other, err := first.Host.Resolve(t.Context(), activities.ResolveInput{Run: "other", Spec: tinySpec(t, "seed=2")})
	require.NoError(t, err)
	s := &slowStore{Store: first.store, key: first.Run.Spec.Key, started: make(chan struct{}), goOn: make(chan struct{})}
	var c run.Contexts

	ended, end := context.WithCancel(t.Context())
	read := func(ctx context.Context) chan error {
		done := make(chan error, 1)
		go func() {
			_, err := c.Read(ctx, s, first.Run)
			done <- err
		}()
		return done
	}
	leader := read(ended)
	<-s.started
	followers := []chan error{read(t.Context()), read(t.Context())}
	_, err = c.Read(t.Context(), s, activities.Run{ID: "other", Spec: other.Spec, Base: first.Run.Base})
	require.NoError(t, err)

	end()
	require.ErrorIs(t, <-leader, context.Canceled)
	close(s.goOn)
	for _, f := range followers {
		require.NoError(t, <-f)
	}
	reads := s.reads.Load()
	require.LessOrEqual(t, reads, int32(3))
	_, err = c.Read(t.Context(), s, first.Run)
	require.NoError(t, err)
	require.Equal(t, reads, s.reads.Load(), "it is remembered")
}
