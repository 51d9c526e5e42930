package store

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"regexp"

	"github.com/reprise-rl/reprise/infra/store/canon"
)

// MaxBody is the most bytes that [GetArtifact] and [ReadFixed] hold in memory;
// larger files are for [OpenArtifact], [FS] and [GetFile].
const MaxBody = 1 << 30

// ShortDigest is the part of a digest that keys carry: its first 12 hex digits.
func ShortDigest(digest string) string { return digest[:min(12, len(digest))] }

// PutArtifact writes body as the immutable object dir/name.<sha12>.ext and
// returns its ref. Writing the same bytes again is fine, by anybody at any
// time. If the key is taken, the stored bytes are read back: [ErrAltered] if they differ.
func PutArtifact(ctx context.Context, s Store, dir, name, ext string, body []byte) (Ref, error) {
	digest := canon.Digest(body)
	key := artifactKey(dir, name, ext, digest)
	ref, err := settle(ctx, s, Ref{Key: key, Digest: digest, Size: int64(len(body))}, func() error {
		return s.Put(ctx, key, body, PutOptions{IfAbsent: true})
	})
	if err == nil {
		keep(s, ref, body)
	}
	return ref, err
}

func openFile(path string) (*os.File, int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, fmt.Errorf("open artifact's file: %w", err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", path)
	}
	if err != nil {
		f.Close()
		return nil, 0, fmt.Errorf("open artifact's file: %w", err)
	}
	return f, info.Size(), nil
}

// putStream writes the bytes that open reads as the ref's artifact. Nothing is stored if they
// are others than the ref says.
func putStream(ctx context.Context, s Store, ref Ref, open func() io.Reader) (Ref, error) {
	return settle(ctx, s, ref, func() error {
		// Gigabytes are not sent to find out that they are there.
		if o, err := s.Stat(ctx, ref.Key); err == nil && o.Size == ref.Size {
			return &Error{Op: "put", Where: s.Location(ref.Key), Kind: ErrExists}
		}
		return s.PutFrom(ctx, ref.Key, &sentReader{r: WithContext(ctx, open()), ref: ref, hash: sha256.New()}, ref.Size,
			PutOptions{IfAbsent: true})
	})
}

// sentReader reads bytes that are sent. With the last ones it returns an error unless all of
// them are the ref's: then what was sent is dropped.
type sentReader struct {
	r    io.Reader
	ref  Ref
	hash hash.Hash
	read int64
}

// Read implements io.Reader.
func (s *sentReader) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	s.hash.Write(p[:n])
	if s.read += int64(n); n > 0 && s.read == s.ref.Size {
		if have := hex.EncodeToString(s.hash.Sum(nil)); have != s.ref.Digest {
			return 0, fmt.Errorf("the bytes of %s changed while they were stored: SHA-256 %s, before it was %s", s.ref.Key, have, s.ref.Digest)
		}
	}
	return n, err
}

// WithContext is a reader that fails once ctx has ended.
func WithContext(ctx context.Context, r io.Reader) io.Reader {
	return readerFunc(func(p []byte) (int, error) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		return r.Read(p)
	})
}

type readerFunc func(p []byte) (int, error)

// Read implements io.Reader.
func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// settle makes a conditional PUT and turns its outcome into a ref: a key that is taken
// is fine if it holds the same bytes. The server may say that the key is taken (412),
// contested (409) or gone (an upload that somebody aborted), although nothing is there
// when it is read. Then the other request was a deletion or is not visible yet, and the
// PUT is made again, as [Commit] does. After as many attempts that is [ErrConflict], for
// the caller to retry; [ErrNotFound] would say that a committed artifact is gone. A damaged object that no manifest names is
// deleted, and written again.
func settle(ctx context.Context, s Store, ref Ref, put func() error) (Ref, error) {
	pause := commitPause
	var last error
	for attempt := range commitAttempts {
		err := put()
		if err == nil {
			return ref, nil
		}
		last = err
		if !errors.Is(err, ErrExists) && !errors.Is(err, ErrConflict) && !errors.Is(err, ErrNotFound) {
			return Ref{}, err
		}
		err = VerifyArtifact(ctx, s, ref)
		if err == nil {
			return ref, nil
		}
		if errors.Is(err, ErrAltered) {
			dropped, dropErr := dropDamaged(ctx, s, ref, err)
			if dropErr != nil {
				return Ref{}, fmt.Errorf("compare with what is stored: %w", dropErr)
			}
			if dropped {
				continue
			}
		}
		if !errors.Is(err, ErrNotFound) {
			return Ref{}, fmt.Errorf("compare with what is stored: %w", err)
		}
		if attempt+1 == commitAttempts {
			break
		}
		if pause, err = wait(ctx, s, "put", ref.Key, pause); err != nil {
			return Ref{}, err
		}
	}
	return Ref{}, &Error{Op: "put", Where: s.Location(ref.Key), Kind: ErrConflict, Detail: fmt.Sprintf("nothing is stored after %d attempts; the last: %v", commitAttempts, last)}
}

func artifactKey(dir, name, ext, digest string) string {
	return dir + "/" + name + "." + ShortDigest(digest) + "." + ext
}

