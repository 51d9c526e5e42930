package faults

import (
	"context"
	"io"

	"github.com/reprise-rl/reprise/infra/store"
)

// Store wraps the worker's store: it knows an activity's first write.
func (p *Plan) Store(s store.Store) store.Store {
	p.store = storeRef{s}
	return &faulty{Store: s}
}

// storeRef is the store beneath, for the plan's own use.
type storeRef struct{ store.Store }

type faulty struct{ store.Store }

// Put implements [store.Store].
func (f *faulty) Put(ctx context.Context, key string, body []byte, opts store.PutOptions) error {
	writes(ctx)
	return f.Store.Put(ctx, key, body, opts)
}

// PutFrom implements [store.Store].
func (f *faulty) PutFrom(ctx context.Context, key string, r io.Reader, size int64, opts store.PutOptions) error {
	writes(ctx)
	return f.Store.PutFrom(ctx, key, r, size, opts)
}

func writes(ctx context.Context) {
	c := callOf(ctx)
	if c == nil {
		return
	}
	if f, ok := c.plan.find(c.of, "inside"); ok {
		c.plan.strike(f)
	}
}
