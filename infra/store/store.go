// Package store keeps a run's artifacts in an S3-compatible bucket, so that
// they can be trusted years later.
//
// An artifact is an immutable object whose key carries its SHA-256: it is
// written once with [PutArtifact], named by a [Ref], and verified on every read.
// A run is a chain of manifests: an iteration is committed by one conditional PUT of its
// [Manifest] under a fixed key ([Commit]), and a manifest names the one before it by
// digest. The same bytes again are fine, other bytes are a [Divergence], and nothing
// stored is ever overwritten. [Head], [LoadChain] and [FindRebuild] find the way back
// after everything else was lost, [Verify] re-hashes all that a run reaches, and
// [FindGarbage] lists what no manifest names.
//
// A person with any S3 client finds the way (see keys.go):
//
//	runs/RUN/spec.json
//	runs/RUN/b0/iterations/000012/{turn-1.generate.<sha12>.parquet, …, manifest.json}
//	runs/RUN/b0/snapshots/000010.<sha12>/{config.json, model.safetensors, …}
//	runs/RUN/b0/evaluations/000010/…
//	models/<sha12>/…
//	programs/KEY/{<key>.program, <digest>.record}
package store

import (
	"context"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/reprise-rl/reprise/infra/store/canon"
)

// Ref names an artifact: where it is and what it must contain.
type Ref struct {
	// Key is the object's key, relative to the store's prefix.
	Key string `json:"key"`
	// Digest is the lower-case hex SHA-256 of the file.
	Digest string `json:"digest"`
	// Size is in bytes.
	Size int64 `json:"size"`
	// Content is the digest of a table's logical columns (see tables.Encode);
	// tables only.
	Content string `json:"content,omitempty"`
}

// Check reports a ref that cannot name anything: an unsafe key, a digest that
// is not 64 lower-case hex digits, a negative size.
func (r Ref) Check() error {
	if err := CheckKey(r.Key); err != nil {
		return err
	}
	switch {
	case !canon.IsDigest(r.Digest):
		return fmt.Errorf("ref of %s: digest %q is not 64 lower-case hex digits", r.Key, Clip(r.Digest))
	case r.Content != "" && !canon.IsDigest(r.Content):
		return fmt.Errorf("ref of %s: content digest %q is not 64 lower-case hex digits", r.Key, Clip(r.Content))
	case r.Size < 0:
		return fmt.Errorf("ref of %s: size %d is negative", r.Key, r.Size)
	}
	return nil
}

// Object is what a listing says of a stored object.
type Object struct {
	// Key is relative to the store's prefix.
	Key string
	// Size is in bytes.
	Size int64
	// Modified is the server's time of the write.
	Modified time.Time
	// SHA256 is the whole object's in lower-case hex as the server knows it, of an object that is opened from its beginning; "" where the
	// server says nothing.
	SHA256 string
}

// Upload is a multipart upload that was begun and neither completed nor aborted.
type Upload struct {
	Key string
	// ID is the server's name of the upload.
	ID string
	// Started is the server's time of its beginning.
	Started time.Time
}

// PutOptions say how an object is written.
type PutOptions struct {
	// IfAbsent makes the PUT conditional (If-None-Match: *): [ErrExists] if
	// the key is taken, and then nothing changes.
	IfAbsent bool
	// ContentType is the MIME type; by default it follows the key's extension.
	ContentType string
}

// Store is the small set of operations that everything here is built on. Keys
// are relative, '/'-separated, without "..", empty segments or control bytes.
// Errors are of the kinds in errors.go and carry operation and key. All methods
// may be called from several goroutines.
type Store interface {
	// Put writes a small object at once, with its SHA-256 checked by the server.
	Put(ctx context.Context, key string, body []byte, opts PutOptions) error
	// PutFrom writes the size bytes of r without holding them all, in parts if there are
	// many. r is read once, from its beginning to its end. An object is there whole or not
	// at all, and not if r returns an error.
	PutFrom(ctx context.Context, key string, r io.Reader, size int64, opts PutOptions) error
	// Open reads an object from byte offset on; the Object's Size is the whole's.
	// The body is not verified: [OpenArtifact] does that.
	Open(ctx context.Context, key string, offset int64) (io.ReadCloser, Object, error)
	// Stat describes an object, or says [ErrNotFound].
	Stat(ctx context.Context, key string) (Object, error)
	// List yields the objects whose key begins with prefix, in the order of
	// their keys' bytes; after an error it ends.
	List(ctx context.Context, prefix string) iter.Seq2[Object, error]
	// Folders yields the names directly under the folder prefix (which ends in
	// '/') that have objects below them, without slashes, in byte order.
	Folders(ctx context.Context, prefix string) iter.Seq2[string, error]
	// Delete removes an object; a missing object is not an error.
	Delete(ctx context.Context, key string) error
	// Uploads yields the incomplete multipart uploads under a prefix.
	Uploads(ctx context.Context, prefix string) iter.Seq2[Upload, error]
	// AbortUpload drops an incomplete upload and its parts.
	AbortUpload(ctx context.Context, u Upload) error
	// Location is where a key is, for people: "s3://bucket/prefix/key".
	Location(key string) string
}
