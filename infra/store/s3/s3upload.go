package s3

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"runtime/debug"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"golang.org/x/sync/errgroup"

	"github.com/reprise-rl/reprise/infra/store"
)

// uploadStreams is how many parts of one upload are on the way at once. Each is held in
// memory, because it is hashed before it is sent and may be sent again.
const uploadStreams = 4

// PutFrom implements [Store]. Up to the size of a part go in one request, more in parts. Each
// part's SHA-256 is signed with it, so the server refuses a part that was damaged
// on the way; the whole is verified when it is read.
func (s *Store) PutFrom(ctx context.Context, key string, r io.Reader, size int64, opts store.PutOptions) error {
	if err := store.CheckKey(key); err != nil {
		return fmt.Errorf("put: %w", err)
	}
	if size <= s.part() {
		body := make([]byte, size)
		if err := s.readPart(key, r, body, 0); err != nil {
			return err
		}
		return s.Put(ctx, key, body, opts)
	}
	ctx, end := operation(ctx)
	defer end()
	upload, err := s.core.NewMultipartUpload(ctx, s.bucket, s.prefix+key, s.options(key, store.PutOptions{ContentType: opts.ContentType}))
	if err != nil {
		return s.fail(ctx, "begin upload of", key, err)
	}
	parts, err := s.putParts(ctx, key, upload, r, size)
	// The parts' memory is as much as some models have. As garbage, it would stay until the
	// next collection, which may be minutes away.
	debug.FreeOSMemory()
	if err == nil {
		err = s.complete(ctx, key, upload, parts, size, opts)
	}
	if err != nil {
		// Parts cost space: drop them, also when the caller gave up. gc finds the parts
		// that this cannot drop.
		cleanup, stop := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer stop()
		_ = s.core.AbortMultipartUpload(cleanup, s.bucket, s.prefix+key, upload)
	}
	return err
}

// part is the size above which an upload goes in parts.
func (s *Store) part() int64 {
	if s.partBytes > 0 {
		return s.partBytes
	}
	return partSize
}

// putParts reads and sends the parts of an upload.
func (s *Store) putParts(ctx context.Context, key, upload string, r io.Reader, size int64) ([]minio.CompletePart, error) {
	step := max(s.part(), (size+maxParts-1)/maxParts)
	parts := make([]minio.CompletePart, (size+step-1)/step)
	group, sending := errgroup.WithContext(ctx)
	free := make(chan []byte, uploadStreams)
	for range min(len(parts), uploadStreams) {
		free <- nil
	}
	for i := range parts {
		room := <-free
		if sending.Err() != nil {
			break // a part has failed
		}
		length := min(step, size-int64(i)*step)
		if room == nil {
			room = make([]byte, step)
		}
		body := room[:length]
		if err := s.readPart(key, r, body, int64(i)*step); err != nil {
			group.Go(func() error { return err })
			break
		}
		group.Go(func() error {
			defer func() { free <- room }()
			sum := sha256.Sum256(body)
			part, err := s.core.PutObjectPart(sending, s.bucket, s.prefix+key, upload, i+1, bytes.NewReader(body), length,
				minio.PutObjectPartOptions{Sha256Hex: hex.EncodeToString(sum[:]), DisableContentSha256: true})
			parts[i] = minio.CompletePart{PartNumber: i + 1, ETag: part.ETag}
			return s.fail(ctx, fmt.Sprintf("put part %d of", i+1), key, err)
		})
	}
	err := group.Wait()
	if err == nil {
		err = ctx.Err()
	}
	return parts, err
}

// readPart reads the bytes of an object that begin at offset.
func (s *Store) readPart(key string, r io.Reader, body []byte, offset int64) error {
	if _, err := io.ReadFull(r, body); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return fmt.Errorf("put %s: read bytes %d to %d: %w", s.Location(key), offset, offset+int64(len(body)), err)
	}
	return nil
}

func (s *Store) complete(ctx context.Context, key, upload string, parts []minio.CompletePart, size int64, opts store.PutOptions) error {
	put := minio.PutObjectOptions{}
	if opts.IfAbsent {
		put.SetMatchETagExcept("*")
	}
	longer := context.WithValue(ctx, extraKey{}, time.Duration(len(parts))*partPatience)
	_, err := s.core.CompleteMultipartUpload(longer, s.bucket, s.prefix+key, upload, parts, put)
	if minio.ToErrorResponse(err).Code == "NoSuchUpload" {
		// The first reply was lost and a retry found the upload gone: is the object there?
		if o, statErr := s.Stat(ctx, key); statErr == nil && o.Size == size {
			return &store.Error{Op: "put", Where: s.Location(key), Kind: store.ErrExists}
		}
	}
	return s.fail(ctx, "complete upload of", key, err)
}

// Uploads implements [Store].
func (s *Store) Uploads(ctx context.Context, prefix string) iter.Seq2[store.Upload, error] {
	return func(yield func(store.Upload, error) bool) {
		ctx, end := operation(ctx)
		defer end()
		keyMarker, idMarker := "", ""
		for {
			if err := ctx.Err(); err != nil {
				yield(store.Upload{}, s.fail(ctx, "list uploads of", prefix, err))
				return
			}
			page, err := s.core.ListMultipartUploads(ctx, s.bucket, s.prefix+prefix, keyMarker, idMarker, "", 1000)
			if err != nil {
				yield(store.Upload{}, s.fail(ctx, "list uploads of", prefix, err))
				return
			}
			for _, u := range page.Uploads {
				key, ours := strings.CutPrefix(u.Key, s.prefix)
				if !ours || !strings.HasPrefix(key, prefix) {
					continue // some servers ignore the prefix
				}
				if !yield(store.Upload{Key: key, ID: u.UploadID, Started: u.Initiated}, nil) {
					return
				}
			}
			if !page.IsTruncated || page.NextKeyMarker == keyMarker && page.NextUploadIDMarker == idMarker {
				return
			}
			keyMarker, idMarker = page.NextKeyMarker, page.NextUploadIDMarker
		}
	}
}

// AbortUpload implements [Store].
func (s *Store) AbortUpload(ctx context.Context, u store.Upload) error {
	ctx, end := operation(ctx)
	defer end()
	err := s.core.AbortMultipartUpload(ctx, s.bucket, s.prefix+u.Key, u.ID)
	if err = s.fail(ctx, "abort upload of", u.Key, err); errors.Is(err, store.ErrNotFound) {
		return nil
	}
	return err
}
