package gguf

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
)

// Tensor is an entry of a file's list of tensors.
type Tensor struct {
	Name string
	// Shape has the outermost dimension first, as NumPy and safetensors have it; the file lists
	// the innermost first. A matrix is [rows, columns].
	Shape []int
	Kind  Kind

	offset int64 // from where the numbers begin
}

const (
	maxDims = 4
	maxDim  = 1 << 31
)

// Columns is the innermost dimension. Quantised blocks never cross a row.
func (t Tensor) Columns() int { return t.Shape[len(t.Shape)-1] }

// Rows is the number of rows of Columns elements.
func (t Tensor) Rows() int {
	n := 1
	for _, d := range t.Shape[:len(t.Shape)-1] {
		n *= d
	}
	return n
}

// bytes is the length of a tensor's numbers in the file.
func (t Tensor) bytes() int64 { return int64(t.Rows()) * t.rowBytes() }

func (t Tensor) rowBytes() int64 {
	k := kinds[t.Kind]
	return int64(t.Columns() / k.block * k.bytes)
}

// readTensor reads an entry and checks it by itself.
func readTensor(r *reader) (Tensor, error) {
	name, err := r.text(maxName)
	if err != nil {
		return Tensor{}, fmt.Errorf("name: %w", err)
	}
	t := Tensor{Name: name}
	fail := func(err error) (Tensor, error) { return Tensor{}, fmt.Errorf("%q: %w", name, err) }
	dims, err := r.uint32()
	if err != nil {
		return fail(err)
	}
	if dims < 1 || dims > maxDims {
		return fail(fmt.Errorf("%w: %d dimensions, must be from 1 to %d", ErrFormat, dims, maxDims))
	}
	elements := int64(1)
	for range dims {
		d, err := r.uint64()
		if err != nil {
			return fail(err)
		}
		if d < 1 || d > maxDim || elements > math.MaxInt64/64/int64(d) { // a few bytes for each still fit
			return fail(fmt.Errorf("%w: a dimension of %d after %v", ErrFormat, d, t.Shape))
		}
		elements *= int64(d)
		t.Shape = append(t.Shape, int(d))
	}
	slices.Reverse(t.Shape)
	kind, err := r.uint32()
	if err != nil {
		return fail(err)
	}
	t.Kind = Kind(kind)
	if _, known := kinds[t.Kind]; !known {
		return fail(fmt.Errorf("%w: numbers of kind %s, only %s are read", ErrUnsupported, t.Kind, supported()))
	}
	if block := kinds[t.Kind].block; t.Columns()%block != 0 {
		return fail(fmt.Errorf("%w: rows of %d numbers, not a multiple of %s's blocks of %d", ErrFormat, t.Columns(), t.Kind, block))
	}
	offset, err := r.uint64()
	if err != nil {
		return fail(err)
	}
	if offset > math.MaxInt64/2 {
		return fail(fmt.Errorf("%w: offset %d", ErrFormat, offset))
	}
	t.offset = int64(offset)
	return t, nil
}

// checkPlaces checks the tensors' places together: aligned, apart from each other, inside the
// file, and the file's end after the last one.
func (f *File) checkPlaces(size, alignment int64) error {
	names := map[string]bool{}
	for _, t := range f.Tensors {
		if names[t.Name] {
			return fmt.Errorf("%w: two tensors are called %q", ErrFormat, t.Name)
		}
		names[t.Name] = true
	}
	byPlace := slices.Clone(f.Tensors)
	slices.SortStableFunc(byPlace, func(a, b Tensor) int { return cmp.Compare(a.offset, b.offset) })
	end, before := int64(0), ""
	for _, t := range byPlace {
		if t.offset%alignment != 0 {
			return fmt.Errorf("%w: tensor %q is at offset %d, not a multiple of %d", ErrFormat, t.Name, t.offset, alignment)
		}
		if t.offset < end {
			return fmt.Errorf("%w: tensors %q and %q overlap", ErrFormat, before, t.Name)
		}
		if left := size - f.data - t.offset; t.bytes() > left {
			return fmt.Errorf("%w: the file is cut: tensor %q has %d bytes at offset %d, %d are there: is a part missing?",
				ErrFormat, t.Name, t.bytes(), t.offset, max(0, left))
		}
		end, before = t.offset+t.bytes(), t.Name
	}
	if more := size - f.data - end; more >= alignment {
		return fmt.Errorf("%w: %d bytes after the last tensor: was a part given twice?", ErrFormat, more)
	}
	return nil
}

// Tensor finds a tensor by its name, and reports whether there is one.
func (f *File) Tensor(name string) (Tensor, bool) {
	i := slices.IndexFunc(f.Tensors, func(t Tensor) bool { return t.Name == name })
	if i < 0 {
		return Tensor{}, false
	}
	return f.Tensors[i], true
}

// ReadRows dequantises the rows of a tensor from row first on, as many as into holds. The length
// of into is a multiple of t.Columns(), and the rows are inside the tensor.
func (f *File) ReadRows(t Tensor, first int, into []float32) error {
	n := len(into) / t.Columns()
	if len(into)%t.Columns() != 0 || first < 0 || first+n > t.Rows() {
		return fmt.Errorf("read tensor %q: %d numbers from row %d on are not rows of shape %v", t.Name, len(into), first, t.Shape)
	}
	raw := make([]byte, int64(n)*t.rowBytes())
	at := f.data + t.offset + int64(first)*t.rowBytes()
	if _, err := io.ReadFull(io.NewSectionReader(f.src, at, int64(len(raw))), raw); err != nil {
		return fmt.Errorf("read tensor %q: %w", t.Name, err)
	}
	t.Kind.Dequantize(into, raw)
	return nil
}
