package safetensors

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
)

// ErrNotFinite is the kind of errors about an element that is NaN or infinite.
var ErrNotFinite = errors.New("a weight is not a finite number")

// CheckFinite reads src, a file of size bytes, through a filter: its bytes are src's, and its error at
// the first tensor of F32, BF16 or F16 with an element that is NaN or infinite is an ErrNotFinite
// that names the tensor and the element. So who reads a file anyway, to hash or to send it, checks it
// at some GB a second. Other dtypes have no such elements.
func CheckFinite(src io.Reader, size int64) io.Reader { return io.TeeReader(src, &finite{size: size}) }

// finite checks the bytes of a file that are written to it.
type finite struct {
	size   int64
	header []byte // what has come of it; nil after it
	order  []Info // by place; nil before the header's end
	at     int64  // bytes of data that have been written
	next   int    // the tensor in order that at is in, or before
	part   []byte // of an element whose end has not come
}

// Write implements io.Writer.
func (f *finite) Write(p []byte) (int, error) {
	written := len(p)
	if f.order == nil {
		f.header = append(f.header, p...)
		if len(f.header) < 8 {
			return written, nil
		}
		n := binary.LittleEndian.Uint64(f.header)
		if n <= MaxHeader && int64(n) <= f.size-8 && int64(len(f.header)) < 8+int64(n) {
			return written, nil
		}
		h, err := readHeader(bytes.NewReader(f.header), f.size)
		if err != nil {
			return 0, err
		}
		f.order = append([]Info{}, h.infos...)
		slices.SortStableFunc(f.order, func(a, b Info) int { return cmp.Or(cmp.Compare(a.lo, b.lo), cmp.Compare(a.hi, b.hi)) })
		p, f.header = f.header[h.base:], nil
	}
	for len(p) > 0 {
		for f.next < len(f.order) && f.order[f.next].hi <= f.at {
			f.next++
		}
		if f.next == len(f.order) {
			break // more than the header describes
		}
		in := f.order[f.next]
		n := min(int64(len(p)), in.hi-f.at)
		if err := f.check(in, p[:n]); err != nil {
			return 0, err
		}
		f.at += n
		p = p[n:]
	}
	return written, nil
}

// check looks at bytes of a tensor, which begin at f.at.
func (f *finite) check(in Info, p []byte) error {
	size := in.DType.Size()
	exponent := exponentOf(in.DType)
	if exponent == 0 {
		return nil
	}
	at := f.at - in.lo // of p in the tensor
	if len(f.part) > 0 {
		need := min(size-len(f.part), len(p))
		f.part = append(f.part, p[:need]...)
		if len(f.part) < size {
			return nil
		}
		if i := notFinite(f.part, size, exponent); i >= 0 {
			return in.notFinite(int(at-1)/size, f.part)
		}
		f.part = f.part[:0]
		p, at = p[need:], at+int64(need)
	}
	whole := len(p) / size * size
	if i := notFinite(p[:whole], size, exponent); i >= 0 {
		return in.notFinite(int(at)/size+i, p[i*size:(i+1)*size])
	}
	f.part = append(f.part, p[whole:]...)
	return nil
}

// exponentOf is the mask of a dtype's exponent, which is all ones for what is not finite; 0 for
// integers.
func exponentOf(d DType) uint64 {
	switch d {
	case Float32:
		return 0x7f800000
	case BFloat16:
		return 0x7f80
	case Float16:
		return 0x7c00
	}
	return 0
}

// notFinite is the number of the first element that is not finite, or -1. Eight bytes are looked at
// at once: the bits of an exponent that are 0 are added to all ones below the sign, which sets the sign
// unless they are none.
func notFinite(b []byte, size int, exponent uint64) int {
	mask, ones := exponent, uint64(1)<<(8*size-1)-1
	for width := 8 * size; width < 64; width *= 2 {
		mask |= mask << width
		ones |= ones << width
	}
	signs := ^(ones)
	at := 0
	for ; at+8 <= len(b); at += 8 {
		zeros := ^binary.LittleEndian.Uint64(b[at:]) & mask
		if (zeros+ones)&signs != signs {
			break
		}
	}
	for ; at+size <= len(b); at += size {
		var x uint64
		for i := size - 1; i >= 0; i-- {
			x = x<<8 | uint64(b[at+i])
		}
		if x&exponent == exponent {
			return at / size
		}
	}
	return -1
}

// notFinite is the error about element i, whose bytes are b.
func (in Info) notFinite(i int, b []byte) error {
	place := make([]int, len(in.Shape))
	for d, rest := len(in.Shape)-1, i; d >= 0; d-- {
		place[d] = rest % in.Shape[d]
		rest /= in.Shape[d]
	}
	var v [1]float32
	if err := decodeFloats(v[:], b, in.DType); err != nil {
		return err
	}
	return fmt.Errorf("%w: tensor %q (%s) is %v at %v: take an earlier checkpoint, or download the model again",
		ErrNotFinite, in.Name, in.DType, v[0], place)
}
