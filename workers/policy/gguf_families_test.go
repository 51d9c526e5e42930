package policy

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/safetensors"
	"github.com/reprise-rl/reprise/model/tokenizer"
)

// ggufWriter makes a GGUF file of values and float32 tensors.
type ggufWriter struct {
	pairs, infos, data []byte
	counts             [2]uint64 // tensors, pairs
}

func text(b []byte, s string) []byte {
	return append(binary.LittleEndian.AppendUint64(b, uint64(len(s))), s...)
}

// set adds a value: uint32, int32 (in lists only), float32, bool, string, []string or []int32.
func (w *ggufWriter) set(key string, value any) {
	array := func(kind uint32, n int) {
		w.pairs = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(w.pairs, 9), kind)
		w.pairs = binary.LittleEndian.AppendUint64(w.pairs, uint64(n))
	}
	w.pairs = text(w.pairs, key)
	w.counts[1]++
	switch v := value.(type) {
	case uint32:
		w.pairs = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(w.pairs, 4), v)
	case float32:
		w.pairs = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(w.pairs, 6), math.Float32bits(v))
	case bool:
		w.pairs = append(binary.LittleEndian.AppendUint32(w.pairs, 7), map[bool]byte{true: 1}[v])
	case string:
		w.pairs = text(binary.LittleEndian.AppendUint32(w.pairs, 8), v)
	case []string:
		array(8, len(v))
		for _, s := range v {
			w.pairs = text(w.pairs, s)
		}
	case []int32:
		array(5, len(v))
		for _, x := range v {
			w.pairs = binary.LittleEndian.AppendUint32(w.pairs, uint32(x))
		}
	default:
		panic(fmt.Sprintf("%T", value))
	}
}

func (w *ggufWriter) tensor(name string, shape []int, v []float32) {
	w.counts[0]++
	w.infos = binary.LittleEndian.AppendUint32(text(w.infos, name), uint32(len(shape)))
	for _, d := range slices.Backward(shape) {
		w.infos = binary.LittleEndian.AppendUint64(w.infos, uint64(d))
	}
	w.infos = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint32(w.infos, 0), uint64(len(w.data)))
	for _, x := range v {
		w.data = binary.LittleEndian.AppendUint32(w.data, math.Float32bits(x))
	}
	w.data = append(w.data, make([]byte, -len(w.data)&31)...)
}

func (w *ggufWriter) write(t *testing.T) string {
	t.Helper()
	out := append([]byte("GGUF"), 3, 0, 0, 0)
	out = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(out, w.counts[0]), w.counts[1])
	out = append(append(out, w.pairs...), w.infos...)
	out = append(append(out, make([]byte, -len(out)&31)...), w.data...)
	path := filepath.Join(t.TempDir(), "model.gguf")
	require.NoError(t, os.WriteFile(path, out, 0o600))
	return path
}

// tensorsOf reads a folder's tensors.
func tensorsOf(t *testing.T, dir string) map[string]safetensors.Tensor {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, model.WeightsFile))
	require.NoError(t, err)
	defer f.Close()
	info, err := f.Stat()
	require.NoError(t, err)
	s, err := safetensors.NewStream(f, info.Size())
	require.NoError(t, err)
	out := map[string]safetensors.Tensor{}
	for range s.Tensors() {
		in, err := s.Next()
		require.NoError(t, err)
		v, err := s.Float32s(nil)
		require.NoError(t, err)
		out[in.Name] = safetensors.F32(in.Name, in.Shape, v)
	}
	return out
}

