package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// ErrConfig is the kind of errors about a config.json that is wrong or needs something
// that this package does not support.
var ErrConfig = errors.New("unsupported model configuration")

// Config is the shape of a policy or of its critic. The architecture is Qwen2: RMSNorm,
// rotary positions, grouped-query attention with biases on queries, keys and values,
// SwiGLU, and an output head that may share the embedding.
type Config struct {
	VocabSize        int // rows of the embedding; a tokenizer may use fewer
	HiddenSize       int
	IntermediateSize int // width of the SwiGLU
	Layers           int
	Heads            int
	KVHeads          int // divides Heads
	HeadDim          int // even; Heads × HeadDim need not be HiddenSize
	MaxPositions     int // max_position_embeddings: recorded, not enforced
	RMSNormEps       float64
	RopeTheta        float64
	// TieEmbeddings makes the head the embedding's transpose.
	TieEmbeddings bool
	// ValueHead makes the model a critic: its head computes one number for each token.
	// No file sets it; see Critic.
	ValueHead bool
	// InitializerRange is the standard deviation with which NewParams draws matrices.
	InitializerRange float64
	// BOS, EOS and Pad are token ids, nil if the model has none. They are copied from
	// config.json to snapshots. The caller decides which ids end a turn.
	BOS, EOS, Pad *int
}

// maxLayers is far above the number of layers of any model.
const maxLayers = 1 << 12

// rawConfig is config.json as Hugging Face writes it, classic and newer.
type rawConfig struct {
	ModelType             string          `json:"model_type"`
	Architectures         []string        `json:"architectures"`
	VocabSize             *int            `json:"vocab_size"`
	HiddenSize            *int            `json:"hidden_size"`
	IntermediateSize      *int            `json:"intermediate_size"`
	NumHiddenLayers       *int            `json:"num_hidden_layers"`
	NumAttentionHeads     *int            `json:"num_attention_heads"`
	NumKeyValueHeads      *int            `json:"num_key_value_heads"`
	HeadDim               *int            `json:"head_dim"`
	MaxPositionEmbeddings *int            `json:"max_position_embeddings"`
	RMSNormEps            *float64        `json:"rms_norm_eps"`
	RopeTheta             *float64        `json:"rope_theta"`
	RopeScaling           json.RawMessage `json:"rope_scaling"`
	RopeParameters        json.RawMessage `json:"rope_parameters"`
	TieWordEmbeddings     *bool           `json:"tie_word_embeddings"`
	InitializerRange      *float64        `json:"initializer_range"`
	HiddenAct             *string         `json:"hidden_act"`
	UseSlidingWindow      *bool           `json:"use_sliding_window"`
	LayerTypes            []string        `json:"layer_types"`
	AttentionDropout      *float64        `json:"attention_dropout"`
	BOS                   json.RawMessage `json:"bos_token_id"`
	EOS                   json.RawMessage `json:"eos_token_id"`
	Pad                   json.RawMessage `json:"pad_token_id"`
	QuantizationConfig    json.RawMessage `json:"quantization_config"`
}

