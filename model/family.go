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
	// biases says that queries, keys and values have biases, and headNorms that each head's
	// queries and keys have norms.
	biases, headNorms bool
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
		biases: true, windows: true,
	},
	Qwen3: {
		modelType: "qwen3", architecture: "Qwen3ForCausalLM", positions: 32_768, headDim: 128,
		headNorms: true, windows: true, asTransformers: true,
		off: []string{"attention_bias"},
	},
	Llama: {
		modelType: "llama", architecture: "LlamaForCausalLM", positions: 2048, llama3: true, asTransformers: true,
		off: []string{"attention_bias", "mlp_bias"}, ignored: map[string]any{"pretraining_tp": 1},
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

// Tensors lists the tensors that are trained, in the order that is used everywhere: the
// embedding, the layers from first to last, the final norm, and the head unless it is tied;
// or, with LoRA, the adapters of the layers, named as PEFT names them. A critic's head is a
// value head, named as in transformers' …ForTokenClassification. Matrices are [out, in].
func (c Config) Tensors() []TensorShape {
	var ts []TensorShape
	if c.Adapted() {
		ts = c.adapters()
	} else {
		ts = c.backbone(!c.ValueHead)
	}
	if c.ValueHead {
		ts = append(ts, TensorShape{valueHeadName, []int{c.values(), c.HiddenSize}}, TensorShape{"score.bias", []int{c.values()}})
	}
	return ts
}

// backbone lists the tensors of a whole model: the embedding, the layers, the final norm, and
// the policy's head if it has one of its own and it is wanted.
func (c Config) backbone(head bool) []TensorShape {
	d := c.HiddenSize
	ts := []TensorShape{{"model.embed_tokens.weight", []int{c.VocabSize, d}}}
	of := c.layerTensors()
	for i := range c.Layers {
		for _, t := range of {
			ts = append(ts, TensorShape{layerName(i) + t.name, t.shape})
		}
	}
	ts = append(ts, TensorShape{"model.norm.weight", []int{d}})
	if head && !c.TieEmbeddings {
		ts = append(ts, TensorShape{headName, []int{c.VocabSize, d}})
	}
	return ts
}

const (
	headName      = "lm_head.weight"
	valueHeadName = "score.weight"
)

// valueHead is the index in Tensors of a critic's head; its bias comes after it.
func (c Config) valueHead() int { return len(c.Critic().Tensors()) - 2 }

// Parameters is the number of scalars a policy has, those of its base model among them.
func (c Config) Parameters() int64 { return elements(c.Frozen()) + c.Trained() }

// Trained is the number of scalars that are trained.
func (c Config) Trained() int64 { return elements(c.Tensors()) }

func elements(ts []TensorShape) (n int64) {
	for _, t := range ts {
		n += int64(t.Elements())
	}
	return n
}