// asGGUF writes a folder as llama.cpp's converter does: other names, and a Llama's queries and keys
// with the halves of each rotary pair beside each other.
func asGGUF(t *testing.T, dir string, c model.Config, arch, pre string) *ggufWriter {
	t.Helper()
	w := &ggufWriter{}
	w.set("general.architecture", arch)
	for key, v := range map[string]int{
		"block_count": c.Layers, "context_length": c.MaxPositions, "embedding_length": c.HiddenSize, "feed_forward_length": c.IntermediateSize,
		"attention.head_count": c.Heads, "attention.head_count_kv": c.KVHeads, "attention.key_length": c.HeadDim, "attention.value_length": c.HeadDim,
	} {
		w.set(arch+"."+key, uint32(v))
	}
	w.set(arch+".rope.freq_base", float32(c.RopeTheta))
	w.set(arch+".attention.layer_norm_rms_epsilon", float32(c.RMSNormEps))
	asVocabulary(t, w, dir, c, pre)

	names := strings.NewReplacer("model.layers.", "blk.", "self_attn.q_proj", "attn_q", "self_attn.k_proj", "attn_k", "self_attn.v_proj", "attn_v",
		"self_attn.o_proj", "attn_output", "self_attn.q_norm", "attn_q_norm", "self_attn.k_norm", "attn_k_norm", "mlp.gate_proj", "ffn_gate",
		"mlp.up_proj", "ffn_up", "mlp.down_proj", "ffn_down", "input_layernorm", "attn_norm", "post_attention_layernorm", "ffn_norm",
		"model.embed_tokens", "token_embd", "model.norm", "output_norm", "lm_head", "output")
	for name, tensor := range tensorsOf(t, dir) {
		v, err := tensor.Float32s()
		require.NoError(t, err)
		if arch == "llama" && (strings.Contains(name, "q_proj") || strings.Contains(name, "k_proj")) {
			out, columns := make([]float32, len(v)), tensor.Shape[1]
			for row := range tensor.Shape[0] {
				head, i := row/c.HeadDim, row%c.HeadDim
				to := head*c.HeadDim + i%(c.HeadDim/2)*2 + i/(c.HeadDim/2)
				copy(out[to*columns:], v[row*columns:(row+1)*columns])
			}
			v = out
		}
		w.tensor(names.Replace(name), tensor.Shape, v)
	}
	return w
}

// asVocabulary writes the tokenizer; ids without a token get names, as llama.cpp's converter gives them.
func asVocabulary(t *testing.T, w *ggufWriter, dir string, c model.Config, pre string) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "tokenizer.json"))
	require.NoError(t, err)
	var tok struct {
		Added []struct {
			ID      int
			Content string
			Special bool
		} `json:"added_tokens"`
		Model struct {
			Vocab  map[string]int
			Merges [][2]string
		}
	}
	require.NoError(t, json.Unmarshal(b, &tok))
	tokens, types := make([]string, c.VocabSize), make([]int32, c.VocabSize)
	for id := range tokens {
		tokens[id], types[id] = fmt.Sprintf("[PAD%d]", id), 5
	}
	for token, id := range tok.Model.Vocab {
		tokens[id], types[id] = token, 1
	}
	for _, a := range tok.Added {
		tokens[a.ID], types[a.ID] = a.Content, map[bool]int32{true: 3, false: 4}[a.Special]
	}
	var merges []string
	for _, m := range tok.Model.Merges {
		merges = append(merges, m[0]+" "+m[1])
	}
	w.set("tokenizer.ggml.model", "gpt2")
	w.set("tokenizer.ggml.pre", pre)
	w.set("tokenizer.ggml.tokens", tokens)
	w.set("tokenizer.ggml.token_type", types)
	w.set("tokenizer.ggml.merges", merges)
	var end uint32
	_, err = fmt.Sscan(string(c.EOS), &end)
	require.NoError(t, err)
	w.set("tokenizer.ggml.eos_token_id", end)
	template, err := os.ReadFile(filepath.Join(dir, "chat_template.jinja"))
	require.NoError(t, err)
	w.set("tokenizer.chat_template", string(template))
}

// folderOf puts the files of a tiny model together from the packages that keep them.
func folderOf(t *testing.T, name string) string {
	t.Helper()
	dir := t.TempDir()
	for _, from := range []string{"../../model/tokenizer/testdata/", "../../model/testdata/"} {
		if _, err := os.Stat(from + name); err != nil {
			require.ErrorIs(t, err, fs.ErrNotExist)
			continue
		}
		entries, err := os.ReadDir(from + name)
		require.NoError(t, err)
		for _, e := range entries {
			b, err := os.ReadFile(filepath.Join(from+name, e.Name()))
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(dir, e.Name()), b, 0o600))
		}
	}
	return dir
}

