package store

import (
	"bytes"
	"container/list"
	"sync"
)

// Cache is a store that keeps the bodies of artifacts that this process has written, or
// has read and verified. So the steps of an iteration do not fetch from the bucket what
// the previous step has just sent. Artifacts are immutable, so what is kept stays true;
// it is looked up by key and digest, and [GetArtifact] alone looks it up. Functions that
// must know what the bucket holds now ([Verify], [VerifyArtifact], [Commit], a PUT whose
// key is taken) read the bucket.
type Cache struct {
	Store
	limit int64
	// Rewritten, unless nil, is told of an artifact that was damaged in the bucket, that no manifest named, and that is written again.
	Rewritten func(ref Ref, damage error)

	mu    sync.Mutex
	bytes int64
	order *list.List // of *cached, the one used last at the front
	at    map[Ref]*list.Element
}

type cached struct {
	ref  Ref
	body []byte
}

// cacheShare is the part of the limit that one body may take at most.
const cacheShare = 8

// cacheBodies is how many bodies are kept at most: those of some iterations of many runs. What was written long ago is not
// read again, and a run with small artifacts would fill the memory for hours.
const cacheBodies = 1024

// NewCache puts a cache of at most limit bytes, and of cacheBodies, before a store. A body of more
// than an eighth of it is not kept.
func NewCache(s Store, limit int64) *Cache {
	return &Cache{Store: s, limit: limit, order: list.New(), at: map[Ref]*list.Element{}}
}

// keeper is a store that keeps bodies of artifacts.
type keeper interface {
	// recall gives a copy of a body it keeps, nil if it keeps none.
	recall(ref Ref) []byte
	// keep takes a copy of a body that is known to be the ref's.
	keep(ref Ref, body []byte)
}

func recall(s Store, ref Ref) []byte {
	if k, ok := s.(keeper); ok {
		return k.recall(ref)
	}
	return nil
}

func keep(s Store, ref Ref, body []byte) {
	if k, ok := s.(keeper); ok {
		k.keep(ref, body)
	}
}

// nameOf leaves out what a writer of bytes does not know.
func nameOf(ref Ref) Ref {
	ref.Content = ""
	return ref
}

func (c *Cache) rewritten(ref Ref, damage error) {
	if c.Rewritten != nil {
		c.Rewritten(ref, damage)
	}
}

func (c *Cache) recall(ref Ref) []byte {
	// A copy: a caller may do with it what it likes. Nobody changes the body itself, so it
	// is copied without the lock.
	return bytes.Clone(c.body(nameOf(ref)))
}

func (c *Cache) body(ref Ref) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.at[ref]
	if !ok {
		return nil
	}
	c.order.MoveToFront(e)
	return e.Value.(*cached).body
}

func (c *Cache) keep(ref Ref, body []byte) {
	ref = nameOf(ref)
	size := int64(len(body))
	if size == 0 || size > c.limit/cacheShare {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.at[ref]; ok {
		c.order.MoveToFront(e)
		return
	}
	c.at[ref] = c.order.PushFront(&cached{ref: ref, body: bytes.Clone(body)})
	for c.bytes += size; c.bytes > c.limit || c.order.Len() > cacheBodies; {
		old := c.order.Remove(c.order.Back()).(*cached)
		delete(c.at, old.ref)
		c.bytes -= int64(len(old.body))
	}
}
