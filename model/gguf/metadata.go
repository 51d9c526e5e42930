package gguf

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
)

// Metadata are the typed values of a file by their keys. A value is a uint64 or an int64 (of an
// integer of any width), a float32, a float64, a bool, a string, or a list of one of these.
type Metadata map[string]any

// Types of values, as numbered in the file.
const (
	typeUint8 = iota
	typeInt8
	typeUint16
	typeInt16
	typeUint32
	typeInt32
	typeFloat32
	typeBool
	typeString
	typeArray
	typeUint64
	typeInt64
	typeFloat64
)

// widths are the sizes in bytes of values that are numbers.
var widths = map[uint32]uint64{
	typeUint8: 1, typeInt8: 1, typeBool: 1, typeUint16: 2, typeInt16: 2, typeUint32: 4, typeInt32: 4, typeFloat32: 4,
	typeUint64: 8, typeInt64: 8, typeFloat64: 8,
}

const (
	alignmentKey     = "general.alignment"
	defaultAlignment = 32
	maxAlignment     = 1 << 20
)

// readPair reads a key and its value.
func (m Metadata) readPair(r *reader) error {
	key, err := r.text(maxKey)
	if err != nil {
		return fmt.Errorf("key: %w", err)
	}
	if key == "" {
		return fmt.Errorf("%w: an empty key", ErrFormat)
	}
	if _, twice := m[key]; twice {
		return fmt.Errorf("%w: key %q stands there twice", ErrFormat, key)
	}
	kind, err := r.uint32()
	if err != nil {
		return fmt.Errorf("%q: %w", key, err)
	}
	if kind == typeArray {
		m[key], err = readArray(r)
	} else {
		m[key], err = readValue(r, kind)
	}
	if err != nil {
		return fmt.Errorf("%q: %w", key, err)
	}
	return nil
}

// readValue reads a value that is no array.
func readValue(r *reader, kind uint32) (any, error) {
	if kind == typeString {
		return r.text(maxText)
	}
	width, known := widths[kind]
	if !known {
		return nil, fmt.Errorf("%w: a value of type %d, which does not exist", ErrFormat, kind)
	}
	b, err := r.bytes(width)
	if err != nil {
		return nil, err
	}
	return decodeValue(b, kind)
}

// decodeValue decodes a number.
func decodeValue(b []byte, kind uint32) (any, error) {
	switch kind {
	case typeUint8:
		return uint64(b[0]), nil
	case typeInt8:
		return int64(int8(b[0])), nil
	case typeUint16:
		return uint64(binary.LittleEndian.Uint16(b)), nil
	case typeInt16:
		return int64(int16(binary.LittleEndian.Uint16(b))), nil
	case typeUint32:
		return uint64(binary.LittleEndian.Uint32(b)), nil
	case typeInt32:
		return int64(int32(binary.LittleEndian.Uint32(b))), nil
	case typeUint64:
		return binary.LittleEndian.Uint64(b), nil
	case typeInt64:
		return int64(binary.LittleEndian.Uint64(b)), nil
	case typeFloat32:
		return math.Float32frombits(binary.LittleEndian.Uint32(b)), nil
	case typeFloat64:
		return math.Float64frombits(binary.LittleEndian.Uint64(b)), nil
	case typeBool:
		if b[0] > 1 {
			return nil, fmt.Errorf("%w: a boolean of %d", ErrFormat, b[0])
		}
		return b[0] == 1, nil
	}
	return nil, fmt.Errorf("%w: a value of type %d, which does not exist", ErrFormat, kind)
}

