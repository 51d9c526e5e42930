// Package safetensors reads and writes the safetensors format: a JSON header, followed by
// named dense tensors, little endian.
//
// The reader is strict, because files come from downloads or buckets. It checks everything
// in the header before use: sizes, offsets, shapes and names must agree with each other
// and with the length of the data, and every error names the tensor. The writer is
// deterministic: the same tensors give the same bytes, in whatever order they are given.
// Small files are encoded and decoded whole; a Layout and a Stream write and read files of
// any size, with one tensor in memory at a time.
package safetensors

import (
	"errors"
	"fmt"
	"math"
	"strings"
)

// MaxHeader is the largest header read or written, 32 MB, a third of the reference implementation's: 200,000 tensors have one. Reading a
// header takes some five times its size.
const MaxHeader = 32_000_000

var (
	// ErrFormat is the kind of every error about a file's contents.
	ErrFormat = errors.New("invalid safetensors")
	// ErrDType is the kind of errors about a dtype that is not supported or not the
	// requested one.
	ErrDType = errors.New("unsupported tensor dtype")
)

// DType is a tensor's element type, as written in the header.
type DType string

// The supported element types.
const (
	Float32  DType = "F32"
	BFloat16 DType = "BF16"
	Float16  DType = "F16"
	Int32    DType = "I32"
	Int64    DType = "I64"
	Uint32   DType = "U32"
	Uint8    DType = "U8"
)

// Size is the size of an element in bytes, 0 for a type that is not supported.
func (d DType) Size() int {
	switch d {
	case Float32, Int32, Uint32:
		return 4
	case BFloat16, Float16:
		return 2
	case Int64:
		return 8
	case Uint8:
		return 1
	}
	return 0
}

// Tensor is one named tensor. Data holds its elements row by row, little
// endian; its length is always DType.Size() times the product of Shape.
type Tensor struct {
	Name  string
	DType DType
	Shape []int
	Data  []byte
}

// Info is what a file's header says of one tensor.
type Info struct {
	Name   string
	DType  DType
	Shape  []int
	lo, hi int64 // bytes from the end of the header
}

// Bytes is the length of the tensor's data: DType.Size() times the product of Shape.
func (in Info) Bytes() int64 { return in.hi - in.lo }

// Elements is the number of elements the shape has: 1 for a scalar. It returns
// an error for a negative dimension or a product that overflows.
func Elements(shape []int) (int, error) {
	n := 1
	for _, d := range shape {
		if d < 0 {
			return 0, fmt.Errorf("%w: negative dimension in shape %v", ErrFormat, shape)
		}
		if d == 0 {
			n = 0
			continue
		}
		if n > math.MaxInt/d {
			return 0, fmt.Errorf("%w: shape %v overflows", ErrFormat, shape)
		}
		n *= d
	}
	return n, nil
}

// check returns an error if the tensor's data do not fit its shape.
func (t Tensor) check() error {
	n, err := (Info{Name: t.Name, DType: t.DType, Shape: t.Shape}).bytes()
	if err != nil {
		return err
	}
	if n != int64(len(t.Data)) {
		return fmt.Errorf("%w: tensor %q of shape %v and dtype %s has %d bytes", ErrFormat, t.Name, t.Shape, t.DType, len(t.Data))
	}
	return nil
}

// bytes computes the length of the tensor's data, and returns an error if the tensor
// cannot be written.
func (in Info) bytes() (int64, error) {
	if in.Name == metadataKey {
		return 0, fmt.Errorf("%w: tensor name %q is reserved", ErrFormat, in.Name)
	}
	if strings.ToValidUTF8(in.Name, "") != in.Name {
		return 0, fmt.Errorf("%w: tensor name %q is not UTF-8", ErrFormat, in.Name)
	}
	size := in.DType.Size()
	if size == 0 {
		return 0, fmt.Errorf("%w: tensor %q has %q", ErrDType, in.Name, in.DType)
	}
	n, err := Elements(in.Shape)
	if err != nil {
		return 0, fmt.Errorf("tensor %q: %w", in.Name, err)
	}
	if n > math.MaxInt/size {
		return 0, fmt.Errorf("%w: tensor %q of shape %v overflows", ErrFormat, in.Name, in.Shape)
	}
	return int64(n) * int64(size), nil
}
