package model

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/draw"
	"github.com/reprise-rl/reprise/model/safetensors"
)

func encode(t *testing.T, ts []safetensors.Tensor) []byte {
	t.Helper()
	b, err := safetensors.Encode(ts, nil)
	require.NoError(t, err)
	return b
}

func asBF16(x safetensors.Tensor) safetensors.Tensor {
	out := safetensors.Tensor{Name: x.Name, DType: safetensors.BFloat16, Shape: x.Shape}
	for i := 0; i < len(x.Data); i += 4 {
		out.Data = append(out.Data, x.Data[i+2:i+4]...) // truncated, as a test may
	}
	return out
}

func write(t *testing.T, dir string, files map[string][]byte) {
	t.Helper()
	for name, b := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), b, 0o600))
	}
}

func TestNewParamsAreDrawn(t *testing.T) {
	at := draw.Address{Seed: 1, Purpose: draw.Weights}
	a, b := NewParams(tiny(), at), NewParams(tiny(), at)
	require.Equal(t, a, b)
	at.Seed = 2
	require.NotEqual(t, a.Values[0], NewParams(tiny(), at).Values[0])
	var square float64
	for i, ts := range tiny().Tensors() {
		switch {
		case len(ts.Shape) == 2:
			continue
		case filepath.Ext(ts.Name) == ".bias":
			require.Equal(t, float32(0), a.Values[i][0])
		default:
			require.Equal(t, float32(1), a.Values[i][0])
		}
	}
	for _, x := range a.Values[0] {
		square += float64(x * x)
	}
	require.InDelta(t, 0.3, math.Sqrt(square/float64(len(a.Values[0]))), 0.03)
}

func TestOpenFolderForms(t *testing.T) {
	for _, tied := range []bool{true, false} {
		c := tiny()
		c.TieEmbeddings = tied
		p := tinyParams(c)
		ts := p.tensors("")
		dir := t.TempDir()
		write(t, dir, map[string][]byte{ConfigFile: c.JSON(), WeightsFile: encode(t, ts)})
		got, err := readParams(os.DirFS(dir))
		require.NoError(t, err)
		require.Equal(t, p, got)

		// Two shards, one of them bfloat16.
		half := len(ts) / 2
		place := map[string]string{}
		var second []safetensors.Tensor
		for i, x := range ts {
			place[x.Name] = "model-00001-of-00002.safetensors"
			if i >= half {
				place[x.Name] = "model-00002-of-00002.safetensors"
				second = append(second, asBF16(x))
			}
		}
		index, err := json.Marshal(map[string]any{"metadata": map[string]any{"total_size": 1}, "weight_map": place})
		require.NoError(t, err)
		files := map[string][]byte{ConfigFile: c.JSON(), WeightsFile + indexEnding: index,
			"model-00001-of-00002.safetensors": encode(t, ts[:half]), "model-00002-of-00002.safetensors": encode(t, second)}
		dir = t.TempDir()
		write(t, dir, files)
		got, err = readParams(os.DirFS(dir))
		require.NoError(t, err)
		require.Equal(t, p.Values[:half], got.Values[:half])
		for i := half; i < len(ts); i++ {
			for j, x := range p.Values[i] {
				require.Equal(t, math.Float32frombits(math.Float32bits(x)&0xffff0000), got.Values[i][j])
			}
		}
		f, err := OpenFolder(dir)
		require.NoError(t, err)
		again, err := f.First().Params()
		require.NoError(t, err)
		require.Equal(t, got, again)
		require.NoError(t, f.Close())
		_, err = f.First().Params()
		require.Error(t, err, "it is closed")
	}
}

func TestOpenFolderReportsAllProblems(t *testing.T) {
	c := tiny()
	ts := tinyParams(c).tensors("")
	ts[3].Name = "model.layers.0.self_attn.nobody.bias"
	ts[1].Shape = []int{4, 4}
	ts[2] = safetensors.Tensor{Name: ts[2].Name, DType: safetensors.Int32, Shape: ts[2].Shape, Data: ts[2].Data}
	_, err := OpenFS(held(map[string][]byte{ConfigFile: c.JSON(), WeightsFile: encode(t, ts)}))
	require.ErrorIs(t, err, ErrTensors)
	require.ErrorContains(t, err, `missing "model.layers.0.self_attn.q_proj.bias" of shape [16]`)
	require.ErrorContains(t, err, `extra "model.layers.0.self_attn.nobody.bias"`)
	require.ErrorContains(t, err, `"model.layers.0.input_layernorm.weight" has shape [4 4], should be [16]`)
	require.ErrorContains(t, err, "has dtype I32")
}

func TestOpenFolderTiedCopy(t *testing.T) {
	c := tiny()
	p := tinyParams(c)
	shape := []int{c.VocabSize, c.HiddenSize}
	ts := append(p.tensors(""), safetensors.F32(headName, shape, p.Values[0]))
	_, err := OpenFS(held(map[string][]byte{ConfigFile: c.JSON(), WeightsFile: encode(t, ts)}))
	require.NoError(t, err)
	other := append([]float32{}, p.Values[0]...)
	other[5]++
	ts[len(ts)-1] = safetensors.F32(headName, shape, other)
	_, err = OpenFS(held(map[string][]byte{ConfigFile: c.JSON(), WeightsFile: encode(t, ts)}))
	require.ErrorContains(t, err, "differs from the embedding")
}

func TestOpenFolderStaysInside(t *testing.T) {
	c := tiny()
	outside := t.TempDir()
	write(t, outside, map[string][]byte{"w.safetensors": encode(t, tinyParams(c).tensors(""))})
	index := func(shard string) []byte {
		b, err := json.Marshal(map[string]any{"weight_map": map[string]string{"model.norm.weight": shard}})
		require.NoError(t, err)
		return b
	}
	for _, shard := range []string{"../w.safetensors", filepath.Join(outside, "w.safetensors"), "..", ""} {
		dir := t.TempDir()
		write(t, dir, map[string][]byte{ConfigFile: c.JSON(), WeightsFile + indexEnding: index(shard)})
		_, err := OpenFolder(dir)
		require.ErrorContains(t, err, "not a file of the folder", shard)
	}
	dir := t.TempDir()
	write(t, dir, map[string][]byte{ConfigFile: c.JSON()})
	require.NoError(t, os.Symlink(filepath.Join(outside, "w.safetensors"), filepath.Join(dir, WeightsFile)))
	_, err := OpenFolder(dir)
	require.Error(t, err)
	_, err = OpenFolder(filepath.Join(dir, "nobody"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestOpenFolderTruncated(t *testing.T) {
	b := encode(t, tinyParams(tiny()).tensors(""))
	for _, cut := range [][]byte{b[:len(b)-1], b[:4], b[:100], append(bytes.Clone(b), 0)} {
		_, err := OpenFS(held(map[string][]byte{ConfigFile: tiny().JSON(), WeightsFile: cut}))
		require.ErrorIs(t, err, safetensors.ErrFormat)
	}
	binary.LittleEndian.PutUint64(b, 1<<40)
	_, err := OpenFS(held(map[string][]byte{ConfigFile: tiny().JSON(), WeightsFile: b}))
	require.ErrorIs(t, err, safetensors.ErrFormat)
}
