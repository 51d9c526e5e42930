package store

import (
	"context"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"strings"
)

// resumes is how often a read that broke off is taken up again.
const resumes = 4

// OpenArtifact streams an artifact. The reader verifies as it reads. At the end it
// returns [ErrAltered] instead of io.EOF unless size and SHA-256 are those of the ref, so
// nothing may be trusted before io.EOF. A connection that breaks off is taken up where it
// ended.
func OpenArtifact(ctx context.Context, s Store, ref Ref) (io.ReadCloser, error) {
	return openArtifact(ctx, s, ref, nil)
}

// openArtifact reads ahead where r is not nil.
func openArtifact(ctx context.Context, s Store, ref Ref, r *Reading) (io.ReadCloser, error) {
	if err := ref.Check(); err != nil {
		return nil, err
	}
	a := &artifactReader{ctx: ctx, s: s, ref: ref, hash: r.hashed(), left: resumes, reading: r}
	if err := a.open(); err != nil {
		return nil, err
	}
	return a, nil
}

type artifactReader struct {
	ctx  context.Context
	s    Store
	ref  Ref
	body io.ReadCloser
	hash hash.Hash
	// reading, where not nil, is how the body is read.
	reading *Reading
	read    int64
	left    int
	err     error // final answer of Read
}

func (a *artifactReader) open() error {
	body, o, err := a.s.Open(a.ctx, a.ref.Key, a.read)
	if err != nil {
		return withRemedy(err)
	}
	if o.Size != a.ref.Size {
		body.Close()
		return &Altered{Key: a.ref.Key, WantDigest: a.ref.Digest, WantSize: a.ref.Size, HaveSize: o.Size, location: a.s.Location(a.ref.Key)}
	}
	a.body = a.reading.ahead(body)
	return nil
}

// withRemedy says what to do about an artifact that is gone.
func withRemedy(err error) error {
	var gone *Error
	if errors.As(err, &gone) && errors.Is(gone.Kind, ErrNotFound) && gone.Hint == "" {
		said := *gone
		if strings.HasSuffix(gone.Where, "/manifest.json") {
			said.Hint = "the bucket has lost a commit: if it is the newest, start the run again, which continues after the one before, " +
				"with the same bits; else restore the object from a copy; reprise verify lists all that is missing"
			return &said
		}
		said.Hint = "restore the object from a copy and start the run again: it continues; reprise verify lists all that is missing"
		return &said
	}
	return err
}

// Read implements io.Reader.
func (a *artifactReader) Read(p []byte) (int, error) {
	for a.err == nil {
		n, err := a.body.Read(p)
		a.hash.Write(p[:n])
		a.read += int64(n)
		switch {
		case a.read > a.ref.Size:
			a.err = &Altered{Key: a.ref.Key, WantDigest: a.ref.Digest, WantSize: a.ref.Size, HaveSize: a.read, location: a.s.Location(a.ref.Key)}
			return 0, a.err
		case err == nil:
			return n, nil
		case a.read == a.ref.Size:
			// The digest shows that all bytes are there, however the connection ended.
			a.err = a.finish()
		default:
			a.err = a.resume(err)
		}
		if n > 0 {
			return n, nil // the rest is reported on the next call
		}
	}
	return 0, a.err
}

func (a *artifactReader) finish() error {
	have := hex.EncodeToString(a.hash.Sum(nil))
	if have == a.ref.Digest {
		return io.EOF
	}
	return &Altered{Key: a.ref.Key, WantDigest: a.ref.Digest, HaveDigest: have, WantSize: a.ref.Size, HaveSize: a.read,
		location: a.s.Location(a.ref.Key)}
}

// resume opens the rest after a connection broke, and answers nil if it could.
func (a *artifactReader) resume(err error) error {
	a.body.Close()
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if a.left == 0 || a.ctx.Err() != nil {
		return bodyError(a.ctx, a.s, a.ref.Key, err)
	}
	a.left--
	return a.open()
}

// Close implements io.Closer.
func (a *artifactReader) Close() error { return a.body.Close() }
