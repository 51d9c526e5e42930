package safetensors

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"slices"
)

const metadataKey = "__metadata__"

// entry is a tensor's record in the header.
type entry struct {
	DType   DType    `json:"dtype"`
	Shape   []int    `json:"shape"`
	Offsets [2]int64 `json:"data_offsets"`
}

// Encode returns the file that Write writes.
func Encode(ts []Tensor, metadata map[string]string) ([]byte, error) {
	var b bytes.Buffer
	if err := Write(&b, ts, metadata); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// Write writes a file with the tensors to w: the header, padded with spaces to a multiple
// of 8 bytes, then the data in the order of the names. metadata may be nil. If two tensors
// have the same name, a name is reserved, or data does not fit the shape, Write returns an
// error before it writes anything.
func Write(w io.Writer, ts []Tensor, metadata map[string]string) error {
	sorted := slices.Clone(ts)
	slices.SortStableFunc(sorted, func(a, b Tensor) int { return cmp.Compare(a.Name, b.Name) })
	for i, t := range sorted {
		if err := t.check(); err != nil {
			return fmt.Errorf("write safetensors: %w", err)
		}
		if i > 0 && sorted[i-1].Name == t.Name {
			return fmt.Errorf("write safetensors: %w: two tensors named %q", ErrFormat, t.Name)
		}
	}
	header, err := header(sorted, metadata)
	if err != nil {
		return fmt.Errorf("write safetensors: %w", err)
	}
	if _, err := w.Write(header); err != nil {
		return fmt.Errorf("write safetensors header: %w", err)
	}
	for _, t := range sorted {
		if _, err := w.Write(t.Data); err != nil {
			return fmt.Errorf("write tensor %q: %w", t.Name, err)
		}
	}
	return nil
}

// header returns the length and the padded JSON. It does not use one json.Marshal, so that
// metadata comes first and the tensors follow in the order of their data.
func header(sorted []Tensor, metadata map[string]string) ([]byte, error) {
	var b bytes.Buffer
	b.Write(make([]byte, 8))
	b.WriteByte('{')
	first := true
	field := func(key string, value any) error {
		if !first {
			b.WriteByte(',')
		}
		first = false
		k, err := json.Marshal(key)
		if err != nil {
			return err
		}
		v, err := json.Marshal(value)
		if err != nil {
			return err
		}
		b.Write(k)
		b.WriteByte(':')
		b.Write(v)
		return nil
	}
	if len(metadata) > 0 { // a map is marshalled with sorted keys
		if err := field(metadataKey, metadata); err != nil {
			return nil, err
		}
	}
	var offset int64
	for _, t := range sorted {
		end := offset + int64(len(t.Data))
		shape := t.Shape
		if shape == nil {
			shape = []int{}
		}
		if err := field(t.Name, entry{t.DType, shape, [2]int64{offset, end}}); err != nil {
			return nil, err
		}
		offset = end
	}
	b.WriteByte('}')
	for b.Len()%8 != 0 {
		b.WriteByte(' ')
	}
	if b.Len()-8 > MaxHeader {
		return nil, fmt.Errorf("%w: header of %d bytes", ErrFormat, b.Len()-8)
	}
	binary.LittleEndian.PutUint64(b.Bytes(), uint64(b.Len()-8))
	return b.Bytes(), nil
}
