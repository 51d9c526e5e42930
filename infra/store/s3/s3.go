package s3

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"mime"
	"path"
	"strconv"
	"strings"

	"github.com/minio/minio-go/v7"

	"github.com/reprise-rl/reprise/infra/store"
)

// S3 is a [Store] in a bucket of an S3-compatible server.
type Store struct {
	core     *minio.Core
	bucket   string
	prefix   string // empty, or ends in '/'
	endpoint string
	// partBytes overrides partSize, in tests.
	partBytes int64
}

// Location is "s3://bucket/prefix/key".
func (s *Store) Location(key string) string { return "s3://" + s.bucket + "/" + s.prefix + key }

// Check asks the server whether the bucket is there and the credentials may
// list it: [ErrNoBucket], [ErrDenied], [ErrUnavailable].
func (s *Store) Check(ctx context.Context) error {
	ctx, end := operation(ctx)
	defer end()
	listing, stop := context.WithCancel(ctx)
	defer stop()
	for info := range s.core.ListObjectsIter(listing, s.bucket, minio.ListObjectsOptions{Prefix: s.prefix, MaxKeys: 1}) {
		return s.fail(ctx, "list", "", info.Err)
	}
	return s.fail(ctx, "list", "", ctx.Err())
}

// Put implements [Store].
func (s *Store) Put(ctx context.Context, key string, body []byte, opts store.PutOptions) error {
	if err := store.CheckKey(key); err != nil {
		return fmt.Errorf("put: %w", err)
	}
	ctx, end := operation(ctx)
	defer end()
	sum := sha256.Sum256(body)
	return s.putOnce(ctx, key, bytes.NewReader(body), int64(len(body)), sum[:], opts)
}

// putOnce sends a body in one request. The body's SHA-256 goes in headers, twice:
// signed, and as the checksum that the server verifies and keeps. (minio-go would
// send a trailer, which not every server reads.)
func (s *Store) putOnce(ctx context.Context, key string, body io.Reader, size int64, sum []byte, opts store.PutOptions) error {
	put := s.options(key, opts)
	put.UserMetadata = map[string]string{"X-Amz-Checksum-Sha256": base64.StdEncoding.EncodeToString(sum)}
	put.DisableContentSha256 = true // no chunked signature: the digest below signs the body
	_, err := s.core.PutObject(ctx, s.bucket, s.prefix+key, body, size, "", hex.EncodeToString(sum), put)
	return s.fail(ctx, "put", key, err)
}

func (s *Store) options(key string, opts store.PutOptions) minio.PutObjectOptions {
	put := minio.PutObjectOptions{ContentType: opts.ContentType}
	if put.ContentType == "" {
		put.ContentType = contentType(key)
	}
	if opts.IfAbsent {
		put.SetMatchETagExcept("*")
	}
	return put
}

// contentType is fixed here for what we write: the system's MIME tables differ.
func contentType(key string) string {
	switch ext := path.Ext(key); ext {
	case ".json":
		return "application/json"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".html":
		return "text/html; charset=utf-8"
	case ".parquet":
		return "application/vnd.apache.parquet"
	case ".safetensors":
		return "application/octet-stream"
	default:
		if t := mime.TypeByExtension(ext); strings.HasPrefix(t, "image/") || strings.HasPrefix(t, "text/") {
			return t
		}
		return "application/octet-stream"
	}
}

// Open implements [Store].
func (s *Store) Open(ctx context.Context, key string, offset int64) (io.ReadCloser, store.Object, error) {
	if err := store.CheckKey(key); err != nil {
		return nil, store.Object{}, fmt.Errorf("read: %w", err)
	}
	var get minio.GetObjectOptions
	// Not by the library's own field, which makes every damage an error of the connection.
	if offset == 0 {
		get.Set("X-Amz-Checksum-Mode", "ENABLED")
	} else {
		if err := get.SetRange(offset, 0); err != nil {
			return nil, store.Object{}, fmt.Errorf("read %s from byte %d: %w", s.Location(key), offset, err)
		}
	}
	ctx, end := operation(ctx)
	body, info, header, err := s.core.GetObject(ctx, s.bucket, s.prefix+key, get)
	if err != nil {
		defer end()
		return nil, store.Object{}, s.fail(ctx, "read", key, err)
	}
	size := info.Size
	if offset > 0 {
		// "bytes 5-9/10": the size of the whole object is after the slash.
		_, whole, ok := strings.Cut(header.Get("Content-Range"), "/")
		if size, err = strconv.ParseInt(whole, 10, 64); !ok || err != nil {
			defer end()
			body.Close()
			return nil, store.Object{}, s.fail(ctx, "read", key, fmt.Errorf("the server did not answer the range from byte %d", offset))
		}
	}
	o := store.Object{Key: key, Size: size, Modified: info.LastModified}
	// An upload in parts has a checksum of checksums, which is not 32 bytes.
	if sum, err := base64.StdEncoding.DecodeString(header.Get("X-Amz-Checksum-Sha256")); err == nil && len(sum) == sha256.Size && offset == 0 {
		o.SHA256 = hex.EncodeToString(sum)
	}
	return &openBody{body, end}, o, nil
}