// ParseConfig reads a Qwen2 config.json, in the classic form (rope_theta) or the
// newer one (rope_parameters), with transformers' defaults for absent fields.
// One ErrConfig reports all fields that are wrong or need something unsupported (sliding
// windows, rope scaling, another activation, quantization, …). Fields that have no effect
// here are ignored.
func ParseConfig(b []byte) (Config, error) {
	var r rawConfig
	if err := json.Unmarshal(b, &r); err != nil {
		return Config{}, fmt.Errorf("read config.json: %w: %v", ErrConfig, err)
	}
	var bad []string
	problem := func(format string, args ...any) { bad = append(bad, fmt.Sprintf(format, args...)) }
	positive := func(field string, v *int, absent int) int {
		n := absent
		if v != nil {
			n = *v
		}
		if n < 1 || n > 1<<30 {
			problem("%s is %d, must be from 1 to 2^30", field, n)
			return 1
		}
		return n
	}
	if r.ModelType != "qwen2" {
		problem("model_type is %q, only \"qwen2\" is supported", r.ModelType)
	}
	c := Config{
		VocabSize:        positive("vocab_size", r.VocabSize, 0),
		HiddenSize:       positive("hidden_size", r.HiddenSize, 0),
		IntermediateSize: positive("intermediate_size", r.IntermediateSize, 0),
		Layers:           positive("num_hidden_layers", r.NumHiddenLayers, 0),
		Heads:            positive("num_attention_heads", r.NumAttentionHeads, 0),
		MaxPositions:     positive("max_position_embeddings", r.MaxPositionEmbeddings, 32768),
		RMSNormEps:       1e-6, RopeTheta: 10000, InitializerRange: 0.02,
	}
	if c.Layers > maxLayers { // the tensors of every layer are listed before any is read
		problem("num_hidden_layers is %d, at most %d are supported", c.Layers, maxLayers)
	}
	c.KVHeads = positive("num_key_value_heads", r.NumKeyValueHeads, c.Heads)
	c.HeadDim = positive("head_dim", r.HeadDim, max(1, c.HiddenSize/c.Heads))
	if r.HeadDim == nil && c.HiddenSize%c.Heads != 0 {
		problem("hidden_size %d is not a multiple of num_attention_heads %d", c.HiddenSize, c.Heads)
	}
	if c.Heads%c.KVHeads != 0 {
		problem("num_attention_heads %d is not a multiple of num_key_value_heads %d", c.Heads, c.KVHeads)
	}
	if c.HeadDim%2 != 0 {
		problem("head_dim %d is odd", c.HeadDim)
	}
	if r.RMSNormEps != nil {
		c.RMSNormEps = *r.RMSNormEps
	}
	if !(c.RMSNormEps > 0) {
		problem("rms_norm_eps is %v, must be positive", c.RMSNormEps)
	}
	if r.InitializerRange != nil {
		c.InitializerRange = *r.InitializerRange
	}
	if !(c.InitializerRange >= 0) {
		problem("initializer_range is %v, must not be negative", c.InitializerRange)
	}
	if r.TieWordEmbeddings != nil {
		c.TieEmbeddings = *r.TieWordEmbeddings
	}
	if r.HiddenAct != nil && *r.HiddenAct != "silu" {
		problem("hidden_act is %q, only \"silu\" is supported", *r.HiddenAct)
	}
	if r.UseSlidingWindow != nil && *r.UseSlidingWindow {
		problem("use_sliding_window is true: sliding windows are not supported")
	}
	for i, t := range r.LayerTypes {
		if t != "full_attention" {
			problem("layer_types[%d] is %q, only \"full_attention\" is supported", i, t)
		}
	}
	if r.LayerTypes != nil && len(r.LayerTypes) != c.Layers {
		problem("layer_types has %d entries for num_hidden_layers %d", len(r.LayerTypes), c.Layers)
	}
	if r.AttentionDropout != nil && *r.AttentionDropout != 0 {
		problem("attention_dropout is %v, only 0 is supported", *r.AttentionDropout)
	}
	if present(r.QuantizationConfig) {
		problem("quantization_config is set: quantized models are not supported")
	}
	if r.RopeTheta != nil {
		c.RopeTheta = *r.RopeTheta
	}
	ropeFields(r.RopeScaling, "rope_scaling", &c, problem)
	ropeFields(r.RopeParameters, "rope_parameters", &c, problem)
	if !(c.RopeTheta > 0) {
		problem("rope_theta is %v, must be positive", c.RopeTheta)
	}
	c.BOS = tokenID("bos_token_id", r.BOS, c.VocabSize, problem)
	c.EOS = tokenID("eos_token_id", r.EOS, c.VocabSize, problem)
	c.Pad = tokenID("pad_token_id", r.Pad, c.VocabSize, problem)
	if len(bad) > 0 {
		return Config{}, fmt.Errorf("read config.json: %w: %s", ErrConfig, strings.Join(bad, "; "))
	}
	return c, nil
}

func present(raw json.RawMessage) bool { return len(raw) > 0 && !bytes.Equal(raw, []byte("null")) }

// ropeFields reads the base from a rope object and reports any scaling as a problem.
func ropeFields(raw json.RawMessage, field string, c *Config, problem func(string, ...any)) {
	if !present(raw) {
		return
	}
	var rope struct {
		Theta    *float64 `json:"rope_theta"`
		Type     string   `json:"rope_type"`
		TypeOld  string   `json:"type"`
		Factor   *float64 `json:"factor"`
		Partial  *float64 `json:"partial_rotary_factor"`
		Sections []int    `json:"mrope_section"`
	}
	if err := json.Unmarshal(raw, &rope); err != nil {
		problem("%s: %v", field, err)
		return
	}
	if rope.Theta != nil {
		c.RopeTheta = *rope.Theta
	}
	for _, t := range []string{rope.Type, rope.TypeOld} {
		if t != "" && t != "default" {
			problem("%s has rope_type %q: rope scaling is not supported", field, t)
		}
	}
	if rope.Factor != nil && *rope.Factor != 1 {
		problem("%s has factor %v: rope scaling is not supported", field, *rope.Factor)
	}
	if rope.Partial != nil && *rope.Partial != 1 {
		problem("%s has partial_rotary_factor %v, only 1 is supported", field, *rope.Partial)
	}
	if rope.Sections != nil {
		problem("%s has mrope_section: multimodal positions are not supported", field)
	}
}

// tokenID reads an id that may be absent, a number, or a list, as in some models. It
// returns the first id of a list.
func tokenID(field string, raw json.RawMessage, vocab int, problem func(string, ...any)) *int {
	if !present(raw) {
		return nil
	}
	var id int
	if json.Unmarshal(raw, &id) != nil {
		var list []int
		if err := json.Unmarshal(raw, &list); err != nil || len(list) == 0 {
			problem("%s is %s, must be an id or a list of ids", field, raw)
			return nil
		}
		id = list[0]
	}
	if id < 0 || id >= vocab {
		problem("%s is %d, outside the vocabulary of %d", field, id, vocab)
		return nil
	}
	return &id
}

