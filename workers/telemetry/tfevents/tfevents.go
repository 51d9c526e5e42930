// Package tfevents writes scalars as TensorBoard event files.
//
// A file is a sequence of records in TFRecord framing (length, its checksum, data,
// its checksum: CRC-32C, masked), each a protobuf message tensorflow.Event
// (tensorflow/core/util/event.proto and framework/summary.proto). Five fields of
// them are all that a scalar needs, so they are written with protowire; the
// generated code would bring all of TensorFlow's messages.
//
// A branch of a run is a file in a folder of its own, which TensorBoard calls a
// run. A row's events depend on that row alone, so a later file of the same run begins
// with the bytes of the earlier one.
package tfevents

import (
	"encoding/binary"
	"hash/crc32"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// FileName is the name of a branch's event file: TensorBoard looks for "tfevents".
// Others put time and host there; ours has neither.
const FileName = "events.out.tfevents.0000000000.reprise"

// version is the text of a file's first event: the format's name. With it readers do not
// guess at restarts and purge steps.
const version = "brain.Event:2"

// Event is a step's scalars.
type Event struct {
	// WallTime is in seconds since 1970. Artifacts have no time, so it is the step.
	WallTime float64
	// Step is TensorBoard's horizontal axis.
	Step int64
	// FileVersion is in a file's first event alone.
	FileVersion string
	// Scalars are in the order they are written.
	Scalars []Scalar
}

// Scalar is one value; float32 is what TensorBoard keeps. NaN and the infinities
// are shown as such.
type Scalar struct {
	Tag   string
	Value float32
}

// The fields of tensorflow.Event, Summary and Summary.Value that are used.
const (
	eventWallTime    = 1 // double
	eventStep        = 2 // int64
	eventFileVersion = 3 // string
	eventSummary     = 5 // Summary
	summaryValue     = 1 // Value
	valueTag         = 1 // string
	valueSimple      = 2 // float
)

// Append adds an event to a file's bytes, framed.
func Append(file []byte, e Event) []byte {
	var message []byte
	message = protowire.AppendTag(message, eventWallTime, protowire.Fixed64Type)
	message = protowire.AppendFixed64(message, math.Float64bits(e.WallTime))
	if e.Step != 0 {
		message = protowire.AppendTag(message, eventStep, protowire.VarintType)
		message = protowire.AppendVarint(message, uint64(e.Step))
	}
	if e.FileVersion != "" {
		message = protowire.AppendTag(message, eventFileVersion, protowire.BytesType)
		message = protowire.AppendString(message, e.FileVersion)
	}
	if len(e.Scalars) > 0 {
		var summary []byte
		for _, s := range e.Scalars {
			var value []byte
			value = protowire.AppendTag(value, valueTag, protowire.BytesType)
			value = protowire.AppendString(value, s.Tag)
			value = protowire.AppendTag(value, valueSimple, protowire.Fixed32Type)
			value = protowire.AppendFixed32(value, math.Float32bits(s.Value))
			summary = protowire.AppendTag(summary, summaryValue, protowire.BytesType)
			summary = protowire.AppendBytes(summary, value)
		}
		message = protowire.AppendTag(message, eventSummary, protowire.BytesType)
		message = protowire.AppendBytes(message, summary)
	}
	return frame(file, message)
}

// frame adds a TFRecord.
func frame(file, data []byte) []byte {
	var length [8]byte
	binary.LittleEndian.PutUint64(length[:], uint64(len(data)))
	file = append(file, length[:]...)
	file = binary.LittleEndian.AppendUint32(file, masked(length[:]))
	file = append(file, data...)
	return binary.LittleEndian.AppendUint32(file, masked(data))
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// masked is the checksum as TFRecord stores it: a CRC of data that itself holds
// CRCs would be weak, so it is rotated and offset (tensorflow/tsl lib/hash/crc32c.h).
func masked(b []byte) uint32 {
	sum := crc32.Checksum(b, castagnoli)
	return (sum>>15 | sum<<17) + 0xa282ead8
}
