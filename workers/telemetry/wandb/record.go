// Package wandb writes a run's curves as the offline files that `wandb sync` uploads.
//
// A file begins with ":W&B", 0xBEE1 and a version, and goes on as a LevelDB log: blocks
// of 32 KiB, and in them records of CRC-32 (IEEE, over type and data), length, type and
// data; a record that does not fit is split (wandb/sdk/internal/datastore.py of wandb
// 0.19). The data are protobuf messages wandb_internal.Record
// (wandb/proto/wandb_internal.proto), of which a few fields are needed, so they are
// written with protowire.
package wandb

import (
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"math"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/reprise-rl/reprise/workers/telemetry/curves"
)

const (
	blockSize  = 32 << 10
	headerSize = 7 // of a record: checksum, length, type
)

// The types of a piece of a record.
const (
	whole = iota + 1
	first
	middle
	last
)

// The fields of wandb_internal.Record and of its messages that are used.
const (
	recordNum     = 1
	recordHistory = 2
	recordSummary = 3
	recordRun     = 17
	recordExit    = 18
	recordHeader  = 21

	headerVersion   = 1
	versionProducer = 1

	runID        = 1
	runConfig    = 4
	runGroup     = 6
	runName      = 8
	runStartTime = 17

	update = 1 // ConfigRecord, SummaryRecord: items

	historyItem = 1
	historyStep = 2
	stepNum     = 1

	itemKey  = 1
	itemJSON = 16

	exitCode = 1
)

// file is the content of a run's file while it is written.
type file struct {
	bytes   []byte
	records int64
}

func newFile() *file {
	return &file{bytes: []byte(":W&B\xe1\xbe\x00")}
}

// record adds a message as one field of a Record, numbered from 1.
func (f *file) record(field protowire.Number, message []byte) {
	f.records++
	var r []byte
	r = protowire.AppendTag(r, recordNum, protowire.VarintType)
	r = protowire.AppendVarint(r, uint64(f.records))
	f.append(appendMessage(r, field, message))
}

// append adds data to the log, split where a block ends.
func (f *file) append(data []byte) {
	for begun := false; ; begun = true {
		left := blockSize - len(f.bytes)%blockSize
		if left < headerSize {
			f.bytes = append(f.bytes, make([]byte, left)...)
			left = blockSize
		}
		n := min(left-headerSize, len(data))
		ends := n == len(data)
		piece := byte(first)
		switch {
		case begun && ends:
			piece = last
		case begun:
			piece = middle
		case ends:
			piece = whole
		}
		sum := crc32.Update(crc32.ChecksumIEEE([]byte{piece}), crc32.IEEETable, data[:n])
		f.bytes = binary.LittleEndian.AppendUint32(f.bytes, sum)
		f.bytes = binary.LittleEndian.AppendUint16(f.bytes, uint16(n))
		f.bytes = append(f.bytes, piece)
		f.bytes = append(f.bytes, data[:n]...)
		if data = data[n:]; ends {
			return
		}
	}
}

func appendMessage(b []byte, field protowire.Number, message []byte) []byte {
	b = protowire.AppendTag(b, field, protowire.BytesType)
	return protowire.AppendBytes(b, message)
}

func appendText(b []byte, field protowire.Number, text string) []byte {
	b = protowire.AppendTag(b, field, protowire.BytesType)
	return protowire.AppendString(b, text)
}

// item is a key with its value as JSON.
func item(key, value string) []byte {
	return appendText(appendText(nil, itemKey, key), itemJSON, value)
}

// numberJSON spells what is not finite as Python's json does, which wandb reads.
func numberJSON(v float64) string {
	switch {
	case math.IsNaN(v):
		return "NaN"
	case math.IsInf(v, 1):
		return "Infinity"
	case math.IsInf(v, -1):
		return "-Infinity"
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

func textJSON(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic("wandb: a string is always JSON: " + err.Error())
	}
	return string(b)
}

// history is a step's row. "_step" is also an item, since wandb's own files have both.
func history(s curves.Step) []byte {
	var row []byte
	for _, v := range s.Values {
		row = appendMessage(row, historyItem, item(v.Name, numberJSON(v.Number)))
	}
	row = appendMessage(row, historyItem, item("_step", strconv.FormatInt(s.Number, 10)))
	step := protowire.AppendTag(nil, stepNum, protowire.VarintType)
	step = protowire.AppendVarint(step, uint64(s.Number))
	return appendMessage(row, historyStep, step)
}
