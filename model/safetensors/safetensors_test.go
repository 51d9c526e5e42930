package safetensors

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

func file(header string, data int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	b = append(b, header...)
	return append(b, make([]byte, data)...)
}

func TestRoundTrip(t *testing.T) {
	ts := []Tensor{
		F32("w", []int{2, 2}, []float32{1, -0.5, float32(math.Inf(1)), 3e-45}),
		I32("ids", []int{3}, []int32{-1, 0, math.MaxInt32}),
		{Name: "step", DType: Int64, Shape: []int{}, Data: []byte{5: 1, 7: 0}},
		{Name: "a \"quoted\" name\n", DType: Uint8, Shape: []int{0, 7}, Data: nil},
	}
	b, err := Encode(ts, map[string]string{"format": "pt", "b": "2"})
	require.NoError(t, err)
	again, err := Encode([]Tensor{ts[3], ts[1], ts[0], ts[2]}, map[string]string{"b": "2", "format": "pt"})
	require.NoError(t, err)
	require.Equal(t, b, again, "the order given does not matter")
	require.Zero(t, binary.LittleEndian.Uint64(b)%8)

	f, err := Decode(b)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"format": "pt", "b": "2"}, f.Metadata)
	require.Len(t, f.Tensors, 4)
	w, ok := f.Get("w")
	require.True(t, ok)
	v, err := w.Float32s()
	require.NoError(t, err)
	require.Equal(t, []float32{1, -0.5, float32(math.Inf(1)), 3e-45}, v)
	ids, _ := f.Get("ids")
	i, err := ids.Int32s()
	require.NoError(t, err)
	require.Equal(t, []int32{-1, 0, math.MaxInt32}, i)
	step, _ := f.Get("step")
	require.Equal(t, uint64(1<<40), binary.LittleEndian.Uint64(step.Data))
	_, err = ids.Float32s()
	require.ErrorIs(t, err, ErrDType)
	_, ok = f.Get("nobody")
	require.False(t, ok)
}

// streamed reads a file's tensors one after the other, by name.
func streamed(t *testing.T, src io.Reader, size int) map[string][]byte {
	t.Helper()
	s, err := NewStream(src, int64(size))
	require.NoError(t, err)
	out := map[string][]byte{}
	for {
		in, err := s.Next()
		if err == io.EOF {
			return out
		}
		require.NoError(t, err)
		out[in.Name], err = io.ReadAll(s)
		require.NoError(t, err)
		require.Len(t, out[in.Name], int(in.Bytes()))
	}
}

func TestStream(t *testing.T) {
	ts := []Tensor{
		F32("w", []int{2, 2}, []float32{1, -0.5, float32(math.Inf(1)), 3e-45}),
		{Name: "empty", DType: Uint8, Shape: []int{0, 7}},
		I32("ids", []int{3}, []int32{-1, 0, math.MaxInt32}),
	}
	b, err := Encode(ts, map[string]string{"format": "pt"})
	require.NoError(t, err)
	got := streamed(t, iotest.OneByteReader(bytes.NewReader(b)), len(b))
	for _, want := range ts {
		require.True(t, bytes.Equal(want.Data, got[want.Name]), want.Name)
	}

	// What is not read is passed over, by seeking where the source can.
	for _, src := range []io.Reader{bytes.NewReader(b), iotest.HalfReader(bytes.NewReader(b))} {
		s, err := NewStream(src, int64(len(b)))
		require.NoError(t, err)
		require.Equal(t, "pt", s.Metadata["format"])
		require.Len(t, s.Tensors(), 3)
		for {
			in, err := s.Next()
			require.NoError(t, err)
			if in.Name == "w" {
				break
			}
		}
		into := make([]float32, 9)
		v, err := s.Float32s(into)
		require.NoError(t, err)
		require.Equal(t, []float32{1, -0.5, float32(math.Inf(1)), 3e-45}, v)
		require.Same(t, &into[0], &v[0], "the slice that is given is used")
		_, err = s.Next()
		require.Equal(t, io.EOF, err)
	}
}