// digestOf hashes a stream of exactly size bytes.
func digestOf(r io.Reader, size int64) (string, error) {
	h := sha256.New()
	n, err := io.Copy(h, r)
	if err != nil {
		return "", err
	}
	if n != size {
		return "", fmt.Errorf("have %d bytes, want %d", n, size)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// GetArtifact reads a whole artifact and verifies its size and SHA-256
// ([ErrAltered] after two reads, [ErrNotFound]; [ErrTooLarge] beyond [MaxBody]). A [Cache]
// answers with what it has.
func GetArtifact(ctx context.Context, s Store, ref Ref) ([]byte, error) {
	if ref.Size > MaxBody {
		return nil, &Error{Op: "read", Where: s.Location(ref.Key), Kind: ErrTooLarge, Detail: fmt.Sprintf("%d bytes, at most %d are read into memory", ref.Size, MaxBody)}
	}
	if body := recall(s, ref); body != nil {
		return body, nil
	}
	body, err := getWhole(ctx, s, ref)
	if errors.Is(err, ErrAltered) {
		// A bit that flipped on the way is right the next time. A step that reads many objects would else fail as often.
		body, err = getWhole(ctx, s, ref)
	}
	if err == nil {
		keep(s, ref, body)
	}
	return body, err
}

// getWhole reads an artifact into memory.
func getWhole(ctx context.Context, s Store, ref Ref) ([]byte, error) {
	r, err := OpenArtifact(ctx, s, ref)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	// Room is made once the store has that many bytes, whatever the ref says. One more byte lets ReadFrom meet the end without
	// growing the buffer.
	buf := bytes.NewBuffer(make([]byte, 0, ref.Size+bytes.MinRead))
	if _, err := buf.ReadFrom(r); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

// VerifyArtifact reads an artifact through and verifies size and SHA-256.
func VerifyArtifact(ctx context.Context, s Store, ref Ref) error {
	r, err := OpenArtifact(ctx, s, ref)
	if err != nil {
		return err
	}
	defer r.Close()
	_, err = io.Copy(io.Discard, r)
	return err
}

// partMark is between a file's name and a random text, in the name of an unfinished
// download of [GetFile].
const partMark = ".part-"

var partForm = regexp.MustCompile(`^(.+)` + regexp.QuoteMeta(partMark) + `[A-Z2-7]{26}$`)

// PartOf returns the file of which a local file is an unfinished download, judged by its
// name. A killed [GetFile] leaves such files. The result is empty if the name is another
// one.
func PartOf(name string) string {
	if m := partForm.FindStringSubmatch(name); m != nil {
		return m[1]
	}
	return ""
}

// GetFile streams an artifact into a local file. The file appears under its
// name only when size and SHA-256 are right; its folder must exist. A process that is
// killed meanwhile leaves a part: see [PartOf].
func GetFile(ctx context.Context, s Store, ref Ref, path string) (err error) {
	r, err := OpenArtifact(ctx, s, ref)
	if err != nil {
		return err
	}
	defer r.Close()
	// Not CreateTemp, whose files are the owner's alone.
	f, err := os.OpenFile(path+partMark+rand.Text(), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	if _, err := io.Copy(f, r); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// ReadFixed reads an object under a fixed key, whose digest nobody gave, with a
// limit in bytes ([ErrTooLarge]), and says what it is. Where the server knows the digest, a body
// that was altered on the way is read again; one that is the same twice is what is stored.
func ReadFixed(ctx context.Context, s Store, key string, limit int64) ([]byte, Ref, error) {
	var last error
	altered := ""
	for range resumes {
		r, o, err := s.Open(ctx, key, 0)
		if err != nil {
			return nil, Ref{}, err
		}
		if o.Size > limit {
			r.Close()
			return nil, Ref{}, &Error{Op: "read", Where: s.Location(key), Kind: ErrTooLarge, Detail: fmt.Sprintf("%d bytes, at most %d are expected here", o.Size, limit)}
		}
		body, err := io.ReadAll(io.LimitReader(r, limit+1))
		r.Close()
		if err == nil && int64(len(body)) == o.Size {
			digest := canon.Digest(body)
			if o.SHA256 == "" || o.SHA256 == digest || altered == digest {
				return body, Ref{Key: key, Digest: digest, Size: o.Size}, nil
			}
			altered = digest
			err = fmt.Errorf("the body has SHA-256 %s, and the server says %s", digest, o.SHA256)
		}
		last = bodyError(ctx, s, key, err)
		if ctx.Err() != nil {
			break
		}
	}
	return nil, Ref{}, last
}

// bodyError says why a body ended early. An error after the answer's headers comes from
// the network, so another try may help.
func bodyError(ctx context.Context, s Store, key string, err error) error {
	e := &Error{Op: "read", Where: s.Location(key), Kind: ErrUnavailable, Detail: "the body ended early"}
	if cause := Canceled(ctx, cmp.Or(err, io.ErrUnexpectedEOF)); cause != nil {
		return &Error{Op: "read", Where: s.Location(key), Cause: cause}
	}
	if err != nil {
		e.Detail = err.Error()
	}
	return e
}
