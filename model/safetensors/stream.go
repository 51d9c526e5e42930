package safetensors

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Stream reads a file once, from its beginning to its end, one tensor at a time in the order
// of their data. So a file may be larger than memory, and may come from a network.
type Stream struct {
	// Metadata is the header's free text, nil if there is none.
	Metadata map[string]string

	src     io.Reader
	infos   []Info // by name
	order   []Info // by place in the file
	next    int    // the tensor in order that Next returns
	left    int64  // bytes of the current tensor that have not been read
	current Info
	buffer  []byte // of encoded elements
}

// NewStream reads and checks the header of a file of size bytes.
func NewStream(src io.Reader, size int64) (*Stream, error) {
	h, err := readHeader(src, size)
	if err != nil {
		return nil, fmt.Errorf("read safetensors: %w", err)
	}
	order := slices.Clone(h.infos)
	slices.SortStableFunc(order, func(a, b Info) int { return cmp.Or(cmp.Compare(a.lo, b.lo), cmp.Compare(a.hi, b.hi)) })
	return &Stream{Metadata: h.metadata, src: src, infos: h.infos, order: order}, nil
}

// Tensors lists the file's tensors, sorted by name.
func (s *Stream) Tensors() []Info { return slices.Clone(s.infos) }

// Next moves to the next tensor. After the last one it reads the end of the source and
// returns its error: io.EOF, or what a source says that finds wrong bytes at its end.
func (s *Stream) Next() (Info, error) {
	if err := s.skip(); err != nil {
		return Info{}, err
	}
	if s.next < len(s.order) {
		s.current = s.order[s.next]
		s.next, s.left = s.next+1, s.current.Bytes()
		return s.current, nil
	}
	var one [1]byte
	switch n, err := io.ReadFull(s.src, one[:]); {
	case n > 0:
		return Info{}, fmt.Errorf("read safetensors: %w: the file has grown", ErrFormat)
	default:
		return Info{}, err
	}
}

// skip passes over what is left of the current tensor.
func (s *Stream) skip() error {
	if s.left == 0 {
		return nil
	}
	var err error
	if seeker, ok := s.src.(io.Seeker); ok {
		_, err = seeker.Seek(s.left, io.SeekCurrent)
	} else {
		_, err = io.CopyN(io.Discard, s.src, s.left)
	}
	if err != nil {
		return s.fail(err)
	}
	s.left = 0
	return nil
}

// Read reads bytes of the current tensor, io.EOF at its end.
func (s *Stream) Read(p []byte) (int, error) {
	if s.left == 0 {
		return 0, io.EOF
	}
	n, err := s.src.Read(p[:min(int64(len(p)), s.left)])
	if s.left -= int64(n); s.left > 0 && err != nil {
		return n, s.fail(err)
	}
	return n, nil
}

func (s *Stream) fail(err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("read tensor %q: %w", s.current.Name, err)
}

// decodeBytes is how much of a tensor is read at once, a multiple of every dtype's size.
const decodeBytes = 1 << 20

// ReadFloats decodes the next elements of the current tensor, which must be F32, BF16 or F16
// (else an ErrDType), and returns how many: as many as fit, or are left. It returns io.EOF if
// none is left.
func (s *Stream) ReadFloats(into []float32) (int, error) {
	size := int64(s.current.DType.Size())
	if s.left == 0 {
		return 0, io.EOF
	}
	if s.buffer == nil {
		s.buffer = make([]byte, decodeBytes)
	}
	done := 0
	for done < len(into) && s.left > 0 {
		b := s.buffer[:min(s.left, decodeBytes, int64(len(into)-done)*size)]
		if _, err := io.ReadFull(s, b); err != nil {
			return done, s.fail(err)
		}
		if err := decodeFloats(into[done:], b, s.current.DType); err != nil {
			return done, fmt.Errorf("read tensor %q: %w", s.current.Name, err)
		}
		done += len(b) / int(size)
	}
	return done, nil
}

// Float32s decodes the rest of the current tensor, as ReadFloats does, into a slice of that
// many elements: into's memory if there is room, else new.
func (s *Stream) Float32s(into []float32) ([]float32, error) {
	n := int(s.left) / max(s.current.DType.Size(), 1)
	if cap(into) < n {
		into = make([]float32, n)
	}
	into = into[:n]
	if n == 0 {
		return into, nil
	}
	_, err := s.ReadFloats(into)
	return into, err
}