// A source that finds only at its end that its bytes are wrong is believed.
func TestStreamReportsTheSourcesEnd(t *testing.T) {
	b, err := Encode([]Tensor{F32("w", []int{2}, []float32{1, 2}), I32("i", []int{1}, []int32{3})}, nil)
	require.NoError(t, err)
	wrong := errors.New("another digest")
	read := func(src io.Reader) error {
		s, err := NewStream(src, int64(len(b)))
		require.NoError(t, err)
		for err == nil {
			_, err = s.Next()
		}
		return err
	}
	require.ErrorIs(t, read(io.MultiReader(bytes.NewReader(b), iotest.ErrReader(wrong))), wrong)
	require.ErrorIs(t, read(iotest.HalfReader(bytes.NewReader(b[:len(b)-1]))), io.ErrUnexpectedEOF)
	require.ErrorIs(t, read(bytes.NewReader(append(bytes.Clone(b), 0))), ErrFormat)

	s, err := NewStream(bytes.NewReader(b), int64(len(b)))
	require.NoError(t, err)
	_, err = s.Next()
	require.NoError(t, err)
	_, err = s.Float32s(nil)
	require.ErrorIs(t, err, ErrDType)
	require.ErrorContains(t, err, `"i"`)
}

// A laid-out file is the one that Encode writes, and asks for one tensor at a time.
func TestLayout(t *testing.T) {
	long := make([]float32, 3000) // more than is encoded at once
	for i := range long {
		long[i] = float32(i) / 3
	}
	ts := []Tensor{F32("w", []int{3000}, long), F32("b", []int{1}, []float32{7}), F32("none", []int{0}, nil)}
	want, err := Encode(ts, map[string]string{"k": "v"})
	require.NoError(t, err)
	l, err := NewLayout([]Info{{Name: "w", DType: Float32, Shape: []int{3000}}, {Name: "none", DType: Float32, Shape: []int{0}}, {Name: "b", DType: Float32, Shape: []int{1}}}, map[string]string{"k": "v"})
	require.NoError(t, err)
	require.Equal(t, int64(len(want)), l.Size())
	values := map[string][]float32{"w": long, "b": {7}}
	var asked []string
	data := func(name string) (io.Reader, error) {
		asked = append(asked, name)
		return Floats(values[name]), nil
	}
	for range 2 { // it can be read again
		asked = nil
		got, err := io.ReadAll(iotest.HalfReader(l.Reader(data)))
		require.NoError(t, err)
		require.True(t, bytes.Equal(want, got))
		require.Equal(t, []string{"b", "none", "w"}, asked)
	}
	values["w"] = long[1:]
	_, err = io.ReadAll(l.Reader(data))
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.ErrorContains(t, err, `tensor "w": 4 bytes are missing`)
	gone := errors.New("gone")
	_, err = io.ReadAll(l.Reader(func(string) (io.Reader, error) { return nil, gone }))
	require.ErrorIs(t, err, gone)
}

func TestHalfTypes(t *testing.T) {
	le := func(v ...uint16) []byte {
		var b []byte
		for _, x := range v {
			b = binary.LittleEndian.AppendUint16(b, x)
		}
		return b
	}
	bf := Tensor{Name: "b", DType: BFloat16, Shape: []int{3}, Data: le(0x3f80, 0xc000, 0x7f80)}
	v, err := bf.Float32s()
	require.NoError(t, err)
	require.Equal(t, []float32{1, -2, float32(math.Inf(1))}, v)
	hf := Tensor{Name: "h", DType: Float16, Shape: []int{6}, Data: le(0x3c00, 0xc000, 0x7bff, 0x0001, 0x8000, 0x7c00)}
	v, err = hf.Float32s()
	require.NoError(t, err)
	require.Equal(t, []float32{1, -2, 65504, float32(math.Ldexp(1, -24)), 0, float32(math.Inf(1))}, v)
	require.True(t, math.Signbit(float64(v[4])))
	nan := Tensor{Name: "n", DType: Float16, Shape: []int{1}, Data: le(0x7e00)}
	v, err = nan.Float32s()
	require.NoError(t, err)
	require.True(t, math.IsNaN(float64(v[0])))
}

