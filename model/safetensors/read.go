package safetensors

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/reprise-rl/reprise/infra/filekind"
)

// File is a decoded file: its tensors sorted by name.
type File struct {
	Tensors  []Tensor
	Metadata map[string]string
}

// Get finds a tensor by name.
func (f *File) Get(name string) (Tensor, bool) {
	i, ok := slices.BinarySearchFunc(f.Tensors, name, func(t Tensor, name string) int { return cmp.Compare(t.Name, name) })
	if !ok {
		return Tensor{}, false
	}
	return f.Tensors[i], true
}

// Decode reads a whole file from memory. The tensors' data are slices of b. Errors about
// the contents are ErrFormat or ErrDType and name the tensor.
func Decode(b []byte) (*File, error) {
	h, err := readHeader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return nil, fmt.Errorf("read safetensors: %w", err)
	}
	f := &File{Metadata: h.metadata, Tensors: make([]Tensor, len(h.infos))}
	for i, in := range h.infos {
		lo, hi := h.base+in.lo, h.base+in.hi
		f.Tensors[i] = Tensor{Name: in.Name, DType: in.DType, Shape: in.Shape, Data: b[lo:hi:hi]}
	}
	return f, nil
}

// header is what stands before the data.
type header struct {
	metadata map[string]string // nil if there is none
	infos    []Info            // by name
	base     int64             // bytes before the data
}

// readHeader reads and checks the header of a file of size bytes from its beginning.
func readHeader(src io.Reader, size int64) (header, error) {
	prefix := make([]byte, min(size, 8))
	if _, err := io.ReadFull(src, prefix); err != nil {
		return header{}, fmt.Errorf("header: %w", err)
	}
	if size < 8 {
		return header{}, mistaken(prefix, nil, src, size, "%d bytes, the header's length alone has 8 (copy it again)", size)
	}
	n := binary.LittleEndian.Uint64(prefix)
	if n > MaxHeader {
		return header{}, mistaken(prefix, nil, src, size, "header of %d bytes, at most %d are read: the file is of another kind, or damaged",
			n, MaxHeader)
	}
	if int64(n) > size-8 {
		return header{}, mistaken(prefix, nil, src, size, "the file is cut off: header of %d bytes in a file of %d (copy it again)", n, size)
	}
	raw := make([]byte, n)
	if _, err := io.ReadFull(src, raw); err != nil {
		return header{}, fmt.Errorf("header: %w", err)
	}
	if n == 0 || raw[0] != '{' {
		return header{}, mistaken(prefix, raw, src, size, "header is not a JSON object")
	}
	h := header{base: 8 + int64(n)}
	return h, h.parse(raw, size-h.base)
}

// mistaken is the error about a file whose first bytes are no header: prefix, then raw, then what is
// left of src. It says what the file is, or else the format.
func mistaken(prefix, raw []byte, src io.Reader, size int64, format string, args ...any) error {
	head := slices.Concat(prefix, raw[:min(len(raw), filekind.Head)])
	if more := min(size, filekind.Head) - int64(len(head)); more > 0 {
		rest, err := io.ReadAll(io.LimitReader(src, more))
		if err != nil {
			return fmt.Errorf("header: %w", err)
		}
		head = append(head, rest...)
	}
	if found := filekind.Mistaken(head, size); found != nil {
		return fmt.Errorf("%w: %w", ErrFormat, found)
	}
	if text := bytes.TrimSpace(head); len(text) > 1 && text[0] == '{' && utf8.Valid(text) {
		return fmt.Errorf("%w: the file is JSON and has no tensors: look whether two files were confused", ErrFormat)
	}
	return fmt.Errorf("%w: %s", ErrFormat, fmt.Sprintf(format, args...))
}

