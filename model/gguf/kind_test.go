package gguf

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// golden is random blocks of a kind and what the Python package gguf reads in them.
type golden struct {
	Raw    []byte
	SHA256 string
	First  []uint32 // bits of the first numbers
}

func goldens(t testing.TB) map[string]golden {
	t.Helper()
	b, err := os.ReadFile("testdata/blocks.json")
	require.NoError(t, err)
	var out map[string]golden
	require.NoError(t, json.Unmarshal(b, &out))
	return out
}

func digest(v []float32) string {
	h := sha256.New()
	for _, x := range v {
		h.Write(binary.LittleEndian.AppendUint32(nil, math.Float32bits(x)))
	}
	return hex.EncodeToString(h.Sum(nil))
}

func TestDequantize(t *testing.T) {
	all := goldens(t)
	for kind, l := range kinds {
		g := all[l.name]
		require.NotEmpty(t, g.Raw, l.name)
		require.Zero(t, len(g.Raw)%l.bytes)
		v := make([]float32, len(g.Raw)/l.bytes*l.block)
		kind.Dequantize(v, g.Raw)
		for i, bits := range g.First {
			require.Equal(t, bits, math.Float32bits(v[i]), "%s: number %d is %v", l.name, i, v[i])
		}
		require.Equal(t, g.SHA256, digest(v), l.name)
	}
}

func TestEveryHalf(t *testing.T) {
	var v []float32
	for h := range 1 << 16 {
		if h&0x7fff > 0x7c00 {
			continue // NaN
		}
		var x [1]float32
		F16.Dequantize(x[:], binary.LittleEndian.AppendUint16(nil, uint16(h)))
		v = append(v, x[0])
	}
	require.Equal(t, goldens(t)["every float16 but NaN"].SHA256, digest(v))
}

func TestKindNames(t *testing.T) {
	require.Equal(t, "Q4_K", Q4_K.String())
	require.Equal(t, "Q5_K", Kind(13).String())
	require.Equal(t, "99, which is unknown", Kind(99).String())
	require.Equal(t, "F32, F16, Q4_0, Q4_1, Q8_0, Q4_K, Q6_K, BF16", supported())
}
