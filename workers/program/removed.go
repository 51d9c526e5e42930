package program

import (
	"context"
	"fmt"
	"time"

	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workers/stack"
)

// storeOf opens the bucket for a command about a run, or about a sweep if both is set. It is a [store.ErrRemoved] if that was
// removed: what a removal that was interrupted has left would look like damage.
func storeOf(ctx context.Context, conn *stack.Connection, id string, both bool) (store.Store, error) {
	s, err := conn.Store()
	if err != nil {
		return nil, err
	}
	dirs := []string{store.RunDir(id)}
	if both {
		dirs = append(dirs, store.SweepDir(id))
	}
	return s, stillThere(ctx, s, dirs...)
}

// stillThere is a [store.ErrRemoved] if one of the folders is that of something removed.
func stillThere(ctx context.Context, s store.Store, dirs ...string) error {
	for _, dir := range dirs {
		switch r, err := store.ReadRemoved(ctx, s, dir); {
		case err != nil:
			return err
		case r != nil:
			return fmt.Errorf("%w: %s; %s says what there was", store.ErrRemoved, r, s.Location(store.RemovedKey(dir)))
		}
	}
	return nil
}

// askBucket bounds how long a command that is about Temporal waits for the bucket.
const askBucket = 2 * time.Second

// removedNote finds what a person has removed under an id; nil if nothing was, or no bucket answers.
func removedNote(ctx context.Context, s store.Store, id string) *store.Removed {
	if s == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, askBucket)
	defer cancel()
	r, err := store.FindRemoved(ctx, s, id)
	if err != nil {
		return nil
	}
	return r
}
