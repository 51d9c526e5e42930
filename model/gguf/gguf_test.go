package gguf

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// builder writes GGUF files, right ones and wrong ones.
type builder struct {
	version  uint32
	pairs    []byte
	tensors  []byte
	nPairs   uint64
	nTensors uint64
	data     []byte
	magic    string
}

func (b *builder) text(to *[]byte, s string) {
	*to = binary.LittleEndian.AppendUint64(*to, uint64(len(s)))
	*to = append(*to, s...)
}

// pair adds a key with a raw value.
func (b *builder) pair(key string, kind uint32, value []byte) *builder {
	b.text(&b.pairs, key)
	b.pairs = append(binary.LittleEndian.AppendUint32(b.pairs, kind), value...)
	b.nPairs++
	return b
}

// tensor adds an entry; dims has the innermost dimension first.
func (b *builder) tensor(name string, kind Kind, offset uint64, dims ...uint64) *builder {
	b.text(&b.tensors, name)
	b.tensors = binary.LittleEndian.AppendUint32(b.tensors, uint32(len(dims)))
	for _, d := range dims {
		b.tensors = binary.LittleEndian.AppendUint64(b.tensors, d)
	}
	b.tensors = binary.LittleEndian.AppendUint32(b.tensors, uint32(kind))
	b.tensors = binary.LittleEndian.AppendUint64(b.tensors, offset)
	b.nTensors++
	return b
}

func (b *builder) bytes() []byte {
	out := []byte(b.magic)
	out = binary.LittleEndian.AppendUint32(out, b.version)
	out = binary.LittleEndian.AppendUint64(out, b.nTensors)
	out = binary.LittleEndian.AppendUint64(out, b.nPairs)
	out = append(append(out, b.pairs...), b.tensors...)
	for len(out)%32 != 0 {
		out = append(out, 0)
	}
	return append(out, b.data...)
}

func u32(v uint32) []byte { return binary.LittleEndian.AppendUint32(nil, v) }
func u64(v uint64) []byte { return binary.LittleEndian.AppendUint64(nil, v) }

// good is a file of two tensors with every type of value.
func good() *builder {
	b := &builder{magic: "GGUF", version: 3, data: make([]byte, 64)}
	b.pair("u8", typeUint8, []byte{200}).pair("i8", typeInt8, []byte{0xff}).pair("bool", typeBool, []byte{1})
	b.pair("u16", typeUint16, []byte{1, 2}).pair("i16", typeInt16, []byte{0xff, 0xff})
	b.pair("u32", typeUint32, u32(7)).pair("i32", typeInt32, u32(0xfffffffe)).pair("f32", typeFloat32, u32(0x3f800000))
	b.pair("u64", typeUint64, u64(1<<40)).pair("i64", typeInt64, u64(1<<63)).pair("f64", typeFloat64, u64(0x3ff0000000000000))
	b.pair("text", typeString, append(u64(2), "é"...))
	b.pair("texts", typeArray, append(append(append(u32(typeString), u64(2)...), append(u64(1), 'a')...), u64(0)...))
	b.pair("ints", typeArray, append(append(u32(typeInt32), u64(1)...), u32(3)...))
	for i := range 4 {
		binary.LittleEndian.PutUint32(b.data[4*i:], 0x3f800000+uint32(i))
	}
	return b.tensor("a", F32, 0, 2, 2).tensor("b", Q8_0, 32, 32)
}

func parse(b []byte) (*File, error) { return Read(bytes.NewReader(b), int64(len(b))) }