// openBody is the body of an object, and the end of the operation that reads it.
type openBody struct {
	io.ReadCloser
	end context.CancelFunc
}

// Close implements [io.Closer].
func (b *openBody) Close() error {
	defer b.end()
	return b.ReadCloser.Close()
}

// Stat implements [Store].
func (s *Store) Stat(ctx context.Context, key string) (store.Object, error) {
	if err := store.CheckKey(key); err != nil {
		return store.Object{}, fmt.Errorf("stat: %w", err)
	}
	ctx, end := operation(ctx)
	defer end()
	info, err := s.core.StatObject(ctx, s.bucket, s.prefix+key, minio.StatObjectOptions{})
	if err != nil {
		// An answer to HEAD has no body, so a missing bucket, on some servers an unknown access key, and the page
		// of a proxy look like a missing key. A listing shows it.
		if minio.ToErrorResponse(err).StatusCode == 404 {
			for o, listErr := range s.List(ctx, key) {
				if listErr != nil || o.Key == key {
					return o, listErr
				}
				break // the key would come first
			}
		}
		return store.Object{}, s.fail(ctx, "stat", key, err)
	}
	return store.Object{Key: key, Size: info.Size, Modified: info.LastModified}, nil
}

// List implements [Store].
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[store.Object, error] {
	return func(yield func(store.Object, error) bool) {
		ctx, end := operation(ctx)
		defer end()
		// minio-go wants the context of a listing cancelled when we stop early.
		listing, stop := context.WithCancel(ctx)
		defer stop()
		opts := minio.ListObjectsOptions{Prefix: s.prefix + prefix, Recursive: true}
		for info := range s.core.ListObjectsIter(listing, s.bucket, opts) {
			if info.Err != nil {
				yield(store.Object{}, s.fail(ctx, "list", prefix, info.Err))
				return
			}
			o := store.Object{Key: strings.TrimPrefix(info.Key, s.prefix), Size: info.Size, Modified: info.LastModified}
			// A key that ends in '/' is a folder marker of some client.
			if strings.HasSuffix(o.Key, "/") {
				continue
			}
			if !yield(o, nil) {
				return
			}
		}
		if err := ctx.Err(); err != nil {
			yield(store.Object{}, s.fail(ctx, "list", prefix, err))
		}
	}
}

// Folders implements [Store].
func (s *Store) Folders(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		ctx, end := operation(ctx)
		defer end()
		listing, stop := context.WithCancel(ctx)
		defer stop()
		opts := minio.ListObjectsOptions{Prefix: s.prefix + prefix}
		for info := range s.core.ListObjectsIter(listing, s.bucket, opts) {
			if info.Err != nil {
				yield("", s.fail(ctx, "list", prefix, info.Err))
				return
			}
			name, isFolder := strings.CutSuffix(strings.TrimPrefix(info.Key, s.prefix+prefix), "/")
			if isFolder && name != "" && !yield(name, nil) {
				return
			}
		}
		if err := ctx.Err(); err != nil {
			yield("", s.fail(ctx, "list", prefix, err))
		}
	}
}

// Delete implements [Store].
func (s *Store) Delete(ctx context.Context, key string) error {
	if err := store.CheckKey(key); err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	ctx, end := operation(ctx)
	defer end()
	err := s.core.RemoveObject(ctx, s.bucket, s.prefix+key, minio.RemoveObjectOptions{})
	if minio.ToErrorResponse(err).Code != minio.NoSuchKey {
		return s.fail(ctx, "delete", key, err)
	}
	// So some servers say that it was gone already; and so does a page of one that is no S3 server.
	switch _, there := s.Stat(ctx, key); {
	case there == nil:
		e := &store.Error{Op: "delete", Where: s.Location(key), Kind: store.ErrRefused, Detail: "it is there, and the answer is 404", Answer: err}
		e.Hint = hintOf[e.Kind]
		return e
	case !errors.Is(there, store.ErrNotFound):
		return there
	}
	return nil
}