// A model of each family comes back from a GGUF with its tensors, its shape, and its tokens.
func TestFromGGUFOfFamilies(t *testing.T) {
	for name, of := range map[string]struct{ arch, pre string }{
		"qwen2-tiny": {"qwen2", "qwen2"}, "qwen3-tiny": {"qwen3", "qwen2"}, "llama-tiny": {"llama", "llama-bpe"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := folderOf(t, name)
			read, err := model.OpenFolder(dir)
			require.NoError(t, err)
			want := read.Config
			require.NoError(t, read.Close())
			w := asGGUF(t, dir, want, of.arch, of.pre)
			begin := uint32(want.VocabSize) // no token
			if of.arch == "llama" {
				begin = 433
				w.set("tokenizer.ggml.bos_token_id", begin)
				want.RopeScaling.OriginalPositions = 8192 // the only one that a GGUF can say
				w.tensor("rope_freqs.weight", []int{want.HeadDim / 2}, ropeFactors(want))
			}
			out := filepath.Join(t.TempDir(), "out")
			got, _, err := FromGGUF(t.Context(), []string{w.write(t)}, out, "float32", nil)
			require.NoError(t, err)
			require.Equal(t, tensorsOf(t, dir), tensorsOf(t, out))

			want.InitializerRange, got.InitializerRange = 0, 0 // a GGUF does not have it
			want.BOS, want.Pad, got.BOS = "", "", ""
			require.Equal(t, want, got)

			require.Equal(t, splittingOf(t, dir), splittingOf(t, out))
			wantTokens, err := tokenizer.LoadFolder(dir)
			require.NoError(t, err)
			gotTokens, err := tokenizer.LoadFolder(out)
			require.NoError(t, err)
			b, err := os.ReadFile(filepath.Join(dir, "golden.json"))
			require.NoError(t, err)
			var golden struct{ Encode []struct{ Text string } }
			require.NoError(t, json.Unmarshal(b, &golden))
			require.NotEmpty(t, golden.Encode)
			for _, e := range golden.Encode {
				ids := wantTokens.Encode(e.Text)
				if of.arch == "llama" { // the tiny model's own tokenizer puts nothing before a text; Llama 3's does
					ids = append([]int32{int32(begin)}, ids...)
				}
				require.Equal(t, ids, gotTokens.Encode(e.Text), e.Text)
				require.Equal(t, wantTokens.EncodePlain(e.Text), gotTokens.EncodePlain(e.Text), e.Text)
			}
			messages := []tokenizer.Message{{Role: "user", Content: "Hello 123"}}
			wantText, wantIDs, err := wantTokens.Template(messages, true)
			require.NoError(t, err)
			gotText, gotIDs, err := gotTokens.Template(messages, true)
			require.NoError(t, err)
			require.Equal(t, wantText, gotText)
			require.Equal(t, wantIDs, gotIDs)
			wantLegal, err := wantTokens.Legal(want.VocabSize)
			require.NoError(t, err)
			gotLegal, err := gotTokens.Legal(want.VocabSize)
			require.NoError(t, err)
			require.Equal(t, wantLegal, gotLegal, "ids that have no token")
			require.Equal(t, wantTokens.EOS(), gotTokens.EOS())
		})
	}
}

// splitting is what a tokenizer.json says of texts before they are merged.
type splitting struct {
	Normalizer   any
	PreTokenizer struct {
		Type          string
		PreTokenizers []map[string]any
	} `json:"pre_tokenizer"`
	Model struct {
		IgnoreMerges bool `json:"ignore_merges"`
	}
}

func splittingOf(t *testing.T, dir string) (s splitting) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "tokenizer.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(b, &s))
	for _, step := range s.PreTokenizer.PreTokenizers {
		delete(step, "trim_offsets") // concerns no id; Qwen's own files say false, and the tiny models' true
	}
	return s
}

// Factors that are not those of Llama 3.1's scaling are refused, not dropped.
func TestFromGGUFRefusesRopeFactors(t *testing.T) {
	dir := folderOf(t, "llama-tiny")
	read, err := model.OpenFolder(dir)
	require.NoError(t, err)
	require.NoError(t, read.Close())
	w := asGGUF(t, dir, read.Config, "llama", "llama-bpe")
	w.set("tokenizer.ggml.bos_token_id", uint32(433))
	w.tensor("rope_freqs.weight", []int{8}, []float32{1, 1, 1, 1, 2, 3, 8, 8})
	_, _, err = FromGGUF(t.Context(), []string{w.write(t)}, filepath.Join(t.TempDir(), "out"), "float32", nil)
	require.ErrorContains(t, err, `tensor "rope_freqs.weight" is not Llama 3.1's scaling of rotary positions (factor 8, `)
}

// ropeFactors are llama.cpp's factors of the scaling, in the order of operations of its converter.
func ropeFactors(c model.Config) []float32 {
	s := c.RopeScaling
	var out []float32
	for i := 0; i < c.HeadDim; i += 2 {
		wave := 2 * math.Pi * math.Pow(c.RopeTheta, float64(i)/float64(c.HeadDim))
		original := float64(s.OriginalPositions)
		switch {
		case wave < original/s.HighFrequency:
			out = append(out, 1)
		case wave > original/s.LowFrequency:
			out = append(out, float32(s.Factor))
		default:
			smooth := (original/wave - s.LowFrequency) / (s.HighFrequency - s.LowFrequency)
			out = append(out, float32(1/((1-smooth)/s.Factor+smooth)))
		}
	}
	return out
}