// JSON returns config.json with sorted keys, an indent of two spaces and the dtype
// float32. The same Config gives the same bytes. The rope base appears in both forms, so
// that old and new versions of transformers load it.
func (c Config) JSON() []byte {
	layerTypes := make([]string, c.Layers)
	for i := range layerTypes {
		layerTypes[i] = "full_attention"
	}
	b, err := json.MarshalIndent(map[string]any{ // a map is marshalled with sorted keys
		"architectures":           []string{"Qwen2ForCausalLM"},
		"attention_dropout":       floatJSON(0),
		"bos_token_id":            c.BOS,
		"dtype":                   "float32",
		"eos_token_id":            c.EOS,
		"head_dim":                c.HeadDim,
		"hidden_act":              "silu",
		"hidden_size":             c.HiddenSize,
		"initializer_range":       floatJSON(c.InitializerRange),
		"intermediate_size":       c.IntermediateSize,
		"layer_types":             layerTypes,
		"max_position_embeddings": c.MaxPositions,
		"max_window_layers":       c.Layers,
		"model_type":              "qwen2",
		"num_attention_heads":     c.Heads,
		"num_hidden_layers":       c.Layers,
		"num_key_value_heads":     c.KVHeads,
		"pad_token_id":            c.Pad,
		"rms_norm_eps":            floatJSON(c.RMSNormEps),
		"rope_parameters":         map[string]any{"rope_theta": floatJSON(c.RopeTheta), "rope_type": "default"},
		"rope_theta":              floatJSON(c.RopeTheta),
		"sliding_window":          nil,
		"tie_word_embeddings":     c.TieEmbeddings,
		"torch_dtype":             "float32",
		"use_cache":               true,
		"use_sliding_window":      false,
		"vocab_size":              c.VocabSize,
	}, "", "  ")
	if err != nil { // only a float that is not finite fails, and ParseConfig accepts none
		panic(fmt.Sprintf("config.json: %v", err))
	}
	return append(b, '\n')
}

// floatJSON is written with a point or an exponent, as in Python: newer versions of
// transformers distinguish integers from floats when they check a configuration.
type floatJSON float64

func (f floatJSON) MarshalJSON() ([]byte, error) {
	b, err := json.Marshal(float64(f))
	if err == nil && !bytes.ContainsAny(b, ".e") {
		b = append(b, ".0"...)
	}
	return b, err
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

// Places of a layer's tensors, counted from layerStart.
const (
	inputNorm = iota
	queryWeight
	queryBias
	keyWeight
	keyBias
	valueWeight
	valueBias
	outputWeight
	postNorm
	gateWeight
	upWeight
	downWeight
	layerTensors // how many there are
)

// Tensors lists the model's tensors in the order that is used everywhere: the embedding,
// the layers from first to last, the final norm, and the head unless it is tied. A
// critic's head is a value head, named as in transformers' Qwen2ForTokenClassification.
// Matrices are [out, in].
func (c Config) Tensors() []TensorShape {
	d, ff := c.HiddenSize, c.IntermediateSize
	q, kv := c.Heads*c.HeadDim, c.KVHeads*c.HeadDim
	ts := []TensorShape{{"model.embed_tokens.weight", []int{c.VocabSize, d}}}
	for i := range c.Layers {
		p := "model.layers." + strconv.Itoa(i) + "."
		ts = append(ts,
			TensorShape{p + "input_layernorm.weight", []int{d}},
			TensorShape{p + "self_attn.q_proj.weight", []int{q, d}},
			TensorShape{p + "self_attn.q_proj.bias", []int{q}},
			TensorShape{p + "self_attn.k_proj.weight", []int{kv, d}},
			TensorShape{p + "self_attn.k_proj.bias", []int{kv}},
			TensorShape{p + "self_attn.v_proj.weight", []int{kv, d}},
			TensorShape{p + "self_attn.v_proj.bias", []int{kv}},
			TensorShape{p + "self_attn.o_proj.weight", []int{d, q}},
			TensorShape{p + "post_attention_layernorm.weight", []int{d}},
			TensorShape{p + "mlp.gate_proj.weight", []int{ff, d}},
			TensorShape{p + "mlp.up_proj.weight", []int{ff, d}},
			TensorShape{p + "mlp.down_proj.weight", []int{d, ff}},
		)
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
func (c Config) layerStart(i int) int { return 1 + i*layerTensors }

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

// shape is the configuration without the fields that change neither programs nor tensors.
func (c Config) shape() Config {
	c.BOS, c.EOS, c.Pad = nil, nil, nil
	c.MaxPositions = 0
	c.InitializerRange = 0
	return c
}
