package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/reprise-rl/reprise/infra/store/canon"
)

const (
	// commitAttempts bounds the tries of one Commit, or of one artifact's PUT, against
	// 409s and lost replies; more patience is the caller's (an activity's retry policy).
	commitAttempts = 6
	commitPause    = 20 * time.Millisecond
	// maxFixed is the most bytes of an object under a fixed key.
	maxFixed = 64 << 20
	// maxDifferences is how many places a divergence names.
	maxDifferences = 20
)

// Commit writes body under a fixed key by one conditional PUT (design law 6).
// If the key is taken, the stored bytes are read back. The same bytes are fine (a retry,
// or a lost reply); other bytes are a *[Divergence]. Nothing is ever overwritten. 409 is
// retried; after an unclear outcome (connection lost) the key is read to find out.
func Commit(ctx context.Context, s Store, key string, body []byte) (Ref, error) {
	if len(body) > maxFixed {
		return Ref{}, &Error{Op: "commit", Where: s.Location(key), Kind: ErrTooLarge, Detail: fmt.Sprintf("%d bytes, at most %d", len(body), maxFixed)}
	}
	want := Ref{Key: key, Digest: canon.Digest(body), Size: int64(len(body))}
	pause := commitPause
	var last error
	for range commitAttempts {
		err := s.Put(ctx, key, body, PutOptions{IfAbsent: true})
		if err == nil {
			return want, nil
		}
		last = err
		if !errors.Is(err, ErrExists) && !Retryable(err) {
			return Ref{}, err
		}
		have, ref, readErr := ReadFixed(ctx, s, key, maxFixed)
		switch {
		case readErr == nil && ref.Digest == want.Digest:
			return want, nil
		case readErr == nil || errors.Is(readErr, ErrTooLarge):
			return Ref{}, &Divergence{
				Key: key, HaveDigest: ref.Digest, WantDigest: want.Digest,
				Differences: canon.Diff(have, body, maxDifferences),
			}
		case errors.Is(readErr, ErrNotFound):
			// Nothing was written (or it was deleted meanwhile): put again.
		default:
			return Ref{}, readErr
		}
		if pause, err = wait(ctx, s, "commit", key, pause); err != nil {
			return Ref{}, err
		}
	}
	if errors.Is(last, ErrExists) {
		// Not the kind of a key that is taken: whoever asks reads it again, and finds nothing.
		return Ref{}, &Error{Op: "commit", Where: s.Location(key), Kind: ErrConflict,
			Detail: fmt.Sprintf("the server says %d times that it exists already, and it is not there", commitAttempts)}
	}
	return Ref{}, fmt.Errorf("commit after %d attempts: %w", commitAttempts, last)
}

// wait passes the time between two attempts at a key, and gives the next pause.
func wait(ctx context.Context, s Store, op, key string, pause time.Duration) (time.Duration, error) {
	select {
	case <-ctx.Done():
		return 0, &Error{Op: op, Where: s.Location(key), Cause: ctx.Err()}
	case <-time.After(pause):
		return min(2*pause, time.Second), nil
	}
}
