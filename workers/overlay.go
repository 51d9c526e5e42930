package workers

import (
	"context"
	"errors"
	"io"

	"github.com/reprise-rl/reprise/infra/store"
)

// Overlay is a store whose writes stay in memory: a run can be computed again on
// top of its own artifacts without touching one. Reads see the writes first.
type Overlay struct {
	store.Store // what lies beneath: read only
	Written     *store.Memory
}

// NewOverlay lays a memory over a store.
func NewOverlay(base store.Store) *Overlay {
	return &Overlay{Store: base, Written: store.NewMemory()}
}

// Put writes to memory.
func (o *Overlay) Put(ctx context.Context, key string, body []byte, opts store.PutOptions) error {
	return o.Written.Put(ctx, key, body, opts)
}

// PutFrom writes to memory.
func (o *Overlay) PutFrom(ctx context.Context, key string, r io.ReaderAt, size int64, opts store.PutOptions) error {
	return o.Written.PutFrom(ctx, key, r, size, opts)
}

// Open reads what was written, else what lies beneath.
func (o *Overlay) Open(ctx context.Context, key string, offset int64) (io.ReadCloser, store.Object, error) {
	body, object, err := o.Written.Open(ctx, key, offset)
	if errors.Is(err, store.ErrNotFound) {
		return o.Store.Open(ctx, key, offset)
	}
	return body, object, err
}

// Stat describes what was written, else what lies beneath.
func (o *Overlay) Stat(ctx context.Context, key string) (store.Object, error) {
	object, err := o.Written.Stat(ctx, key)
	if errors.Is(err, store.ErrNotFound) {
		return o.Store.Stat(ctx, key)
	}
	return object, err
}

// Delete removes what was written, never what lies beneath.
func (o *Overlay) Delete(ctx context.Context, key string) error { return o.Written.Delete(ctx, key) }
