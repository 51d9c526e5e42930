package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sort"

	"github.com/reprise-rl/reprise/infra/store/canon"
)

// FolderFile is a file of a folder artifact: its name in the folder, and its bytes,
// either in Body or from Open.
type FolderFile struct {
	// Name is relative and '/'-separated, as "model.safetensors".
	Name string
	Body []byte
	// Open, if it is not nil, replaces Body and returns a reader of the file's Size bytes
	// from their beginning. They are read once for their digest and once to be sent, each
	// time as a stream, and must be the same.
	Open func() io.Reader
	Size int64
}

// Folder is a set of files that keep their names, in a folder whose name has the digest
// of all of them. So other programs can load a stored model as it is.
type Folder struct {
	// Dir is the folder's key, without a slash at the end.
	Dir string `json:"dir"`
	// Digest is the SHA-256 of the canonical JSON {name: SHA-256 of the file, …}.
	Digest string `json:"digest"`
	// Files are the refs by name in the folder.
	Files map[string]Ref `json:"files"`
}

// FolderDigest is the digest of a folder's contents: of the canonical JSON
// object from file name to the file's SHA-256.
func FolderDigest(files map[string]Ref) string {
	digests := make(map[string]string, len(files))
	for name, ref := range files {
		digests[name] = ref.Digest
	}
	b, err := canon.Marshal(digests)
	if err != nil { // strings always encode
		panic(err)
	}
	return canon.Digest(b)
}

// PutFolder writes files as the folder prefix+<sha12>, where prefix is the key's
// beginning with its own separator: "models/" or "runs/RUN/b0/snapshots/000010.".
// Files are written in the order of their names; a folder counts when a manifest
// names it, so a half-written one does no harm.
func PutFolder(ctx context.Context, s Store, prefix string, files []FolderFile) (Folder, error) {
	files = InOrder(files)
	out, err := HashFolder(ctx, prefix, files)
	if err != nil {
		return Folder{}, err
	}
	for _, f := range files {
		if err := PutFolderFile(ctx, s, out.Files[f.Name], f); err != nil {
			return Folder{}, fmt.Errorf("put folder %s: %w", out.Dir, err)
		}
	}
	return out, nil
}

// InOrder are a folder's files in the order in which they are written: of their names.
func InOrder(files []FolderFile) []FolderFile {
	files = slices.Clone(files)
	sort.Slice(files, func(i, j int) bool { return files[i].Name < files[j].Name })
	return files
}

// HashFolder returns what PutFolder would store, without writing.
func HashFolder(ctx context.Context, prefix string, files []FolderFile) (Folder, error) {
	refs := make(map[string]Ref, len(files))
	for _, f := range files {
		if err := CheckKey(f.Name); err != nil {
			return Folder{}, fmt.Errorf("put folder %s: %w", prefix, err)
		}
		if _, twice := refs[f.Name]; twice {
			return Folder{}, fmt.Errorf("put folder %s: the file %q is given twice", prefix, f.Name)
		}
		open, size := f.source()
		digest, err := digestOf(WithContext(ctx, open()), size)
		if err != nil {
			return Folder{}, fmt.Errorf("put folder %s: hash %s: %w", prefix, f.Name, err)
		}
		refs[f.Name] = Ref{Digest: digest, Size: size}
	}
	out := Folder{Digest: FolderDigest(refs), Files: refs}
	out.Dir = prefix + ShortDigest(out.Digest)
	for name, ref := range refs {
		ref.Key = out.Dir + "/" + name
		refs[name] = ref
	}
	return out, nil
}

// PutFolderFile writes a file of a folder under the ref that HashFolder gave it. It writes
// nothing if the bytes are others now.
func PutFolderFile(ctx context.Context, s Store, ref Ref, f FolderFile) error {
	open, _ := f.source()
	_, err := putStream(ctx, s, ref, open)
	return err
}

func (f FolderFile) source() (open func() io.Reader, size int64) {
	if f.Open == nil {
		return func() io.Reader { return bytes.NewReader(f.Body) }, int64(len(f.Body))
	}
	return f.Open, f.Size
}

// GetFolder streams a folder's files into the local folder dir, which is made
// if need be. An existing file with the right bytes is kept, so that an interrupted
// download can be resumed; its unfinished parts of these files are removed. If two
// downloads run at once into one folder, one of them may fail; the other's files are then
// complete.
func GetFolder(ctx context.Context, s Store, files map[string]Ref, dir string) error {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		// Names come from a manifest: they must not lead out of the folder.
		if !filepath.IsLocal(filepath.FromSlash(name)) {
			return fmt.Errorf("get folder into %s: the file name %q leads out of it: %w", dir, name, ErrInvalid)
		}
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := removeParts(path); err != nil {
			return fmt.Errorf("get folder into %s: %w", dir, err)
		}
		if sameFile(path, files[name]) {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("get folder into %s: %w", dir, err)
		}
		if err := GetFile(ctx, s, files[name], path); err != nil {
			return fmt.Errorf("get folder into %s: %w", dir, err)
		}
	}
	return nil
}

// removeParts removes what earlier downloads of a file left.
func removeParts(path string) error {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if PartOf(e.Name()) != filepath.Base(path) || !e.Type().IsRegular() {
			continue
		}
		if err := os.Remove(filepath.Join(filepath.Dir(path), e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func sameFile(path string, ref Ref) bool {
	f, size, err := openFile(path)
	if err != nil {
		return false
	}
	defer f.Close()
	if size != ref.Size {
		return false
	}
	digest, err := digestOf(f, size)
	return err == nil && digest == ref.Digest
}