func TestDecodeRejects(t *testing.T) {
	one := func(name, dtype, shape, offsets string) string {
		return fmt.Sprintf(`"%s":{"dtype":"%s","shape":%s,"data_offsets":%s}`, name, dtype, shape, offsets)
	}
	for name, c := range map[string]struct {
		b    []byte
		want string
	}{
		"empty":              {nil, "0 bytes"},
		"no header":          {[]byte("1234567"), "7 bytes"},
		"header beyond file": {binary.LittleEndian.AppendUint64(nil, 1000), "header of 1000 bytes in a file of 8"},
		"large header":       {binary.LittleEndian.AppendUint64(nil, MaxHeader+1), "header of 32000001 bytes, at most 32000000 are read"},
		"huge header":        {binary.LittleEndian.AppendUint64(nil, math.MaxUint64), "at most"},
		"not an object":      {file(`[1]`, 0), "not a JSON object"},
		"cut short":          {file(`{"a":`, 0), `tensor "a"`},
		"trailing":           {file(`{}{}`, 0), "after the header"},
		"not UTF-8":          {file("{\"\xff\":1}", 0), "UTF-8"},
		"duplicate":          {file("{"+one("a", "U8", "[1]", "[0,1]")+","+one("a", "U8", "[1]", "[0,1]")+"}", 1), `tensor "a" twice`},
		"dtype":              {file("{"+one("a", "F64", "[1]", "[0,8]")+"}", 8), `tensor "a" has "F64"`},
		"missing shape":      {file(`{"a":{"dtype":"U8","data_offsets":[0,1]}}`, 1), `tensor "a" needs`},
		"negative":           {file("{"+one("a", "U8", "[-1]", "[0,1]")+"}", 1), `tensor "a"`},
		"shape overflow":     {file("{"+one("a", "U8", "[4611686018427387904,4]", "[0,1]")+"}", 1), `tensor "a": `},
		"size overflow":      {file("{"+one("a", "F32", "[4611686018427387904]", "[0,0]")+"}", 0), `tensor "a"`},
		"shape lies":         {file("{"+one("a", "F32", "[2]", "[0,4]")+"}", 4), `tensor "a" of shape [2]`},
		"offsets beyond": {file("{"+one("a", "U8", "[9]",
			"[0,9]")+"}", 4), "its header describes 9 bytes of tensors, 4 are there (copy it again)"},
		"cut off":             {file("{"+one("a", "U8", "[9]", "[0,9]")+"}", 4), "the file is cut off"},
		"offsets backwards":   {file("{"+one("a", "U8", "[0]", "[2,1]")+"}", 4), `tensor "a" at [2, 1)`},
		"overlap":             {file("{"+one("a", "U8", "[2]", "[0,2]")+","+one("b", "U8", "[2]", "[1,3]")+"}", 3), `tensor "b" overlaps`},
		"hole":                {file("{"+one("a", "U8", "[1]", "[0,1]")+","+one("b", "U8", "[1]", "[2,3]")+"}", 3), `before tensor "b"`},
		"rest":                {file("{"+one("a", "U8", "[1]", "[0,1]")+"}", 2), "after the last tensor"},
		"fractional offset":   {file("{"+one("a", "U8", "[1]", "[0,1.5]")+"}", 2), `tensor "a"`},
		"metadata not a text": {file(`{"__metadata__":{"a":1}}`, 0), "metadata"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Decode(c.b)
			require.ErrorContains(t, err, c.want)
			if !strings.Contains(name, "dtype") {
				require.ErrorIs(t, err, ErrFormat)
			}
		})
	}
}

func TestEncodeRejects(t *testing.T) {
	for name, ts := range map[string][]Tensor{
		"duplicate": {F32("a", []int{1}, []float32{1}), F32("a", []int{1}, []float32{2})},
		"reserved":  {F32("__metadata__", []int{1}, []float32{1})},
		"shape":     {{Name: "a", DType: Float32, Shape: []int{2}, Data: make([]byte, 4)}},
		"not UTF-8": {F32("\xff", []int{1}, []float32{1})},
	} {
		_, err := Encode(ts, nil)
		require.ErrorIs(t, err, ErrFormat, name)
	}
	require.Panics(t, func() { F32("a", []int{2}, []float32{1}) })
}

func FuzzDecode(f *testing.F) {
	good, err := Encode([]Tensor{F32("w", []int{2}, []float32{1, 2}), I32("i", []int{}, []int32{3})}, map[string]string{"k": "v"})
	require.NoError(f, err)
	f.Add(good)
	f.Add(good[:len(good)-1])
	f.Add(file(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}`, 1))
	f.Add(file(`{"a":{"dtype":"F32","shape":[9223372036854775807,2],"data_offsets":[0,1]}}`, 1))
	f.Fuzz(func(t *testing.T, b []byte) {
		file, err := Decode(b)
		if err != nil {
			return
		}
		again, err := Encode(file.Tensors, file.Metadata)
		require.NoError(t, err)
		twice, err := Decode(again)
		require.NoError(t, err)
		require.Len(t, twice.Tensors, len(file.Tensors))
		read := streamed(t, bytes.NewReader(b), len(b))
		for i, x := range file.Tensors {
			require.Equal(t, x.Name, twice.Tensors[i].Name)
			require.Equal(t, x.Shape, twice.Tensors[i].Shape)
			require.True(t, bytes.Equal(x.Data, twice.Tensors[i].Data))
			require.True(t, bytes.Equal(x.Data, read[x.Name]))
		}
	})
}
