package safetensors

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

// A NaN or an infinity is found wherever it is, in every dtype, and however the bytes come.
func TestCheckFinite(t *testing.T) {
	const rows, columns = 3, 7
	bits := map[DType]map[string]uint64{
		Float32:  {"NaN": 0x7fc00000, "+Inf": 0x7f800000, "-Inf": 0xff800000, "": 0x7f7fffff},
		BFloat16: {"NaN": 0x7fc0, "+Inf": 0x7f80, "-Inf": 0xff80, "": 0xff7f},
		Float16:  {"NaN": 0x7e01, "+Inf": 0x7c00, "-Inf": 0xfc00, "": 0x7bff},
	}
	for dtype, values := range bits {
		for name, value := range values {
			for i := range rows * columns {
				data := bytes.Repeat([]byte{0x3f}, rows*columns*dtype.Size())
				var raw [8]byte
				binary.LittleEndian.PutUint64(raw[:], value)
				copy(data[i*dtype.Size():], raw[:dtype.Size()])
				b, err := Encode([]Tensor{
					{Name: "a.ids", DType: Int64, Shape: []int{1}, Data: bytes.Repeat([]byte{0xff}, 8)}, // no float
					{Name: "b.weight", DType: dtype, Shape: []int{rows, columns}, Data: data},
					F32("c.weight", []int{1}, []float32{math.MaxFloat32}),
				}, map[string]string{"format": "pt"})
				require.NoError(t, err)
				for _, src := range []io.Reader{bytes.NewReader(b), iotest.OneByteReader(bytes.NewReader(b)), iotest.HalfReader(bytes.NewReader(b))} {
					got, err := io.ReadAll(CheckFinite(src, int64(len(b))))
					if name == "" {
						require.NoError(t, err)
						require.Equal(t, b, got)
						continue
					}
					require.ErrorIs(t, err, ErrNotFinite)
					require.ErrorContains(t, err, fmt.Sprintf("tensor %q (%s) is %s at [%d %d]", "b.weight", dtype, name, i/columns, i%columns))
				}
			}
		}
	}
	_, err := io.ReadAll(CheckFinite(bytes.NewReader([]byte("version https://git-lfs.github.com/spec/v1\n")), 43))
	require.ErrorIs(t, err, ErrFormat)
}

func BenchmarkCheckFinite(b *testing.B) {
	for _, dtype := range []DType{Float32, BFloat16} {
		b.Run(string(dtype), func(b *testing.B) {
			const bytesOf = 64 << 20
			file, err := Encode([]Tensor{{Name: "w", DType: dtype, Shape: []int{bytesOf / dtype.Size()}, Data: bytes.Repeat([]byte{0x3f}, bytesOf)}}, nil)
			require.NoError(b, err)
			b.SetBytes(bytesOf)
			for b.Loop() {
				_, err := io.Copy(io.Discard, CheckFinite(bytes.NewReader(file), int64(len(file))))
				require.NoError(b, err)
			}
		})
	}
}
