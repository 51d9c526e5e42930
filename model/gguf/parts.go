package gguf

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sort"
)

// maxParts is the most files that one model may be cut into.
const maxParts = 1024

// OpenFiles is a File that is read from files, and closed after use.
type OpenFiles struct {
	*File
	parts parts
}

// Open reads a file, or one that was cut at any bytes into several, in the order of its parts. See
// Read. The caller closes it.
func Open(paths ...string) (*OpenFiles, error) {
	if len(paths) == 0 || len(paths) > maxParts {
		return nil, fmt.Errorf("read GGUF: %d files, must be from 1 to %d", len(paths), maxParts)
	}
	var ps parts
	for _, path := range paths {
		if err := ps.add(path); err != nil {
			ps.Close()
			return nil, fmt.Errorf("read GGUF: %w", err)
		}
	}
	f, err := Read(ps, ps.size())
	if err != nil {
		ps.Close()
		if len(paths) == 1 {
			return nil, fmt.Errorf("%s: %w", paths[0], err)
		}
		return nil, fmt.Errorf("%s … %s, %d parts: %w", paths[0], paths[len(paths)-1], len(paths), err)
	}
	return &OpenFiles{f, ps}, nil
}

// Close closes the files.
func (f *OpenFiles) Close() error { return f.parts.Close() }

// parts are files that are read as one, one after the other.
type parts []openPart

type openPart struct {
	file *os.File
	end  int64 // of the part, from the beginning of the first
}

// add opens a regular file as the next part. It asks first, because opening a pipe waits for
// somebody to write to it.
func (p *parts) add(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s: not a regular file", path)
	}
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	if info, err = file.Stat(); err != nil {
		file.Close()
		return err
	}
	*p = append(*p, openPart{file, p.size() + info.Size()})
	return nil
}

func (p parts) size() int64 {
	if len(p) == 0 {
		return 0
	}
	return p[len(p)-1].end
}

// ReadAt implements io.ReaderAt.
func (p parts) ReadAt(b []byte, at int64) (n int, err error) {
	for i := sort.Search(len(p), func(i int) bool { return p[i].end > at }); n < len(b) && i < len(p); i++ {
		begin := int64(0)
		if i > 0 {
			begin = p[i-1].end
		}
		want := b[n:min(int64(len(b)), int64(n)+p[i].end-at)]
		got, err := p[i].file.ReadAt(want, at-begin)
		n, at = n+got, at+int64(got)
		if got < len(want) {
			if errors.Is(err, io.EOF) {
				err = fmt.Errorf("%s became shorter: %w", p[i].file.Name(), io.ErrUnexpectedEOF)
			}
			return n, err
		}
	}
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// Close closes the files.
func (p parts) Close() error {
	var errs []error
	for _, part := range slices.Backward(p) {
		errs = append(errs, part.file.Close())
	}
	return errors.Join(errs...)
}
