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

// Encode returns a file with the tensors: the header, padded with spaces to a multiple of 8
// bytes, then the data in the order of the names. metadata may be nil. It returns an error
// if two tensors have the same name, a name is reserved, or data does not fit the shape.
func Encode(ts []Tensor, metadata map[string]string) ([]byte, error) {
	infos := make([]Info, len(ts))
	data := make(map[string][]byte, len(ts))
	for i, t := range ts {
		if err := t.check(); err != nil {
			return nil, fmt.Errorf("write safetensors: %w", err)
		}
		infos[i] = Info{Name: t.Name, DType: t.DType, Shape: t.Shape}
		data[t.Name] = t.Data
	}
	l, err := NewLayout(infos, metadata)
	if err != nil {
		return nil, err
	}
	out := bytes.NewBuffer(make([]byte, 0, l.Size()+bytes.MinRead))
	_, err = out.ReadFrom(l.Reader(func(name string) (io.Reader, error) { return bytes.NewReader(data[name]), nil }))
	return out.Bytes(), err
}

// Layout is a file whose tensors are known by name, type and shape before their data. So
// its size is known beforehand, and its data need never be in memory together.
type Layout struct {
	header []byte
	infos  []Info // by name, which is the order of their data
	size   int64
}

// NewLayout lays out a file with the tensors, as Encode writes it.
func NewLayout(infos []Info, metadata map[string]string) (*Layout, error) {
	l := &Layout{infos: slices.Clone(infos)}
	slices.SortStableFunc(l.infos, func(a, b Info) int { return cmp.Compare(a.Name, b.Name) })
	var at int64
	for i := range l.infos {
		in := &l.infos[i]
		n, err := in.bytes()
		if err != nil {
			return nil, fmt.Errorf("write safetensors: %w", err)
		}
		if i > 0 && l.infos[i-1].Name == in.Name {
			return nil, fmt.Errorf("write safetensors: %w: two tensors named %q", ErrFormat, in.Name)
		}
		in.lo, in.hi = at, at+n
		at += n
	}
	var err error
	if l.header, err = encodeHeader(l.infos, metadata); err != nil {
		return nil, fmt.Errorf("write safetensors: %w", err)
	}
	l.size = int64(len(l.header)) + at
	return l, nil
}

// Tensors lists the file's tensors, sorted by name, which is the order of their data.
func (l *Layout) Tensors() []Info { return slices.Clone(l.infos) }

// Size is the length of the file in bytes.
func (l *Layout) Size() int64 { return l.size }

// Header is the beginning of the file, before the tensors' data.
func (l *Layout) Header() []byte { return l.header }

// Place is where a tensor of Tensors begins in the file.
func (l *Layout) Place(in Info) int64 { return int64(len(l.header)) + in.lo }

// Reader returns a reader of the whole file. It calls data for one tensor after the other,
// in the order of their names, and reads each one's bytes from what data returns before it
// calls data for the next.
func (l *Layout) Reader(data func(name string) (io.Reader, error)) io.Reader {
	return &layoutReader{rest: l.infos, data: data, current: bytes.NewReader(l.header), left: int64(len(l.header))}
}

type layoutReader struct {
	rest    []Info // tensors after the current one
	data    func(name string) (io.Reader, error)
	name    string    // of the current tensor; "" is the header
	current io.Reader // of the header or a tensor
	left    int64     // bytes of current
	err     error
}

// Read implements io.Reader.
func (r *layoutReader) Read(p []byte) (int, error) {
	for r.err == nil && r.left == 0 {
		if len(r.rest) == 0 {
			r.err = io.EOF
			break
		}
		next := r.rest[0]
		r.rest, r.name, r.left = r.rest[1:], next.Name, next.Bytes()
		if r.current, r.err = r.data(next.Name); r.err != nil {
			r.err = fmt.Errorf("tensor %q: %w", next.Name, r.err)
		}
	}
	if r.err != nil || len(p) == 0 {
		return 0, r.err
	}
	n, err := r.current.Read(p[:min(int64(len(p)), r.left)])
	if r.left -= int64(n); r.left > 0 && err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		r.err = fmt.Errorf("tensor %q: %d bytes are missing: %w", r.name, r.left, err)
	}
	return n, nil
}

// encodeHeader returns the length and the padded JSON. It does not use one json.Marshal, so
// that metadata comes first and the tensors follow in the order of their data.
func encodeHeader(sorted []Info, metadata map[string]string) ([]byte, error) {
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
	for _, in := range sorted {
		shape := in.Shape
		if shape == nil {
			shape = []int{}
		}
		if err := field(in.Name, entry{in.DType, shape, [2]int64{in.lo, in.hi}}); err != nil {
			return nil, err
		}
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
