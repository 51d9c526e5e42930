package store

import (
	"context"
	"crypto/sha256"
	"hash"
	"io"
	"sync/atomic"
	"time"
)

const (
	// aheadBytes is the size of a chunk, aheadChunks how many are read ahead at most.
	aheadBytes  = 1 << 20
	aheadChunks = 16
)

// Reading is how the files of an [FS] are read. Large files are read in three goroutines, one
// behind the other: one reads, one hashes, and the caller's uses what has been hashed. Zero
// keeps no copies.
type Reading struct {
	// Local, where not nil, keeps copies of large files.
	Local *LocalFiles

	read, hash atomic.Int64 // nanoseconds
}

// Seconds are the times for which large files were read and hashed so far. Both pass at the
// same time, and beside what the caller does.
func (r *Reading) Seconds() (read, hash float64) {
	return time.Duration(r.read.Load()).Seconds(), time.Duration(r.hash.Load()).Seconds()
}

// open opens a large artifact.
func (r *Reading) open(ctx context.Context, s Store, ref Ref) (io.ReadCloser, error) {
	// Whoever closes the file does not wait for a server that has stopped sending.
	ctx, cancel := context.WithCancel(ctx)
	open := openArtifact
	if r.Local != nil {
		open = r.Local.open
	}
	body, err := open(ctx, s, ref, r)
	if err != nil {
		cancel()
		return nil, err
	}
	return &ahead{body: body, cancel: cancel}, nil
}

// ahead reads a body ahead, and notes the time that reading takes. Nil leaves it as it is.
func (r *Reading) ahead(body io.ReadCloser) io.ReadCloser {
	if r == nil {
		return body
	}
	return &ahead{body: body, busy: &r.read}
}

// hashed is a new SHA-256, whose time r notes unless it is nil.
func (r *Reading) hashed() hash.Hash {
	if r == nil {
		return sha256.New()
	}
	return &timedHash{sha256.New(), &r.hash}
}

// timedHash notes the time that hashing takes.
type timedHash struct {
	hash.Hash
	busy *atomic.Int64
}

// Write implements io.Writer.
func (h *timedHash) Write(p []byte) (int, error) {
	begin := time.Now()
	n, err := h.Hash.Write(p)
	h.busy.Add(int64(time.Since(begin)))
	return n, err
}

// ahead reads a stream in a goroutine of its own, some chunks before its reader. It begins to
// do so after the first chunk: of many a file only the header is read.
type ahead struct {
	body   io.ReadCloser
	busy   *atomic.Int64 // nanoseconds in which body was read; nil: not measured
	cancel func()        // ends a read of body; nil: nothing does

	first      int // bytes read before the goroutine began
	full, free chan []byte
	err        error // of body, when full is closed
	stop       chan struct{}
	now, rest  []byte // the chunk that is being read, and what is left of it
}

// Read implements io.Reader.
func (a *ahead) Read(p []byte) (int, error) {
	if a.first < aheadBytes {
		n, err := a.timed(p[:min(len(p), aheadBytes-a.first)])
		a.first += n
		return n, err
	}
	if a.full == nil {
		a.begin()
	}
	for len(a.rest) == 0 {
		if a.now != nil {
			a.free <- a.now
		}
		chunk, more := <-a.full
		if !more {
			a.now = nil
			return 0, a.err
		}
		a.now, a.rest = chunk[:cap(chunk)], chunk
	}
	n := copy(p, a.rest)
	a.rest = a.rest[n:]
	return n, nil
}

// timed reads from the body.
func (a *ahead) timed(p []byte) (int, error) {
	if a.busy == nil {
		return a.body.Read(p)
	}
	begin := time.Now()
	n, err := a.body.Read(p)
	a.busy.Add(int64(time.Since(begin)))
	return n, err
}

func (a *ahead) begin() {
	a.full, a.free, a.stop = make(chan []byte, aheadChunks), make(chan []byte, aheadChunks), make(chan struct{})
	for range aheadChunks {
		a.free <- make([]byte, aheadBytes)
	}
	go func() {
		defer close(a.full)
		for a.err == nil {
			var chunk []byte
			select {
			case chunk = <-a.free:
			case <-a.stop:
				return
			}
			n := 0
			for n < len(chunk) && a.err == nil {
				var more int
				more, a.err = a.timed(chunk[n:])
				n += more
			}
			a.full <- chunk[:n] // there is room for all chunks
		}
	}()
}

// Close implements io.Closer. The goroutine has ended when it returns.
func (a *ahead) Close() error {
	if a.cancel != nil {
		a.cancel()
	}
	if a.stop != nil {
		close(a.stop)
		for range a.full {
		}
		a.stop, a.err, a.rest = nil, io.ErrClosedPipe, nil
	}
	return a.body.Close()
}
