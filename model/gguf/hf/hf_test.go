package hf

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"io"
	"io/fs"
	"math"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/gguf"
	"github.com/reprise-rl/reprise/model/safetensors"
)

// golden is the folder of testdata/tiny.gguf, by Python.
type golden struct {
	Files   map[string]string
	Tensors map[string]struct {
		Shape []int
		F32   string
	}
	RopeFactors []float64 `json:"rope_factors"`
}

func tiny(t testing.TB) (*gguf.OpenFiles, golden) {
	t.Helper()
	f, err := gguf.Open("../testdata/tiny.gguf")
	require.NoError(t, err)
	t.Cleanup(func() { f.Close() })
	b, err := os.ReadFile("../testdata/tiny.json")
	require.NoError(t, err)
	var g golden
	require.NoError(t, json.Unmarshal(b, &g))
	return f, g
}

func TestFolder(t *testing.T) {
	f, g := tiny(t)
	m, err := New(f.File)
	require.NoError(t, err)
	files := m.Files("float32")
	require.Len(t, files, len(g.Files))
	for name, want := range g.Files {
		require.Equal(t, want, string(files[name]), name)
	}
	var seen []int
	fsys, err := m.FS(t.Context(), func(i, of int) {
		require.Equal(t, len(g.Tensors), of)
		seen = append(seen, i)
	})
	require.NoError(t, err)
	file, err := fsys.Open(WeightsFile)
	require.NoError(t, err)
	defer file.Close()
	info, err := file.Stat()
	require.NoError(t, err)
	stream, err := safetensors.NewStream(file, info.Size())
	require.NoError(t, err)
	for range stream.Tensors() {
		in, err := stream.Next()
		require.NoError(t, err)
		want := g.Tensors[in.Name]
		require.Equal(t, want.Shape, in.Shape, in.Name)
		h := sha256.New()
		_, err = io.Copy(h, stream)
		require.NoError(t, err)
		require.Equal(t, want.F32, hex.EncodeToString(h.Sum(nil)), in.Name)
	}
	require.Len(t, seen, len(g.Tensors))
	_, err = stream.Next()
	require.ErrorIs(t, err, io.EOF)
	_, err = fsys.Open("none")
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// Each wrong or unknown thing is refused by its name.
func TestRefused(t *testing.T) {
	for name, test := range map[string]struct {
		change func(f *gguf.File)
		says   string
	}{
		"architecture":    {set("general.architecture", "smollm3"), `general.architecture is "smollm3": supported are llama, qwen2, qwen3`},
		"adapter":         {set("general.type", "adapter"), `general.type is "adapter"`},
		"shard":           {set("split.count", uint64(3)), "split.count is 3: this is one of llama.cpp's shards"},
		"pre smollm3":     {set("tokenizer.ggml.pre", "smollm3"), `tokenizer.ggml.pre is "smollm3": supported are llama-bpe, qwen2, smollm`},
		"no pre":          {drop("tokenizer.ggml.pre"), `the metadata lack "tokenizer.ggml.pre"`},
		"tokenizer":       {set("tokenizer.ggml.model", "llama"), `tokenizer.ggml.model is "llama", only "gpt2"`},
		"tokenizer key":   {set("tokenizer.ggml.remove_extra_whitespaces", true), "tokenizer.ggml.remove_extra_whitespaces is not carried over"},
		"template":        {set("tokenizer.chat_template.rag", "x"), "tokenizer.chat_template.rag is not carried over"},
		"add eos":         {set("tokenizer.ggml.add_eos_token", true), "tokenizer.ggml.add_eos_token is true"},
		"add sep":         {set("tokenizer.ggml.add_sep_token", true), "tokenizer.ggml.add_sep_token is true"},
		"space":           {set("tokenizer.ggml.add_space_prefix", true), "tokenizer.ggml.add_space_prefix is true"},
		"no eos":          {drop("tokenizer.ggml.eos_token_id"), `the metadata lack "tokenizer.ggml.eos_token_id"`},
		"eos":             {set("tokenizer.ggml.eos_token_id", uint64(9999)), "tokenizer.ggml.eos_token_id is 9999, which is no token of the 264"},
		"bos":             {set("tokenizer.ggml.bos_token_id", "x"), `metadata "tokenizer.ggml.bos_token_id" is "x"`},
		"types":           {set("tokenizer.ggml.token_type", []int64{1}), "has 264 tokens, and tokenizer.ggml.token_type 1 types"},
		"merge":           {set("tokenizer.ggml.merges", []string{"a zz"}), `merge 0, "a zz", is not two tokens that make a third`},
		"scaling":         {set("llama.rope.scaling.type", "yarn"), `llama.rope.scaling.type is "yarn": it is not carried over`},
		"factor":          {set("llama.rope.scaling.factor", float32(2)), `llama.rope.scaling.factor is "2"`},
		"experts":         {set("llama.expert_count", uint64(8)), `llama.expert_count is "8"`},
		"logit scale":     {set("llama.logit_scale", float32(0.5)), `llama.logit_scale is "0.5"`},
		"window":          {set("llama.attention.sliding_window", uint64(4096)), `llama.attention.sliding_window is "4096"`},
		"unknown key":     {set("llama.attention.sinks", true), `llama.attention.sinks is "true"`},
		"value length":    {set("llama.attention.value_length", uint64(8)), "llama.attention.value_length is 8 and heads have 16 numbers"},
		"partial":         {set("llama.rope.dimension_count", uint64(8)), "llama.rope.dimension_count is 8 and heads have 16 numbers"},
		"heads by layer":  {set("llama.attention.head_count_kv", []int64{2, 2}), `metadata "llama.attention.head_count_kv" is "[2 2]", must be an integer`},
		"no heads":        {set("llama.attention.head_count", uint64(0)), "llama.attention.head_count is 0, must be from 1"},
		"kv":              {set("llama.attention.head_count_kv", uint64(3)), "head_count 4 is not a multiple of llama.attention.head_count_kv 3"},
		"layers":          {set("llama.block_count", uint64(1<<30)), "llama.block_count is 1073741824, must be from 1 to 4096"},
		"no layers":       {drop("llama.block_count"), `the metadata lack "llama.block_count"`},
		"epsilon":         {set("llama.attention.layer_norm_rms_epsilon", float32(math.NaN())), "llama.attention.layer_norm_rms_epsilon is NaN, must be positive"},
		"vocabulary":      {set("llama.vocab_size", uint64(300)), "llama.vocab_size is 300 and tokenizer.ggml.tokens has 264"},
		"quantization":    {set("general.quantization_version", uint64(1)), "general.quantization_version is 1, only 2"},
		"more layers":     {set("llama.block_count", uint64(3)), `missing tensor "blk.2.attn_norm.weight" of shape [64]`},
		"fewer layers":    {set("llama.block_count", uint64(1)), `tensor "blk.1.attn_norm.weight" of shape [64] is not carried over`},
		"missing tensor":  {rename("blk.0.attn_q.weight", "blk.0.attn_qkv.weight"), `missing tensor "blk.0.attn_q.weight" of shape [64 64]`},
		"unknown tensor":  {rename("blk.0.attn_q.weight", "blk.0.attn_qkv.weight"), `tensor "blk.0.attn_qkv.weight" of shape [64 64] is not carried over`},
		"misshapen":       {reshape("blk.1.ffn_down.weight", 96, 64), `tensor "blk.1.ffn_down.weight" has shape [96 64], should be [64 96]`},
		"rope factors":    {rename("output_norm.weight", "rope_freqs.weight"), `tensor "rope_freqs.weight" has shape [64], should be [8]`},
		"qwen2 by name":   {set("general.architecture", "qwen2"), `the metadata lack "qwen2.block_count"`},
		"token's type":    {setType(7, 6), `token 7, "Ą", has type 6`},
		"same token":      {setToken(7, "!"), `token 36, "!", is empty or has the text of token 7`},
		"bos not unused":  {setType(1, 5), "tokenizer.ggml.bos_token_id is 1, which is no token"},
		"two at once (1)": {both(set("llama.expert_count", uint64(8)), set("tokenizer.ggml.pre", "tekken")), `llama.expert_count is "8"`},
		"two at once (2)": {both(set("llama.expert_count", uint64(8)), set("tokenizer.ggml.pre", "tekken")), `tokenizer.ggml.pre is "tekken"`},
	} {
		t.Run(name, func(t *testing.T) {
			f, _ := tiny(t)
			test.change(f.File)
			_, err := New(f.File)
			require.ErrorIs(t, err, ErrModel)
			require.ErrorContains(t, err, test.says)
		})
	}
}

func set(key string, value any) func(*gguf.File) {
	return func(f *gguf.File) { f.Metadata[key] = value }
}

func drop(key string) func(*gguf.File) { return func(f *gguf.File) { delete(f.Metadata, key) } }

func both(a, b func(*gguf.File)) func(*gguf.File) { return func(f *gguf.File) { a(f); b(f) } }

func rename(from, to string) func(*gguf.File) {
	return func(f *gguf.File) {
		for i := range f.Tensors {
			if f.Tensors[i].Name == from {
				f.Tensors[i].Name = to
			}
		}
	}
}

func reshape(name string, shape ...int) func(*gguf.File) {
	return func(f *gguf.File) {
		for i := range f.Tensors {
			if f.Tensors[i].Name == name {
				f.Tensors[i].Shape = shape
			}
		}
	}
}

func setType(id int, kind int64) func(*gguf.File) {
	return func(f *gguf.File) { f.Metadata["tokenizer.ggml.token_type"].([]int64)[id] = kind }
}

func setToken(id int, text string) func(*gguf.File) {
	return func(f *gguf.File) { f.Metadata["tokenizer.ggml.tokens"].([]string)[id] = text }
}

// Neutral values of keys that would change numbers otherwise, and keys without an effect, are no
// reason to refuse.
func TestNeutralKeys(t *testing.T) {
	f, g := tiny(t)
	for _, change := range []func(*gguf.File){
		set("llama.rope.scaling.type", "none"), set("llama.rope.scaling.factor", float32(1)), set("llama.expert_count", uint64(0)),
		set("llama.attention.key_length", uint64(16)), set("split.count", uint64(1)), set("general.sampling.temp", float32(0.6)),
		set("quantize.imatrix.file", "x"), set("tokenizer.ggml.fim_pre_token_id", uint64(5)),
	} {
		change(f.File)
	}
	m, err := New(f.File)
	require.NoError(t, err)
	require.Equal(t, g.Files[ConfigFile], string(m.Files("float32")[ConfigFile]))
	require.Contains(t, string(m.Files("bfloat16")[ConfigFile]), `"torch_dtype": "bfloat16"`)
}

// Llama 3's factors of rotary positions become its rope_scaling; any others are refused.
func TestRopeFactors(t *testing.T) {
	_, g := tiny(t)
	require.Len(t, g.RopeFactors, 32)
	s := ropeScaling{factor: 32, low: 1, high: 4, original: 8192}
	for i, v := range s.factors(500000, 64) {
		require.InEpsilon(t, v, g.RopeFactors[i], 1e-6)
	}
}

// A number that is not finite is refused when it is read, with its tensor's name.
func TestNotFinite(t *testing.T) {
	f, _ := tiny(t)
	norm, ok := f.Tensor("output_norm.weight")
	require.True(t, ok)
	v := make([]float32, norm.Columns())
	require.NoError(t, f.ReadRows(norm, 0, v))
	content, err := os.ReadFile("../testdata/tiny.gguf")
	require.NoError(t, err)
	number := binary.LittleEndian.AppendUint32(nil, math.Float32bits(v[5]))
	require.Equal(t, 1, bytes.Count(content, number))
	content = bytes.Replace(content, number, []byte{0, 0, 0x80, 0x7f}, 1) // +Inf
	altered, err := gguf.Read(bytes.NewReader(content), int64(len(content)))
	require.NoError(t, err)
	m, err := New(altered)
	require.NoError(t, err)
	fsys, err := m.FS(t.Context(), nil)
	require.NoError(t, err)
	_, err = fs.ReadFile(fsys, WeightsFile)
	require.ErrorIs(t, err, ErrModel)
	require.ErrorContains(t, err, `tensor "output_norm.weight": number 5 is +Inf`)
}

func TestUnpermuted(t *testing.T) {
	require.Equal(t, []float32{0, 0, 2, 2, 4, 4, 1, 1, 3, 3, 5, 5}, unpermuted([]float32{0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5}, 6, 2))
}

func TestNumber(t *testing.T) {
	for v, want := range map[number]string{
		0: "0.0", 1: "1.0", 1e6: "1000000.0", 1e16: "1e+16", 1e-5: "1e-05", 0.0001: "0.0001", -2.5: "-2.5", number(decimal(9.999999747378752e-06)): "1e-05",
	} {
		require.Equal(t, want, v.String())
	}
}
