package store

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/reprise-rl/reprise/infra/store/canon"
)

// LocalFiles keeps copies of large artifacts in a folder of this machine, under their
// digests: base models, which many runs begin with, are fetched once. A copy is verified
// whenever it is read. Several processes may use one folder. What cannot be written is left
// out: copies are never needed.
type LocalFiles struct {
	dir   string
	limit int64
	mu    sync.Mutex // of making room
}

// NewLocalFiles keeps at most limit bytes in the folder dir, which is made when it is needed.
// Those that have been read least recently make room.
func NewLocalFiles(dir string, limit int64) *LocalFiles { return &LocalFiles{dir: dir, limit: limit} }

// stalePart is the age after which an unfinished copy is removed: its process is gone.
const stalePart = 24 * time.Hour

// Open is [OpenArtifact], from the copy if there is one. Otherwise the artifact is copied
// while it is read; the copy counts once it has been read to its end.
func (l *LocalFiles) Open(ctx context.Context, s Store, ref Ref) (io.ReadCloser, error) {
	return l.open(ctx, s, ref, nil)
}

// open reads ahead where r is not nil.
func (l *LocalFiles) open(ctx context.Context, s Store, ref Ref, r *Reading) (io.ReadCloser, error) {
	if err := ref.Check(); err != nil {
		return nil, err
	}
	path := filepath.Join(l.dir, ref.Digest)
	if f, size, err := openFile(path); err == nil {
		if size == ref.Size {
			now := time.Now()
			_ = os.Chtimes(path, now, now) // read now
			return &localReader{f: r.ahead(f), ref: ref, path: path, hash: r.hashed()}, nil
		}
		f.Close()
	}
	body, err := openArtifact(ctx, s, ref, r)
	if err != nil || ref.Size > l.limit {
		return body, err
	}
	if err := os.MkdirAll(l.dir, 0o700); err != nil {
		return body, nil
	}
	part, err := os.OpenFile(path+partMark+rand.Text(), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return body, nil
	}
	return &copyingReader{ReadCloser: body, to: l, part: part, path: path}, nil
}

// localReader reads a copy and verifies it.
type localReader struct {
	f    io.ReadCloser
	ref  Ref
	path string
	hash hash.Hash
}

// Read implements io.Reader.
func (r *localReader) Read(p []byte) (int, error) {
	n, err := r.f.Read(p)
	r.hash.Write(p[:n])
	if err != io.EOF {
		return n, err
	}
	if have := hex.EncodeToString(r.hash.Sum(nil)); have != r.ref.Digest {
		os.Remove(r.path)
		return n, &Error{Op: "read", Where: r.path, Kind: ErrUnavailable, Detail: fmt.Sprintf("the local copy of %s was damaged (SHA-256 %s) and is removed", r.ref.Key, have)}
	}
	return n, io.EOF
}

// Close implements io.Closer.
func (r *localReader) Close() error { return r.f.Close() }

// copyingReader reads an artifact and writes what it reads to a part of a copy.
type copyingReader struct {
	io.ReadCloser
	to   *LocalFiles
	part *os.File // nil once it is complete or given up
	path string
}

// Read implements io.Reader.
func (r *copyingReader) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	if r.part == nil {
		return n, err
	}
	if _, failed := r.part.Write(p[:n]); failed != nil || err != nil && err != io.EOF {
		r.drop()
	} else if err == io.EOF {
		r.finish()
	}
	return n, err
}

// Close implements io.Closer.
func (r *copyingReader) Close() error {
	r.drop()
	return r.ReadCloser.Close()
}

func (r *copyingReader) drop() {
	if r.part != nil {
		r.part.Close()
		os.Remove(r.part.Name())
		r.part = nil
	}
}

// finish makes the part the copy.
func (r *copyingReader) finish() {
	if r.part.Close() != nil || os.Rename(r.part.Name(), r.path) != nil {
		os.Remove(r.part.Name())
	}
	r.part = nil
	r.to.makeRoom()
}

// makeRoom removes stale parts, and the copies that were read least recently while there is
// more than the limit.
func (l *LocalFiles) makeRoom() {
	l.mu.Lock()
	defer l.mu.Unlock()
	entries, err := os.ReadDir(l.dir)
	if err != nil {
		return
	}
	var copies []os.FileInfo
	var total int64
	for _, e := range entries {
		info, err := e.Info()
		switch {
		case err != nil || !info.Mode().IsRegular():
		case canon.IsDigest(e.Name()):
			copies = append(copies, info)
			total += info.Size()
		case PartOf(e.Name()) != "" && time.Since(info.ModTime()) > stalePart:
			os.Remove(filepath.Join(l.dir, e.Name()))
		}
	}
	slices.SortFunc(copies, func(a, b os.FileInfo) int {
		return cmp.Or(a.ModTime().Compare(b.ModTime()), cmp.Compare(a.Name(), b.Name()))
	})
	for _, c := range copies {
		if total <= l.limit {
			return
		}
		if os.Remove(filepath.Join(l.dir, c.Name())) == nil {
			total -= c.Size()
		}
	}
}
