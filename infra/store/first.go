package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/reprise-rl/reprise/infra/store/canon"
)

// First gives the object under key, and writes it with the bytes of produce if there is none. If two
// write at once, the first one's bytes count, and the other gets them too: unlike [Commit], other
// bytes are no divergence. It is for answers of the outside world, which may differ each time. The
// key names the question, so that the same question has one recorded answer.
func First(ctx context.Context, s Store, key string, produce func() ([]byte, error)) ([]byte, Ref, error) {
	body, ref, err := ReadFixed(ctx, s, key, maxFixed)
	if !errors.Is(err, ErrNotFound) {
		return body, ref, err
	}
	if body, err = produce(); err != nil {
		return nil, Ref{}, err
	}
	if len(body) > maxFixed {
		return nil, Ref{}, &Error{Op: "put", Where: s.Location(key), Kind: ErrTooLarge, Detail: fmt.Sprintf("%d bytes, at most %d", len(body), maxFixed)}
	}
	pause := commitPause
	var last error
	for range commitAttempts {
		last = s.Put(ctx, key, body, PutOptions{IfAbsent: true})
		if last == nil {
			return body, Ref{Key: key, Digest: canon.Digest(body), Size: int64(len(body))}, nil
		}
		if !errors.Is(last, ErrExists) && !Retryable(last) {
			return nil, Ref{}, last
		}
		// Another one's, or this one's whose reply was lost.
		if have, ref, err := ReadFixed(ctx, s, key, maxFixed); !errors.Is(err, ErrNotFound) {
			return have, ref, err
		}
		if pause, err = wait(ctx, s, "put", key, pause); err != nil {
			return nil, Ref{}, err
		}
	}
	return nil, Ref{}, fmt.Errorf("put after %d attempts: %w", commitAttempts, last)
}