// parse fills the header from its JSON; data is the number of bytes after it.
func (h *header) parse(raw []byte, data int64) error {
	if !utf8.Valid(raw) {
		return fmt.Errorf("%w: header is not UTF-8", ErrFormat)
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	var described int64 // bytes of data
	// The header is read token by token, because a map would hide duplicate names.
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return fmt.Errorf("%w: header is not a JSON object", ErrFormat)
	}
	seen := map[string]bool{}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return fmt.Errorf("%w: header: %v", ErrFormat, err)
		}
		name := t.(string) // an object's keys are strings, or Token fails
		if seen[name] {
			return fmt.Errorf("%w: tensor %q twice", ErrFormat, name)
		}
		seen[name] = true
		if name == metadataKey {
			if err := d.Decode(&h.metadata); err != nil {
				return fmt.Errorf("%w: metadata: %v", ErrFormat, err)
			}
			continue
		}
		var e struct {
			DType   *DType  `json:"dtype"`
			Shape   []int64 `json:"shape"`
			Offsets []int64 `json:"data_offsets"`
		}
		if err := d.Decode(&e); err != nil {
			return fmt.Errorf("%w: tensor %q: %v", ErrFormat, name, err)
		}
		if e.DType == nil || e.Shape == nil || len(e.Offsets) != 2 {
			return fmt.Errorf("%w: tensor %q needs dtype, shape and two data_offsets", ErrFormat, name)
		}
		in, err := check(name, *e.DType, e.Shape, e.Offsets[0], e.Offsets[1])
		if err != nil {
			return err
		}
		h.infos = append(h.infos, in)
		described = max(described, in.hi)
	}
	if _, err := d.Token(); err != nil {
		return fmt.Errorf("%w: header: %v", ErrFormat, err)
	}
	if rest := bytes.Trim(raw[d.InputOffset():], " "); len(rest) > 0 {
		return fmt.Errorf("%w: %d bytes after the header's JSON", ErrFormat, len(rest))
	}
	if described > data {
		return fmt.Errorf("%w: the file is cut off: its header describes %d bytes of tensors, %d are there (copy it again)",
			ErrFormat, described, data)
	}
	return h.checkLayout(data)
}

func check(name string, dtype DType, shape []int64, lo, hi int64) (Info, error) {
	size := dtype.Size()
	if size == 0 {
		return Info{}, fmt.Errorf("%w: tensor %q has %q", ErrDType, name, dtype)
	}
	dims := make([]int, len(shape))
	for i, d := range shape {
		if d < 0 || d > math.MaxInt {
			return Info{}, fmt.Errorf("%w: tensor %q has shape %v", ErrFormat, name, shape)
		}
		dims[i] = int(d)
	}
	n, err := Elements(dims)
	if err != nil {
		return Info{}, fmt.Errorf("tensor %q: %w", name, err)
	}
	if lo < 0 || hi < lo {
		return Info{}, fmt.Errorf("%w: tensor %q at [%d, %d)", ErrFormat, name, lo, hi)
	}
	if int64(n) != (hi-lo)/int64(size) || (hi-lo)%int64(size) != 0 {
		return Info{}, fmt.Errorf("%w: tensor %q of shape %v and dtype %s has %d bytes", ErrFormat, name, shape, dtype, hi-lo)
	}
	return Info{Name: name, DType: dtype, Shape: dims, lo: lo, hi: hi}, nil
}

// checkLayout returns an error unless the tensors cover the data exactly, without overlaps
// or gaps.
func (h *header) checkLayout(data int64) error {
	slices.SortFunc(h.infos, func(a, b Info) int {
		return cmp.Or(cmp.Compare(a.lo, b.lo), cmp.Compare(a.hi, b.hi), cmp.Compare(a.Name, b.Name))
	})
	var at int64
	for _, in := range h.infos {
		if in.lo < at {
			return fmt.Errorf("%w: tensor %q overlaps the one before it", ErrFormat, in.Name)
		}
		if in.lo > at {
			return fmt.Errorf("%w: %d bytes before tensor %q belong to none", ErrFormat, in.lo-at, in.Name)
		}
		at = in.hi
	}
	if at != data {
		return fmt.Errorf("%w: %d bytes after the last tensor belong to none", ErrFormat, data-at)
	}
	slices.SortFunc(h.infos, func(a, b Info) int { return cmp.Compare(a.Name, b.Name) })
	return nil
}
