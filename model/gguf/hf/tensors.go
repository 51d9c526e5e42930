package hf

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/reprise-rl/reprise/model/gguf"
	"github.com/reprise-rl/reprise/model/safetensors"
)

// weight is a tensor of the folder.
type weight struct {
	name string
	from gguf.Tensor
	// heads says that the rows are of so many heads, each in llama.cpp's order; 0 is the right
	// order.
	heads int
}

// place is where a tensor of the file belongs.
type place struct {
	from, to string // names
	shape    []int
	heads    int
}

// layerPlaces are a layer's tensors, without the beginnings of their names.
func (a *architecture) layerPlaces(s shape) []place {
	queries, keys := s.heads*s.headDim, s.kvHeads*s.headDim
	out := []place{
		{"attn_norm.weight", "input_layernorm.weight", []int{s.hidden}, 0},
		{"attn_q.weight", "self_attn.q_proj.weight", []int{queries, s.hidden}, 0},
		{"attn_k.weight", "self_attn.k_proj.weight", []int{keys, s.hidden}, 0},
		{"attn_v.weight", "self_attn.v_proj.weight", []int{keys, s.hidden}, 0},
		{"attn_output.weight", "self_attn.o_proj.weight", []int{s.hidden, queries}, 0},
		{"ffn_norm.weight", "post_attention_layernorm.weight", []int{s.hidden}, 0},
		{"ffn_gate.weight", "mlp.gate_proj.weight", []int{s.feedForward, s.hidden}, 0},
		{"ffn_up.weight", "mlp.up_proj.weight", []int{s.feedForward, s.hidden}, 0},
		{"ffn_down.weight", "mlp.down_proj.weight", []int{s.hidden, s.feedForward}, 0},
	}
	if a.permuted {
		out[1].heads, out[2].heads = s.heads, s.kvHeads
	}
	if a.biases {
		out = append(out,
			place{"attn_q.bias", "self_attn.q_proj.bias", []int{queries}, 0},
			place{"attn_k.bias", "self_attn.k_proj.bias", []int{keys}, 0},
			place{"attn_v.bias", "self_attn.v_proj.bias", []int{keys}, 0})
	}
	if a.headNorms {
		out = append(out,
			place{"attn_q_norm.weight", "self_attn.q_norm.weight", []int{s.headDim}, 0},
			place{"attn_k_norm.weight", "self_attn.k_norm.weight", []int{s.headDim}, 0})
	}
	return out
}

// places are all tensors that the model has, apart from those that may be absent.
func (a *architecture) places(s shape) []place {
	out := []place{
		{"token_embd.weight", "model.embed_tokens.weight", []int{s.vocabulary, s.hidden}, 0},
		{"output_norm.weight", "model.norm.weight", []int{s.hidden}, 0},
	}
	for i := range s.layers {
		for _, p := range a.layerPlaces(s) {
			p.from, p.to = fmt.Sprintf("blk.%d.%s", i, p.from), fmt.Sprintf("model.layers.%d.%s", i, p.to)
			out = append(out, p)
		}
	}
	return out
}

// headName is the tensor of an output matrix of its own.
const headName = "output.weight"

// readTensors finds the folder's tensors in the file, and reports those that are missing,
// misshapen or unknown. It completes the shape by what only tensors tell.
func (m *Model) readTensors(p *problems) {
	byName := map[string]gguf.Tensor{}
	for _, t := range m.file.Tensors {
		byName[t.Name] = t
	}
	m.shape.vocabulary = m.vocabularySize(p)
	wanted := m.arch.places(m.shape)
	_, hasHead := byName[headName]
	if m.shape.tied = !hasHead; hasHead {
		wanted = append(wanted, place{headName, "lm_head.weight", []int{m.shape.vocabulary, m.shape.hidden}, 0})
	}
	for _, w := range wanted {
		t, ok := byName[w.from]
		if !ok {
			p.add("missing tensor %q of shape %v", w.from, w.shape)
			continue
		}
		if !slices.Equal(t.Shape, w.shape) {
			p.add("tensor %q has shape %v, should be %v", w.from, t.Shape, w.shape)
		}
		m.weights = append(m.weights, weight{w.to, t, w.heads})
		delete(byName, w.from)
	}
	if t, ok := byName[ropeFactors]; ok && m.arch.ropeFactors {
		delete(byName, ropeFactors)
		if slices.Equal(t.Shape, []int{m.shape.headDim / 2}) {
			m.readRopeFactors(p, t)
		} else {
			p.add("tensor %q has shape %v, should be %v", ropeFactors, t.Shape, []int{m.shape.headDim / 2})
		}
	}
	for _, t := range m.file.Tensors {
		if _, left := byName[t.Name]; left {
			p.add("tensor %q of shape %v is not carried over", t.Name, t.Shape)
		}
	}
	slices.SortFunc(m.weights, func(a, b weight) int { return cmp.Compare(a.name, b.name) })
}

// vocabularySize is the number of tokens. It must be what the metadata say if they do.
func (m *Model) vocabularySize(p *problems) int {
	n := len(m.tokens.tokens)
	if said := m.shape.vocabulary; said != 0 && said != n {
		p.add("%s.vocab_size is %d and tokenizer.ggml.tokens has %d", m.arch.name, said, n)
	}
	return n
}

// infos are the folder's tensors in float32.
func (m *Model) infos() []safetensors.Info {
	var out []safetensors.Info
	for _, w := range m.weights {
		out = append(out, safetensors.Info{Name: w.name, DType: safetensors.Float32, Shape: w.from.Shape})
	}
	return out
}

// chunk is about how many numbers of a tensor are in memory at once.
const chunk = 1 << 18

// weightReader reads a tensor of the folder as float32.
type weightReader struct {
	file *gguf.File
	w    weight
	row  int // the next
	room []float32
	rest io.Reader // of the rows before
}

// Read implements io.Reader.
func (r *weightReader) Read(b []byte) (int, error) {
	for {
		if r.rest != nil {
			if n, err := r.rest.Read(b); n > 0 || err != io.EOF {
				return n, err
			}
		}
		if r.row == r.w.from.Rows() {
			return 0, io.EOF
		}
		if err := r.fill(); err != nil {
			return 0, err
		}
	}
}

// fill reads the next rows: those of a head if their order has to be changed.
func (r *weightReader) fill() error {
	rows, columns := r.w.from.Rows(), r.w.from.Columns()
	n := min(rows-r.row, max(1, chunk/columns))
	if r.w.heads > 0 {
		n = rows / r.w.heads
	}
	if r.room == nil {
		r.room = make([]float32, n*columns)
	}
	v := r.room[:n*columns]
	if err := r.file.ReadRows(r.w.from, r.row, v); err != nil {
		return err
	}
	for i, x := range v {
		if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
			return fmt.Errorf("%w: tensor %q: number %d is %v", ErrModel, r.w.from.Name, r.row*columns+i, x)
		}
	}
	if r.w.heads > 0 {
		v = unpermuted(v, n, columns)
	}
	r.row, r.rest = r.row+n, safetensors.Floats(v)
	return nil
}

// unpermuted orders a head's rows as Hugging Face has them. llama.cpp rotates neighbours, rows 2i
// and 2i + 1, where Hugging Face rotates row i of the first half with row i of the second.
func unpermuted(v []float32, rows, columns int) []float32 {
	out := make([]float32, len(v))
	for i := range rows / 2 {
		for half := range 2 {
			to := half*rows/2 + i
			copy(out[to*columns:(to+1)*columns], v[(2*i+half)*columns:])
		}
	}
	return out
}