// readArray reads an array as a slice of its elements' type.
func readArray(r *reader) (any, error) {
	kind, err := r.uint32()
	if err != nil {
		return nil, err
	}
	n, err := r.uint64()
	if err != nil {
		return nil, err
	}
	if n > maxArray {
		return nil, fmt.Errorf("%w: an array of %d elements, at most %d are read", ErrFormat, n, maxArray)
	}
	switch kind {
	case typeArray:
		return nil, fmt.Errorf("%w: an array of arrays", ErrUnsupported)
	case typeString:
		if err := r.room(8 * n); err != nil { // each has a length
			return nil, err
		}
		return readElements[string](r, kind, n)
	}
	width, known := widths[kind]
	if !known {
		return nil, fmt.Errorf("%w: an array of type %d, which does not exist", ErrFormat, kind)
	}
	if err := r.room(width * n); err != nil {
		return nil, err
	}
	switch kind {
	case typeFloat32:
		return readElements[float32](r, kind, n)
	case typeFloat64:
		return readElements[float64](r, kind, n)
	case typeBool:
		return readElements[bool](r, kind, n)
	case typeUint8, typeUint16, typeUint32, typeUint64:
		return readElements[uint64](r, kind, n)
	}
	return readElements[int64](r, kind, n)
}

func readElements[T any](r *reader, kind uint32, n uint64) ([]T, error) {
	out := make([]T, n)
	for i := range out {
		v, err := readValue(r, kind)
		if err != nil {
			return nil, fmt.Errorf("element %d: %w", i, err)
		}
		out[i] = v.(T)
	}
	return out, nil
}

// alignment is what every tensor's place is a multiple of.
func (m Metadata) alignment() (int64, error) {
	v, ok := m[alignmentKey]
	if !ok {
		return defaultAlignment, nil
	}
	n, ok := v.(uint64)
	if !ok || n == 0 || n&(n-1) != 0 || n > maxAlignment {
		return 0, fmt.Errorf("%w: %s is %v, must be a power of two up to %d", ErrFormat, alignmentKey, v, maxAlignment)
	}
	return int64(n), nil
}

// Keys lists the keys, sorted.
func (m Metadata) Keys() []string { return slices.Sorted(maps.Keys(m)) }

// Has reports whether there is a key.
func (m Metadata) Has(key string) bool { _, ok := m[key]; return ok }

// Int returns an integer that is not negative and below 2^31.
func (m Metadata) Int(key string) (int, error) {
	switch v := m[key].(type) {
	case uint64:
		if v <= math.MaxInt32 {
			return int(v), nil
		}
	case int64:
		if v >= 0 && v <= math.MaxInt32 {
			return int(v), nil
		}
	}
	return 0, m.wrong(key, "an integer from 0 to 2^31 - 1")
}

// Ints returns a list of integers.
func (m Metadata) Ints(key string) ([]int64, error) {
	switch v := m[key].(type) {
	case []int64:
		return v, nil
	case []uint64:
		out := make([]int64, len(v))
		for i, x := range v {
			if x > math.MaxInt64 {
				return nil, m.wrong(key, "a list of integers below 2^63")
			}
			out[i] = int64(x)
		}
		return out, nil
	}
	return nil, m.wrong(key, "a list of integers")
}

// Float32 returns a float32.
func (m Metadata) Float32(key string) (float32, error) {
	v, ok := m[key].(float32)
	if !ok {
		return 0, m.wrong(key, "a float32")
	}
	return v, nil
}

// Bool returns a boolean.
func (m Metadata) Bool(key string) (bool, error) {
	v, ok := m[key].(bool)
	if !ok {
		return false, m.wrong(key, "a boolean")
	}
	return v, nil
}

// String returns a text.
func (m Metadata) String(key string) (string, error) {
	v, ok := m[key].(string)
	if !ok {
		return "", m.wrong(key, "a text")
	}
	return v, nil
}

// Strings returns a list of texts.
func (m Metadata) Strings(key string) ([]string, error) {
	v, ok := m[key].([]string)
	if !ok {
		return nil, m.wrong(key, "a list of texts")
	}
	return v, nil
}

// wrong is the error about a value that is missing or not what is wanted.
func (m Metadata) wrong(key, want string) error {
	v, ok := m[key]
	if !ok {
		return fmt.Errorf("%w: the metadata lack %q", ErrFormat, key)
	}
	return fmt.Errorf("%w: metadata %q is %.60q, must be %s", ErrFormat, key, fmt.Sprint(v), want)
}
