package tfevents

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// read is a reader of its own: it checks what TensorFlow's does.
func read(file []byte) (out []Event, err error) {
	for len(file) > 0 {
		if len(file) < 16 {
			return nil, errors.New("a record ends early")
		}
		length := binary.LittleEndian.Uint64(file)
		if masked(file[:8]) != binary.LittleEndian.Uint32(file[8:]) {
			return nil, errors.New("the length's checksum differs")
		}
		if length > uint64(len(file)-16) {
			return nil, fmt.Errorf("a record of %d bytes ends early", length)
		}
		data := file[12 : 12+length]
		if masked(data) != binary.LittleEndian.Uint32(file[12+length:]) {
			return nil, errors.New("the data's checksum differs")
		}
		e, err := readEvent(data)
		if err != nil {
			return nil, err
		}
		out, file = append(out, e), file[16+length:]
	}
	return out, nil
}

func readEvent(b []byte) (e Event, err error) {
	err = fields(b, func(n protowire.Number, v uint64, s []byte) error {
		switch n {
		case eventWallTime:
			e.WallTime = math.Float64frombits(v)
		case eventStep:
			e.Step = int64(v)
		case eventFileVersion:
			e.FileVersion = string(s)
		case eventSummary:
			return fields(s, func(n protowire.Number, _ uint64, s []byte) error {
				var scalar Scalar
				e.Scalars = append(e.Scalars, scalar)
				at := &e.Scalars[len(e.Scalars)-1]
				return fields(s, func(n protowire.Number, v uint64, s []byte) error {
					switch n {
					case valueTag:
						at.Tag = string(s)
					case valueSimple:
						at.Value = math.Float32frombits(uint32(v))
					}
					return nil
				})
			})
		}
		return nil
	})
	return e, err
}

// fields yields each of a message's fields: its number, and its content.
func fields(b []byte, tell func(n protowire.Number, v uint64, s []byte) error) error {
	for len(b) > 0 {
		n, kind, size := protowire.ConsumeTag(b)
		if size < 0 {
			return protowire.ParseError(size)
		}
		b = b[size:]
		var v uint64
		var s []byte
		switch kind {
		case protowire.VarintType:
			v, size = protowire.ConsumeVarint(b)
		case protowire.Fixed64Type:
			v, size = protowire.ConsumeFixed64(b)
		case protowire.Fixed32Type:
			var w uint32
			w, size = protowire.ConsumeFixed32(b)
			v = uint64(w)
		case protowire.BytesType:
			s, size = protowire.ConsumeBytes(b)
		default:
			return fmt.Errorf("field %d is of wire type %d", n, kind)
		}
		if size < 0 {
			return protowire.ParseError(size)
		}
		b = b[size:]
		if err := tell(n, v, s); err != nil {
			return err
		}
	}
	return nil
}
