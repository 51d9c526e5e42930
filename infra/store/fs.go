package store

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"path"
	"time"
)

// maxWhole is the size up to which a file of [FS] is read at once, so that a [Cache] may have
// it. Larger ones are read as streams.
const maxWhole = 8 << 20

// FS gives a folder's files, by name, as a file system to read. Its files are verified as
// they are read: the last read returns [ErrAltered] instead of io.EOF unless size and SHA-256
// are right. So a file counts only once it has been read to its end. r, unless it is nil, says
// how large files are read.
func FS(ctx context.Context, s Store, files map[string]Ref, r *Reading) fs.FS {
	if r == nil {
		r = new(Reading)
	}
	return folderFS{ctx, s, files, r}
}

type folderFS struct {
	ctx   context.Context
	s     Store
	files map[string]Ref
	r     *Reading
}

// Open implements fs.FS.
func (f folderFS) Open(name string) (fs.File, error) {
	ref, ok := f.files[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return &artifactFile{fsys: f, ref: ref, info: artifactInfo{name, ref.Size}}, nil
}

// Stat implements fs.StatFS: a ref says all.
func (f folderFS) Stat(name string) (fs.FileInfo, error) {
	file, err := f.Open(name)
	if err != nil {
		return nil, err
	}
	return file.Stat()
}

// artifactFile is opened in the store when it is first read.
type artifactFile struct {
	fsys folderFS
	ref  Ref
	info artifactInfo
	body io.ReadCloser
}

// Stat implements fs.File.
func (a *artifactFile) Stat() (fs.FileInfo, error) { return a.info, nil }

// Read implements fs.File.
func (a *artifactFile) Read(p []byte) (int, error) {
	if a.body == nil {
		body, err := a.fsys.open(a.ref)
		if err != nil {
			return 0, err
		}
		a.body = body
	}
	return a.body.Read(p)
}

// Close implements fs.File.
func (a *artifactFile) Close() error {
	if a.body == nil {
		return nil
	}
	return a.body.Close()
}

func (f folderFS) open(ref Ref) (io.ReadCloser, error) {
	if ref.Size <= maxWhole {
		body, err := GetArtifact(f.ctx, f.s, ref)
		return io.NopCloser(bytes.NewReader(body)), err
	}
	return f.r.open(f.ctx, f.s, ref)
}

// artifactInfo describes a file of FS.
type artifactInfo struct {
	name string
	size int64
}

// Name implements fs.FileInfo.
func (i artifactInfo) Name() string { return path.Base(i.name) }

// Size implements fs.FileInfo.
func (i artifactInfo) Size() int64 { return i.size }

// Mode implements fs.FileInfo.
func (artifactInfo) Mode() fs.FileMode { return 0o444 }

// ModTime implements fs.FileInfo; an artifact has always been what it is.
func (artifactInfo) ModTime() time.Time { return time.Time{} }

// IsDir implements fs.FileInfo.
func (artifactInfo) IsDir() bool { return false }

// Sys implements fs.FileInfo.
func (artifactInfo) Sys() any { return nil }
