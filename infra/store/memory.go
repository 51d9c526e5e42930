package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"sort"
	"strings"
	"sync"
	"time"
)

// Memory is a [Store] in the process's memory: for tests, and as an overlay. An overlay's
// reads fall through to another store and its writes stay here, so that a replay can
// write what it recomputes without touching the record. Large bodies, as of weights, are in
// temporary files without a name, which end with the process.
type Memory struct {
	base Store

	mu      sync.Mutex
	objects map[string]memoryObject
	deleted map[string]bool // hides the base's objects
	uploads []Upload
	now     func() time.Time
}

type memoryObject struct {
	body     []byte
	file     *os.File // instead of body, where it is large
	size     int64
	modified time.Time
}

// from reads the object from a byte on.
func (o memoryObject) from(offset int64) io.ReadCloser {
	offset = min(offset, o.size)
	if o.file != nil {
		return io.NopCloser(io.NewSectionReader(o.file, offset, o.size-offset))
	}
	return io.NopCloser(bytes.NewReader(o.body[offset:]))
}

// NewMemory returns an empty store.
func NewMemory() *Memory { return NewOverlay(nil) }

// NewOverlay returns a store that reads base where it has nothing itself and
// never writes to it. Conditional PUTs see the base's objects too.
func NewOverlay(base Store) *Memory {
	return &Memory{base: base, objects: map[string]memoryObject{}, deleted: map[string]bool{}, now: time.Now}
}

// Own yields the objects written here, without the base's, in key order.
func (m *Memory) Own() []Object {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.own("")
}

func (m *Memory) own(prefix string) []Object {
	var out []Object
	for key, o := range m.objects {
		if strings.HasPrefix(key, prefix) {
			out = append(out, Object{Key: key, Size: o.size, Modified: o.modified})
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Key < out[j].Key })
	return out
}

func (m *Memory) fail(op, key string, kind error) error {
	return &Error{Op: op, Where: m.Location(key), Kind: kind}
}

// Location is "memory:key".
func (m *Memory) Location(key string) string { return "memory:" + key }

// Put implements [Store].
func (m *Memory) Put(ctx context.Context, key string, body []byte, opts PutOptions) error {
	return m.put(ctx, key, memoryObject{body: bytes.Clone(body), size: int64(len(body))}, opts)
}