func TestRead(t *testing.T) {
	b := good()
	b.data = append(b.data, 0, 0) // Q8_0 is 34 bytes
	f, err := parse(b.bytes())
	require.NoError(t, err)
	require.Equal(t, Metadata{
		"u8": uint64(200), "i8": int64(-1), "bool": true, "u16": uint64(513), "i16": int64(-1), "u32": uint64(7), "i32": int64(-2),
		"f32": float32(1), "u64": uint64(1 << 40), "i64": int64(-1 << 63), "f64": float64(1), "text": "é",
		"texts": []string{"a", ""}, "ints": []int64{3},
	}, f.Metadata)
	a, ok := f.Tensor("a")
	require.True(t, ok)
	require.Equal(t, []int{2, 2}, a.Shape)
	v := make([]float32, 2)
	require.NoError(t, f.ReadRows(a, 1, v))
	require.Equal(t, []float32{1.0000002, 1.0000004}, v)
	require.ErrorContains(t, f.ReadRows(a, 1, make([]float32, 4)), `tensor "a": 4 numbers from row 1 on are not rows`)

	b.version = 2
	_, err = parse(b.bytes())
	require.NoError(t, err)

	_, err = f.Metadata.Int("f32")
	require.ErrorContains(t, err, `metadata "f32" is "1", must be an integer`)
	_, err = f.Metadata.Int("i32")
	require.ErrorContains(t, err, `metadata "i32" is "-2"`)
	_, err = f.Metadata.String("none")
	require.ErrorContains(t, err, `the metadata lack "none"`)
	n, err := f.Metadata.Int("u16")
	require.NoError(t, err)
	require.Equal(t, 513, n)
}

// Every cut is refused, at every byte before the data's end.
func TestCut(t *testing.T) {
	b := good()
	b.data = append(b.data, 0, 0)
	whole := b.bytes()
	for n := range whole {
		_, err := parse(whole[:n])
		require.ErrorIs(t, err, ErrFormat, "%d bytes", n)
		require.ErrorContains(t, err, "cut", "%d bytes", n)
	}
}

func TestRefused(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*builder)
		says   string
	}{
		"magic":       {func(b *builder) { b.magic = "PK\x03\x04" }, `begins with "PK\x03\x04"`},
		"version 1":   {func(b *builder) { b.version = 1 }, "version 1, only versions 2 and 3"},
		"version 4":   {func(b *builder) { b.version = 4 }, "version 4, only versions 2 and 3"},
		"big endian":  {func(b *builder) { b.version = 3 << 24 }, "big-endian"},
		"many keys":   {func(b *builder) { b.nPairs = 1 << 40 }, "metadata pairs, at most"},
		"many":        {func(b *builder) { b.nTensors = 1 << 63 }, "tensors and"},
		"key twice":   {func(b *builder) { b.pair("u8", typeUint8, []byte{1}) }, `key "u8" stands there twice`},
		"empty key":   {func(b *builder) { b.pair("", typeUint8, []byte{1}) }, "empty key"},
		"value type":  {func(b *builder) { b.pair("x", 13, []byte{1}) }, `"x": invalid GGUF: a value of type 13`},
		"array type":  {func(b *builder) { b.pair("x", typeArray, append(u32(77), u64(1)...)) }, "an array of type 77"},
		"nested":      {func(b *builder) { b.pair("x", typeArray, append(u32(typeArray), u64(1)...)) }, "array of arrays"},
		"long array":  {func(b *builder) { b.pair("x", typeArray, append(u32(typeUint8), u64(1<<50)...)) }, "an array of 1125899906842624 elements"},
		"long text":   {func(b *builder) { b.pair("x", typeString, u64(1<<60)) }, "a text of 1152921504606846976 bytes"},
		"bool":        {func(b *builder) { b.pair("x", typeBool, []byte{2}) }, "a boolean of 2"},
		"UTF-8":       {func(b *builder) { b.pair("x", typeString, append(u64(1), 0xff)) }, "not UTF-8"},
		"alignment":   {func(b *builder) { b.pair(alignmentKey, typeUint32, u32(24)) }, "general.alignment is 24"},
		"alignment 0": {func(b *builder) { b.pair(alignmentKey, typeUint32, u32(0)) }, "general.alignment is 0"},
		"no dims":     {func(b *builder) { b.tensor("x", F32, 96) }, `"x": invalid GGUF: 0 dimensions`},
		"five dims":   {func(b *builder) { b.tensor("x", F32, 96, 1, 1, 1, 1, 1) }, `"x": invalid GGUF: 5 dimensions`},
		"zero dim":    {func(b *builder) { b.tensor("x", F32, 96, 4, 0) }, `a dimension of 0 after [4]`},
		"overflow":    {func(b *builder) { b.tensor("x", F32, 96, 1<<31, 1<<31) }, `"x": invalid GGUF: a dimension of 2147483648`},
		"kind":        {func(b *builder) { b.tensor("x", 13, 96, 256) }, `"x": unsupported GGUF: numbers of kind Q5_K, only F32, F16,`},
		"no kind":     {func(b *builder) { b.tensor("x", 99, 96, 256) }, `numbers of kind 99, which is unknown`},
		"block":       {func(b *builder) { b.tensor("x", Q4_K, 96, 128) }, "not a multiple of Q4_K's blocks of 256"},
		"name twice":  {func(b *builder) { b.tensor("a", F32, 96, 1) }, `two tensors are called "a"`},
		"overlap":     {func(b *builder) { b.tensor("x", F32, 64, 1) }, `tensors "b" and "x" overlap`},
		"unaligned":   {func(b *builder) { b.tensor("x", F32, 100, 1) }, `tensor "x" is at offset 100, not a multiple of 32`},
		"far":         {func(b *builder) { b.tensor("x", F32, 1<<62, 1) }, `offset 4611686018427387904`},
		"beyond":      {func(b *builder) { b.tensor("x", F32, 1<<40, 1) }, `tensor "x" has 4 bytes at offset 1099511627776, 0 are there`},
		"more":        {func(b *builder) { b.data = append(b.data, make([]byte, 100)...) }, "bytes after the last tensor"},
	} {
		t.Run(name, func(t *testing.T) {
			b := good()
			b.data = append(b.data, make([]byte, 32)...)
			test.change(b)
			_, err := parse(b.bytes())
			require.ErrorContains(t, err, test.says)
		})
	}
}

