package safetensors

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
)

// F32 makes a float32 tensor. It panics if the shape does not have len(v) elements, which
// is a mistake of the program and not of its input.
func F32(name string, shape []int, v []float32) Tensor {
	mustFit(name, shape, len(v))
	return Tensor{Name: name, DType: Float32, Shape: shape, Data: encodeFloats(make([]byte, 4*len(v)), v)}
}

// I32 makes an int32 tensor; it panics like F32.
func I32(name string, shape []int, v []int32) Tensor {
	mustFit(name, shape, len(v))
	data := make([]byte, 4*len(v))
	for i, x := range v {
		binary.LittleEndian.PutUint32(data[4*i:], uint32(x))
	}
	return Tensor{Name: name, DType: Int32, Shape: shape, Data: data}
}

func mustFit(name string, shape []int, n int) {
	if want, err := Elements(shape); err != nil || want != n {
		panic(fmt.Sprintf("tensor %q: shape %v for %d values", name, shape, n))
	}
}

// Floats reads the bytes of a float32 tensor with the values v, which must not change
// meanwhile.
func Floats(v []float32) io.Reader { return &floatReader{v: v} }

type floatReader struct {
	v    []float32
	rest []byte // encoded, and not read yet
	room [4096]byte
}

// Read implements io.Reader.
func (r *floatReader) Read(p []byte) (int, error) {
	done := 0
	for done < len(p) {
		if len(r.rest) == 0 {
			if len(r.v) == 0 {
				break
			}
			n := min(len(r.v), len(r.room)/4)
			r.rest = encodeFloats(r.room[:4*n], r.v[:n])
			r.v = r.v[n:]
		}
		n := copy(p[done:], r.rest)
		r.rest = r.rest[n:]
		done += n
	}
	if done == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return done, nil
}

func encodeFloats(to []byte, v []float32) []byte {
	for i, x := range v {
		binary.LittleEndian.PutUint32(to[4*i:], math.Float32bits(x))
	}
	return to
}

// Float32s decodes an F32, BF16 or F16 tensor; the conversion of the two half types is
// exact. Any other dtype is an ErrDType.
func (t Tensor) Float32s() ([]float32, error) {
	if err := t.check(); err != nil {
		return nil, err
	}
	out := make([]float32, len(t.Data)/t.DType.Size())
	if err := decodeFloats(out, t.Data, t.DType); err != nil {
		return nil, fmt.Errorf("tensor %q: %w", t.Name, err)
	}
	return out, nil
}

// decodeFloats decodes bytes of a dtype into the first elements of out.
func decodeFloats(out []float32, b []byte, dtype DType) error {
	switch dtype {
	case Float32:
		for i := range len(b) / 4 {
			out[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
		}
	case BFloat16:
		for i := range len(b) / 2 {
			out[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(b[2*i:])) << 16)
		}
	case Float16:
		for i := range len(b) / 2 {
			out[i] = Half(binary.LittleEndian.Uint16(b[2*i:]))
		}
	default:
		return fmt.Errorf("%w: %s is not a float type", ErrDType, dtype)
	}
	return nil
}

// Half converts an IEEE 754 binary16 value, exactly.
func Half(h uint16) float32 {
	sign := uint32(h>>15) << 31
	exp := uint32(h>>10) & 0x1f
	frac := uint32(h) & 0x3ff
	switch exp {
	case 0: // zero or subnormal: frac · 2^-24 is exact in float32
		return math.Float32frombits(sign | math.Float32bits(float32(frac)*(1.0/(1<<24))))
	case 0x1f:
		return math.Float32frombits(sign | 0xff<<23 | frac<<13)
	}
	return math.Float32frombits(sign | (exp+112)<<23 | frac<<13)
}

// Int32s decodes an I32 tensor. Any other dtype is an ErrDType.
func (t Tensor) Int32s() ([]int32, error) {
	return integers(t, Int32, 4, func(b []byte) int32 { return int32(binary.LittleEndian.Uint32(b)) })
}

// integers decodes a tensor of a dtype whose values have size bytes each.
func integers[T any](t Tensor, want DType, size int, decode func([]byte) T) ([]T, error) {
	if err := t.check(); err != nil {
		return nil, err
	}
	if t.DType != want {
		return nil, fmt.Errorf("%w: tensor %q is %s, not %s", ErrDType, t.Name, t.DType, want)
	}
	out := make([]T, len(t.Data)/size)
	for i := range out {
		out[i] = decode(t.Data[size*i:])
	}
	return out, nil
}
