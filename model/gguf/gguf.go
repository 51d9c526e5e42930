// Package gguf reads GGUF, the file format of llama.cpp: a header, typed metadata, a list of
// tensors, and their numbers, most often quantised. It turns the numbers into float32, bit by
// bit as the Python package gguf does.
//
// A file comes from a download, so nothing in it is trusted: counts, lengths, shapes, offsets
// and their agreement with the file's size are checked before use, and each error names the
// key or tensor. Tensors are read a few rows at a time, so a file may be larger than memory.
// Versions 2 and 3, little endian, are read, as by the Python package. Package hf, below, makes
// a Hugging Face folder of what is read.
package gguf

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

var (
	// ErrFormat is the kind of every error about a file's bytes.
	ErrFormat = errors.New("invalid GGUF")
	// ErrUnsupported is the kind of errors about a file that may be valid, and needs something
	// that this package does not have: another version, another kind of numbers.
	ErrUnsupported = errors.New("unsupported GGUF")
)

const (
	magic = "GGUF"
	// minVersion and maxVersion are the versions that are read. They differ only in big-endian
	// files, which version 3 introduced.
	minVersion, maxVersion = 2, 3

	// maxKeys and maxTensors are far above the counts of any model.
	maxKeys, maxTensors = 1 << 16, 1 << 16
	// maxKey bounds a key, as the format does; maxName a tensor's name, of which llama.cpp
	// allows 64 bytes.
	maxKey, maxName = 1<<16 - 1, 256
	// maxText bounds a text of the metadata in bytes, a chat template for instance.
	maxText = 16 << 20
	// maxArray bounds the elements of an array, above the size of any vocabulary.
	maxArray = 1 << 22
	// maxHeader bounds everything before the tensors' numbers, in bytes.
	maxHeader = 512 << 20
)

// File is a GGUF file of which everything before the tensors' numbers has been read.
type File struct {
	Version  uint32 // 2 or 3
	Metadata Metadata
	Tensors  []Tensor // in the file's order

	src  io.ReaderAt
	data int64 // where the numbers begin
}

// Read reads and checks the header, the metadata and the list of tensors of a file of size bytes.
// The tensors' numbers stay in src.
func Read(src io.ReaderAt, size int64) (*File, error) {
	f, err := read(src, size)
	if err != nil {
		return nil, fmt.Errorf("read GGUF: %w", err)
	}
	return f, nil
}

func read(src io.ReaderAt, size int64) (*File, error) {
	r := &reader{size: min(size, maxHeader), whole: size <= maxHeader}
	r.src = bufio.NewReaderSize(io.NewSectionReader(src, 0, r.size), 1<<16)
	f := &File{src: src, Metadata: Metadata{}}
	tensors, keys, err := f.readCounts(r)
	if err != nil {
		return nil, err
	}
	for i := range keys {
		if err := f.Metadata.readPair(r); err != nil {
			return nil, fmt.Errorf("metadata pair %d of %d: %w", i+1, keys, err)
		}
	}
	alignment, err := f.Metadata.alignment()
	if err != nil {
		return nil, err
	}
	for i := range tensors {
		t, err := readTensor(r)
		if err != nil {
			return nil, fmt.Errorf("tensor %d of %d: %w", i+1, tensors, err)
		}
		f.Tensors = append(f.Tensors, t)
	}
	f.data = (r.at + alignment - 1) / alignment * alignment
	return f, f.checkPlaces(size, alignment)
}

// readCounts reads the header: the magic, the version, and how many tensors and keys there are.
func (f *File) readCounts(r *reader) (tensors, keys uint64, err error) {
	head, err := r.bytes(8)
	if err != nil {
		return 0, 0, fmt.Errorf("header: %w", err)
	}
	if string(head[:4]) != magic {
		return 0, 0, fmt.Errorf("%w: it begins with %q, not %q: this is not a GGUF file, or not its first part", ErrFormat, head[:4], magic)
	}
	f.Version = binary.LittleEndian.Uint32(head[4:])
	if f.Version&0xffff == 0 && f.Version != 0 {
		return 0, 0, fmt.Errorf("%w: big-endian numbers, only little-endian ones are read", ErrUnsupported)
	}
	if f.Version < minVersion || f.Version > maxVersion {
		return 0, 0, fmt.Errorf("%w: version %d, only versions %d and %d are read", ErrUnsupported, f.Version, minVersion, maxVersion)
	}
	if tensors, err = r.uint64(); err == nil {
		keys, err = r.uint64()
	}
	if err != nil {
		return 0, 0, fmt.Errorf("header: %w", err)
	}
	if tensors > maxTensors || keys > maxKeys {
		return 0, 0, fmt.Errorf("%w: %d tensors and %d metadata pairs, at most %d and %d are read", ErrFormat, tensors, keys, maxTensors, maxKeys)
	}
	return tensors, keys, nil
}

// reader reads what stands before the tensors' numbers, and knows how many bytes are left, so
// that no length in the file is believed.
type reader struct {
	src   *bufio.Reader
	at    int64
	size  int64
	whole bool // size is the file's, and not maxHeader
}

// room returns an error if fewer than n bytes are left.
func (r *reader) room(n uint64) error {
	if left := uint64(r.size - r.at); n > left {
		if r.whole {
			return fmt.Errorf("%w: the file is cut: %d bytes are wanted at byte %d, %d are there", ErrFormat, n, r.at, left)
		}
		return fmt.Errorf("%w: more than %d bytes before the tensors' numbers", ErrFormat, int64(maxHeader))
	}
	return nil
}

// bytes reads n bytes.
func (r *reader) bytes(n uint64) ([]byte, error) {
	if err := r.room(n); err != nil {
		return nil, err
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(r.src, b); err != nil {
		return nil, fmt.Errorf("at byte %d: %w", r.at, err)
	}
	r.at += int64(n)
	return b, nil
}

func (r *reader) uint32() (uint32, error) {
	b, err := r.bytes(4)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint32(b), nil
}

func (r *reader) uint64() (uint64, error) {
	b, err := r.bytes(8)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint64(b), nil
}

// text reads a length and as many bytes of UTF-8, at most so many.
func (r *reader) text(most uint64) (string, error) {
	n, err := r.uint64()
	if err != nil {
		return "", err
	}
	if n > most {
		return "", fmt.Errorf("%w: a text of %d bytes at byte %d, at most %d are read", ErrFormat, n, r.at, most)
	}
	b, err := r.bytes(n)
	if err != nil {
		return "", err
	}
	if !utf8.Valid(b) {
		return "", fmt.Errorf("%w: the text %.40q at byte %d is not UTF-8", ErrFormat, b, r.at-int64(n))
	}
	return string(b), nil
}
