package model

import (
	"fmt"
	"slices"
	"strings"
)

// Family is an architecture that this package computes. The zero value is Qwen2.
type Family uint8

const (
	// Qwen2 is Qwen2 and Qwen2.5.
	Qwen2 Family = iota
	// Qwen3 is the dense models of Qwen3.
	Qwen3
	// Llama is Llama 3 to 3.3.
	Llama
	familyCount
)

// family is what a family's config.json means, and which tensors its layers have.
type family struct {
	modelType    string // model_type in config.json
	architecture string // architectures in config.json
	// lacks are the tensors of a layer that the family has none of.
	lacks []layerTensor
	// headDim is head_dim where config.json has none; 0 is hidden_size / num_attention_heads.
	headDim int
	// positions is max_position_embeddings where config.json has none.
	positions int
	// llama3 says that rotary positions may be scaled as Llama 3.1's.
	llama3 bool
	// asTransformers says that the family follows transformers in two more places, which Qwen2
	// does not because its bits are older: the input embedding of pad_token_id gets no gradient,
	// and the frequencies of rotary positions are rounded to float32 before their inverse is.
	asTransformers bool
	// windows says that config.json has the fields of sliding windows, which must be off.
	windows bool
	// off are fields that must be false or absent. They are written as false.
	off []string
	// ignored are fields without an effect that config.json is written with.
	ignored map[string]any
}

// families is all that distinguishes one family from another.
var families = [familyCount]family{
	Qwen2: {
		modelType: "qwen2", architecture: "Qwen2ForCausalLM", positions: 32_768,
		lacks: []layerTensor{queryNorm, keyNorm}, windows: true,
	},
	Qwen3: {
		modelType: "qwen3", architecture: "Qwen3ForCausalLM", positions: 32_768, headDim: 128,
		lacks: []layerTensor{queryBias, keyBias, valueBias}, windows: true, asTransformers: true,
		off: []string{"attention_bias"},
	},
	Llama: {
		modelType: "llama", architecture: "LlamaForCausalLM", positions: 2048, llama3: true, asTransformers: true,
		lacks: []layerTensor{queryBias, queryNorm, keyBias, keyNorm, valueBias},
		off:   []string{"attention_bias", "mlp_bias"}, ignored: map[string]any{"pretraining_tp": 1},
	},
}

// foreign are fields of config.json that belong to other architectures, whatever model_type
// says: mixtures of experts, latent attention, partial rotary positions.
var foreign = []string{
	"num_experts", "num_local_experts", "n_routed_experts", "num_experts_per_tok", "moe_intermediate_size",
	"kv_lora_rank", "q_lora_rank", "qk_rope_head_dim", "partial_rotary_factor",
}

// supported lists what a config.json may describe, for errors.
func supported() string {
	var names []string
	for _, f := range families {
		scaling := ""
		if f.llama3 {
			scaling = `, rope_type "default" or "llama3"`
		}
		names = append(names, fmt.Sprintf("%q (%s%s)", f.modelType, f.architecture, scaling))
	}
	return strings.Join(names, ", ")
}

// familyOf finds a family by model_type.
func familyOf(modelType string) (Family, bool) {
	i := slices.IndexFunc(families[:], func(f family) bool { return f.modelType == modelType })
	return Family(max(0, i)), i >= 0
}

func (c Config) family() *family { return &families[c.Family] }

// layerTensor is a kind of tensor in a layer.
type layerTensor int

// The tensors of a layer in their order. A family lacks some.
const (
	inputNorm layerTensor = iota
	queryWeight
	queryBias
	queryNorm
	keyWeight
	keyBias
	keyNorm
	valueWeight
	valueBias
	outputWeight
	postNorm
	gateWeight
	upWeight
	downWeight
	layerTensors // how many there are
)

// places are the indices of a layer's tensors in the layer, −1 where the family lacks one,
// and how many it has.
var places = func() (out [familyCount]struct {
	at    [layerTensors]int
	count int
}) {
	for f := range families {
		for t := range layerTensors {
			if slices.Contains(families[f].lacks, t) {
				out[f].at[t] = -1
				continue
			}
			out[f].at[t] = out[f].count
			out[f].count++
		}
	}
	return out
}()