// A file cut into parts reads as the whole one.
func TestParts(t *testing.T) {
	whole, err := os.ReadFile("testdata/tiny.gguf")
	require.NoError(t, err)
	want, err := parse(whole)
	require.NoError(t, err)
	for _, cuts := range [][]int{{}, {1}, {5, 5, 40}, {len(whole) - 1}, {len(whole) / 3, len(whole) / 2}} {
		dir, begin := t.TempDir(), 0
		var paths []string
		for i, end := range append(cuts, len(whole)) {
			path := filepath.Join(dir, string(rune('a'+i)))
			require.NoError(t, os.WriteFile(path, whole[begin:end], 0o600))
			paths, begin = append(paths, path), end
		}
		f, err := Open(paths...)
		require.NoError(t, err)
		require.Equal(t, want.Metadata, f.Metadata)
		require.Equal(t, want.Tensors, f.Tensors)
		for _, tensor := range want.Tensors {
			a, b := make([]float32, tensor.Rows()*tensor.Columns()), make([]float32, tensor.Rows()*tensor.Columns())
			require.NoError(t, want.ReadRows(tensor, 0, a))
			require.NoError(t, f.ReadRows(tensor, 0, b))
			require.Equal(t, a, b, tensor.Name)
		}
		require.NoError(t, f.Close())
		if len(paths) == 3 { // the wrong order
			_, err := Open(paths[2], paths[0], paths[1])
			require.ErrorContains(t, err, "3 parts: read GGUF: invalid GGUF")
			_, err = Open(append(paths, paths[2])...)
			require.ErrorContains(t, err, "was a part given twice?")
		}
	}
	_, err = Open(t.TempDir())
	require.ErrorContains(t, err, "not a regular file")
	_, err = Open("none.gguf")
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = Open()
	require.ErrorContains(t, err, "0 files")
}

// Whatever the bytes, Read returns, and the tensors it lists can be read.
func FuzzRead(f *testing.F) {
	b := good()
	b.data = append(b.data, 0, 0)
	f.Add(b.bytes())
	tiny, err := os.ReadFile("testdata/tiny.gguf")
	require.NoError(f, err)
	f.Add(tiny[:1000]) // the whole one would make each step of the search slow
	f.Add([]byte("GGUF\x03\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, content []byte) {
		file, err := parse(content)
		if err != nil {
			return
		}
		for _, tensor := range file.Tensors {
			require.LessOrEqual(t, tensor.bytes(), int64(len(content)))
			require.NoError(t, file.ReadRows(tensor, 0, make([]float32, tensor.Rows()*tensor.Columns())))
		}
	})
}
