package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// entry is a file of the archive: with a body, or one that is read from a path.
type entry struct {
	name string // below the archive's folder, with slashes
	mode int64
	body []byte
	path string
	// size and digest (SHA-256, lower-case hex) are filled by measure.
	size   int64
	digest string
}

// measure reads the file once, for its size and its digest.
func (e *entry) measure() error {
	if e.path == "" {
		e.size, e.digest = int64(len(e.body)), hashOf(e.body)
		return nil
	}
	f, err := os.Open(e.path)
	if err != nil {
		return fmt.Errorf("open %s for the archive: %w", e.name, err)
	}
	defer f.Close()
	hash := sha256.New()
	if e.size, err = io.Copy(hash, f); err != nil {
		return fmt.Errorf("read %s for the archive: %w", e.name, err)
	}
	e.digest = hex.EncodeToString(hash.Sum(nil))
	return nil
}

// sums are the lines of SHA256SUMS, which sha256sum -c reads.
func sums(entries []entry) []byte {
	var out strings.Builder
	for _, e := range entries {
		out.WriteString(sumLine(e.digest, e.name))
	}
	return []byte(out.String())
}

func sumLine(digest, name string) string { return digest + "  " + name + "\n" }

func hashOf(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

// sorted orders entries by name; a name that stands twice is an error.
func sorted(entries []entry) error {
	slices.SortFunc(entries, func(a, b entry) int { return cmp.Compare(a.name, b.name) })
	for i, e := range entries[1:] {
		if e.name == entries[i].name {
			return fmt.Errorf("the archive has %s twice", e.name)
		}
	}
	return nil
}

// writeArchive writes the entries, in their order, below one folder into path, which appears when it is whole. It returns the SHA-256 and
// the size in bytes of the archive. Neither times nor owners enter it.
func writeArchive(ctx context.Context, path, folder string, entries []entry, progress io.Writer) (sum string, size int64, err error) {
	f, err := os.Create(path + ".partial")
	if err != nil {
		return "", 0, fmt.Errorf("create the archive: %w", err)
	}
	defer os.Remove(f.Name()) // it has another name by then, unless something failed
	defer f.Close()
	hash := sha256.New()
	var all int64
	for _, e := range entries {
		all += e.size
	}
	told := &teller{out: progress, all: all, next: time.Now().Add(every)}
	if err := pack(ctx, io.MultiWriter(f, hash), folder, entries, told); err != nil {
		return "", 0, err
	}
	info, err := f.Stat()
	if err != nil {
		return "", 0, fmt.Errorf("look at the archive: %w", err)
	}
	if err := f.Close(); err != nil {
		return "", 0, fmt.Errorf("write the archive: %w", err)
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return "", 0, fmt.Errorf("put the archive in its place: %w", err)
	}
	return hex.EncodeToString(hash.Sum(nil)), info.Size(), nil
}

// pack writes a gzipped tar of the entries. told gets what was read.
func pack(ctx context.Context, w io.Writer, folder string, entries []entry, told io.Writer) error {
	z := gzip.NewWriter(w) // its header has no name and no time
	t := tar.NewWriter(z)
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		h := &tar.Header{Typeflag: tar.TypeReg, Name: folder + "/" + e.name, Mode: e.mode, Size: e.size, ModTime: time.Unix(0, 0)}
		if err := t.WriteHeader(h); err != nil {
			return fmt.Errorf("archive %s: %w", e.name, err)
		}
		body, err := e.open()
		if err != nil {
			return err
		}
		_, err = io.Copy(io.MultiWriter(t, told), body)
		body.Close()
		if err != nil {
			return fmt.Errorf("archive %s: %w", e.name, err)
		}
	}
	if err := t.Close(); err != nil {
		return fmt.Errorf("end the archive: %w", err)
	}
	if err := z.Close(); err != nil {
		return fmt.Errorf("end the archive: %w", err)
	}
	return nil
}

func (e *entry) open() (io.ReadCloser, error) {
	if e.path == "" {
		return io.NopCloser(bytes.NewReader(e.body)), nil
	}
	f, err := os.Open(e.path)
	if err != nil {
		return nil, fmt.Errorf("open %s for the archive: %w", e.name, err)
	}
	return f, nil
}

// every is how often the packing says how far it is.
const every = 3 * time.Second

// teller says how much was packed.
type teller struct {
	out       io.Writer
	done, all int64
	next      time.Time
}

func (t *teller) Write(b []byte) (int, error) {
	t.done += int64(len(b))
	if now := time.Now(); now.After(t.next) {
		t.next = now.Add(every)
		fmt.Fprintf(t.out, "    packed %d of %d MB\n", t.done/1e6, t.all/1e6)
	}
	return len(b), nil
}