func (m *Memory) put(ctx context.Context, key string, o memoryObject, opts PutOptions) error {
	if err := ctx.Err(); err != nil {
		return &Error{Op: "put", Where: m.Location(key), Cause: err}
	}
	if err := CheckKey(key); err != nil {
		return fmt.Errorf("put: %w", err)
	}
	if opts.IfAbsent && m.base != nil {
		// The base does not change under an overlay, so this need not be atomic with what follows.
		m.mu.Lock()
		hidden := m.deleted[key]
		m.mu.Unlock()
		if !hidden {
			if _, err := m.base.Stat(ctx, key); err == nil {
				return m.fail("put", key, ErrExists)
			} else if !errors.Is(err, ErrNotFound) {
				return err
			}
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.objects[key]; ok && opts.IfAbsent {
		return m.fail("put", key, ErrExists)
	}
	o.modified = m.now()
	m.objects[key] = o
	return nil
}

// PutFrom implements [Store].
func (m *Memory) PutFrom(ctx context.Context, key string, r io.Reader, size int64, opts PutOptions) error {
	o := memoryObject{size: size}
	var err error
	if size <= maxWhole {
		o.body = make([]byte, size)
		_, err = io.ReadFull(r, o.body)
	} else {
		o.file, err = spool(r, size)
	}
	if err != nil {
		return fmt.Errorf("put %s: %w", m.Location(key), err)
	}
	return m.put(ctx, key, o, opts)
}

// spool writes size bytes of r to a temporary file without a name. The file is closed when it
// is collected.
func spool(r io.Reader, size int64) (*os.File, error) {
	f, err := os.CreateTemp("", "reprise-")
	if err != nil {
		return nil, err
	}
	if err = os.Remove(f.Name()); err == nil {
		_, err = io.CopyN(f, r, size)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Open implements [Store].
func (m *Memory) Open(ctx context.Context, key string, offset int64) (io.ReadCloser, Object, error) {
	if err := ctx.Err(); err != nil {
		return nil, Object{}, &Error{Op: "read", Where: m.Location(key), Cause: err}
	}
	m.mu.Lock()
	o, ok := m.objects[key]
	hidden := m.deleted[key]
	m.mu.Unlock()
	switch {
	case ok:
		return o.from(offset), Object{Key: key, Size: o.size, Modified: o.modified}, nil
	case m.base != nil && !hidden:
		return m.base.Open(ctx, key, offset)
	}
	return nil, Object{}, m.fail("read", key, ErrNotFound)
}

// Stat implements [Store].
func (m *Memory) Stat(ctx context.Context, key string) (Object, error) {
	m.mu.Lock()
	o, ok := m.objects[key]
	hidden := m.deleted[key]
	m.mu.Unlock()
	switch {
	case ok:
		return Object{Key: key, Size: o.size, Modified: o.modified}, nil
	case m.base != nil && !hidden:
		return m.base.Stat(ctx, key)
	}
	return Object{}, m.fail("stat", key, ErrNotFound)
}

// List implements [Store].
func (m *Memory) List(ctx context.Context, prefix string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		m.mu.Lock()
		all := m.own(prefix)
		mine := make(map[string]bool, len(all))
		for _, o := range all {
			mine[o.Key] = true
		}
		hidden := make(map[string]bool, len(m.deleted))
		for key := range m.deleted {
			hidden[key] = true
		}
		m.mu.Unlock()
		if m.base != nil {
			for o, err := range m.base.List(ctx, prefix) {
				if err != nil {
					yield(Object{}, err)
					return
				}
				if !mine[o.Key] && !hidden[o.Key] {
					all = append(all, o)
				}
			}
			sort.Slice(all, func(i, j int) bool { return all[i].Key < all[j].Key })
		}
		for _, o := range all {
			if err := ctx.Err(); err != nil {
				yield(Object{}, &Error{Op: "list", Where: m.Location(prefix), Cause: err})
				return
			}
			if !yield(o, nil) {
				return
			}
		}
	}
}

// Folders implements [Store].
func (m *Memory) Folders(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		last := ""
		for o, err := range m.List(ctx, prefix) {
			if err != nil {
				yield("", err)
				return
			}
			name, _, isFolder := strings.Cut(strings.TrimPrefix(o.Key, prefix), "/")
			if !isFolder || name == last {
				continue
			}
			last = name
			if !yield(name, nil) {
				return
			}
		}
	}
}

// Delete implements [Store].
func (m *Memory) Delete(_ context.Context, key string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.objects, key)
	if m.base != nil {
		m.deleted[key] = true
	}
	return nil
}

// Uploads implements [Store].
func (m *Memory) Uploads(_ context.Context, prefix string) iter.Seq2[Upload, error] {
	return func(yield func(Upload, error) bool) {
		m.mu.Lock()
		all := append([]Upload(nil), m.uploads...)
		m.mu.Unlock()
		for _, u := range all {
			if strings.HasPrefix(u.Key, prefix) && !yield(u, nil) {
				return
			}
		}
	}
}

// AbortUpload implements [Store].
func (m *Memory) AbortUpload(_ context.Context, u Upload) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, have := range m.uploads {
		if have.Key == u.Key && have.ID == u.ID {
			m.uploads = append(m.uploads[:i], m.uploads[i+1:]...)
			return nil
		}
	}
	return nil
}

// SetTime fixes the time that later writes are stamped with, for tests of
// grace periods.
func (m *Memory) SetTime(t time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now = func() time.Time { return t }
}
