package safetensors

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

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
		I64("step", []int{}, []int64{1 << 40}),
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
	s, err := step.Int64s()
	require.NoError(t, err)
	require.Equal(t, []int64{1 << 40}, s)
	_, err = ids.Float32s()
	require.ErrorIs(t, err, ErrDType)
	_, ok = f.Get("nobody")
	require.False(t, ok)

	path := filepath.Join(t.TempDir(), "x.safetensors")
	require.NoError(t, os.WriteFile(path, b, 0o600))
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	r, err := NewReader(file, int64(len(b)))
	require.NoError(t, err)
	for i, in := range r.Tensors() {
		got, err := r.Read(in.Name)
		require.NoError(t, err)
		require.Equal(t, f.Tensors[i].Name, got.Name)
		require.True(t, bytes.Equal(f.Tensors[i].Data, got.Data))
	}
	_, err = r.Read("nobody")
	require.ErrorContains(t, err, "nobody")
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
		"empty":               {nil, "0 bytes"},
		"no header":           {[]byte("1234567"), "7 bytes"},
		"header beyond file":  {binary.LittleEndian.AppendUint64(nil, 1000), "header of 1000 bytes in a file of 8"},
		"huge header":         {binary.LittleEndian.AppendUint64(nil, math.MaxUint64), "at most"},
		"not an object":       {file(`[1]`, 0), "not a JSON object"},
		"cut short":           {file(`{"a":`, 0), `tensor "a"`},
		"trailing":            {file(`{}{}`, 0), "after the header"},
		"not UTF-8":           {file("{\"\xff\":1}", 0), "UTF-8"},
		"duplicate":           {file("{"+one("a", "U8", "[1]", "[0,1]")+","+one("a", "U8", "[1]", "[0,1]")+"}", 1), `tensor "a" twice`},
		"dtype":               {file("{"+one("a", "F64", "[1]", "[0,8]")+"}", 8), `tensor "a" has "F64"`},
		"missing shape":       {file(`{"a":{"dtype":"U8","data_offsets":[0,1]}}`, 1), `tensor "a" needs`},
		"negative":            {file("{"+one("a", "U8", "[-1]", "[0,1]")+"}", 1), `tensor "a"`},
		"shape overflow":      {file("{"+one("a", "U8", "[4611686018427387904,4]", "[0,1]")+"}", 1), `tensor "a": `},
		"size overflow":       {file("{"+one("a", "F32", "[4611686018427387904]", "[0,0]")+"}", 0), `tensor "a"`},
		"shape lies":          {file("{"+one("a", "F32", "[2]", "[0,4]")+"}", 4), `tensor "a" of shape [2]`},
		"offsets beyond":      {file("{"+one("a", "U8", "[9]", "[0,9]")+"}", 4), `tensor "a" at [0, 9)`},
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
		for i, x := range file.Tensors {
			require.Equal(t, x.Name, twice.Tensors[i].Name)
			require.Equal(t, x.Shape, twice.Tensors[i].Shape)
			require.True(t, bytes.Equal(x.Data, twice.Tensors[i].Data))
		}
	})
}
