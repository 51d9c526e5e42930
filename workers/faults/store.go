package faults

import (
	"context"
	"io"
	"time"

	"github.com/reprise-rl/reprise/infra/store"
)

// Store wraps the worker's store: it knows an activity's first read and write.
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
func (f *faulty) PutFrom(ctx context.Context, key string, r io.ReaderAt, size int64, opts store.PutOptions) error {
	writes(ctx)
	return f.Store.PutFrom(ctx, key, r, size, opts)
}

// Open implements [store.Store].
func (f *faulty) Open(ctx context.Context, key string, offset int64) (io.ReadCloser, store.Object, error) {
	reads(ctx)
	return f.Store.Open(ctx, key, offset)
}

// Stat implements [store.Store].
func (f *faulty) Stat(ctx context.Context, key string) (store.Object, error) {
	reads(ctx)
	return f.Store.Stat(ctx, key)
}

func writes(ctx context.Context) {
	c := callOf(ctx)
	if c == nil {
		return
	}
	c.begin()
	if f, ok := c.plan.find(c.kind, "inside", c.nth); ok {
		c.plan.strike(f)
	}
}

// computing is how long after its first read an activity that writes nothing
// is taken to compute.
const computing = 10 * time.Millisecond

func reads(ctx context.Context) {
	c := callOf(ctx)
	if c == nil {
		return
	}
	c.begin()
	if f, ok := c.plan.find(c.kind, "inside", c.nth); ok && readOnly[c.kind] && c.reads.CompareAndSwap(false, true) {
		time.AfterFunc(computing, func() { c.plan.strike(f) })
	}
}

// begin marks the activity's first access to the store: whoever computes on the
// device holds its lease by then.
func (c *call) begin() {
	c.began.Do(func() {
		f, stalls := c.plan.find(c.kind, "stall", c.nth)
		if c.plan.trace || stalls {
			c.plan.say("trace %s %s computes", c.run, c.kind)
		}
		if stalls {
			time.Sleep(f.After)
			c.plan.say("trace %s %s stalled", c.run, c.kind)
		}
	})
}