// layerShapes are the shapes of all tensors that a layer can have, named after a prefix.
func (c Config) layerShapes(prefix string) [layerTensors]TensorShape {
	d, ff := c.HiddenSize, c.IntermediateSize
	q, kv := c.Heads*c.HeadDim, c.KVHeads*c.HeadDim
	return [layerTensors]TensorShape{
		inputNorm:    {prefix + "input_layernorm.weight", []int{d}},
		queryWeight:  {prefix + "self_attn.q_proj.weight", []int{q, d}},
		queryBias:    {prefix + "self_attn.q_proj.bias", []int{q}},
		queryNorm:    {prefix + "self_attn.q_norm.weight", []int{c.HeadDim}},
		keyWeight:    {prefix + "self_attn.k_proj.weight", []int{kv, d}},
		keyBias:      {prefix + "self_attn.k_proj.bias", []int{kv}},
		keyNorm:      {prefix + "self_attn.k_norm.weight", []int{c.HeadDim}},
		valueWeight:  {prefix + "self_attn.v_proj.weight", []int{kv, d}},
		valueBias:    {prefix + "self_attn.v_proj.bias", []int{kv}},
		outputWeight: {prefix + "self_attn.o_proj.weight", []int{d, q}},
		postNorm:     {prefix + "post_attention_layernorm.weight", []int{d}},
		gateWeight:   {prefix + "mlp.gate_proj.weight", []int{ff, d}},
		upWeight:     {prefix + "mlp.up_proj.weight", []int{ff, d}},
		downWeight:   {prefix + "mlp.down_proj.weight", []int{d, ff}},
	}
}

// TensorShape is the name and shape of a tensor in a Hugging Face model.
type TensorShape struct {
	Name  string
	Shape []int
}

// Elements is the number of the tensor's elements.
func (t TensorShape) Elements() int {
	n := 1
	for _, d := range t.Shape {
		n *= d
	}
	return n
}

// Tensors lists the model's tensors in the order that is used everywhere: the embedding,
// the layers from first to last, the final norm, and the head unless it is tied. A
// critic's head is a value head, named as in transformers' …ForTokenClassification.
// Matrices are [out, in].
func (c Config) Tensors() []TensorShape {
	d := c.HiddenSize
	ts := []TensorShape{{"model.embed_tokens.weight", []int{c.VocabSize, d}}}
	for i := range c.Layers {
		for t, shape := range c.layerShapes(fmt.Sprintf("model.layers.%d.", i)) {
			if places[c.Family].at[t] >= 0 {
				ts = append(ts, shape)
			}
		}
	}
	ts = append(ts, TensorShape{"model.norm.weight", []int{d}})
	switch {
	case c.ValueHead:
		ts = append(ts, TensorShape{valueHeadName, []int{1, d}}, TensorShape{"score.bias", []int{1}})
	case !c.TieEmbeddings:
		ts = append(ts, TensorShape{headName, []int{c.VocabSize, d}})
	}
	return ts
}

const (
	headName      = "lm_head.weight"
	valueHeadName = "score.weight"
)

// layerStart is the index in Tensors of layer i's first tensor.
func (c Config) layerStart(i int) int { return 1 + i*places[c.Family].count }

// finalNorm is the index in Tensors of the last norm.
func (c Config) finalNorm() int { return c.layerStart(c.Layers) }

// head is the index in Tensors of the output head, which is the embedding if it is tied.
func (c Config) head() int {
	if c.TieEmbeddings {
		return 0
	}
	return c.finalNorm() + 1
}

// valueHead is the index in Tensors of a critic's head; its bias comes after it.
func (c Config) valueHead() int { return c.finalNorm() + 1 }

// Parameters is the number of scalars a policy has.
func (c Config) Parameters() int64 {
	var n int64
	for _, t := range c.Tensors() {
		n += int64(t.Elements())
	}
	return n
}
