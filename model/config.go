package model

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/reprise-rl/reprise/infra/filekind"
)

// ErrConfig is the kind of errors about a config.json that is wrong or needs something
// that this package does not support.
var ErrConfig = errors.New("unsupported model configuration")

// Config is the shape of a policy or of its critic. Every family has RMSNorm, rotary
// positions, grouped-query attention, SwiGLU, and an output head that may share the embedding.
type Config struct {
	// Family says which tensors a layer has: biases of queries, keys and values (Qwen2), norms
	// of each head's queries and keys (Qwen3), or neither (Llama).
	Family           Family
	VocabSize        int // rows of the embedding; a tokenizer may use fewer
	HiddenSize       int
	IntermediateSize int // width of the SwiGLU
	Layers           int
	Heads            int
	KVHeads          int // divides Heads
	HeadDim          int // even; Heads × HeadDim need not be HiddenSize
	MaxPositions     int // max_position_embeddings; reprise validate warns of wider rows
	RMSNormEps       float64
	RopeTheta        float64
	RopeScaling      RopeScaling
	// TieEmbeddings makes the head the embedding's transpose.
	TieEmbeddings bool
	// ValueHead makes the model a critic: its head computes one number for each token.
	// No file sets it; see Critic.
	ValueHead bool
	// Values is how many numbers a critic's head computes for each token; 0 is one. See CriticOf.
	Values int
	// RewardModel makes the model a process reward model beside a policy. It has the policy's
	// programs and tensors, and files of its own. No file sets it; see PRM.
	RewardModel bool
	// LoRA makes the model the adapters over a frozen base model of this shape. No config.json
	// sets it; see OpenAdapter.
	LoRA LoRA
	// InitializerRange is the standard deviation with which NewParams draws matrices.
	InitializerRange float64
	// BOS, EOS and Pad are token ids, empty if the model has none. They are copied from
	// config.json to snapshots. The caller decides which ids end a turn.
	BOS, EOS, Pad TokenIDs
}

// TokenIDs are token ids as config.json has them: a number, a list, or nothing.
type TokenIDs string

// ID is a single id.
func ID(id int) TokenIDs { return TokenIDs(strconv.Itoa(id)) }

// MarshalJSON implements json.Marshaler.
func (t TokenIDs) MarshalJSON() ([]byte, error) {
	if t == "" {
		return []byte("null"), nil
	}
	return []byte(t), nil
}

const (
	// maxSize bounds every size in a config.json.
	maxSize = 1 << 30
	// maxTokenIDs bounds a list of ids.
	maxTokenIDs = 64
)

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
	SlidingWindow         json.RawMessage `json:"sliding_window"`
	OriginalPositions     *int            `json:"original_max_position_embeddings"`
}

// ParseConfig reads the config.json of a supported family, in the classic form (rope_theta)
// or the newer one (rope_parameters), with transformers' defaults for absent fields.
// One ErrConfig reports all fields that are wrong or need something unsupported (another
// architecture, sliding windows, other rope scaling, another activation, quantization, …).
// Fields that have no effect here are ignored.
func ParseConfig(b []byte) (Config, error) {
	var r rawConfig
	err := filekind.JSON(b)
	if err == nil {
		err = json.Unmarshal(b, &r)
	}
	if err != nil {
		return Config{}, fmt.Errorf("read config.json: %w: %w", ErrConfig, err)
	}
	var bad []string
	problem := func(format string, args ...any) { bad = append(bad, fmt.Sprintf(format, args...)) }
	positive := func(field string, v *int, absent int) int {
		n := absent
		if v != nil {
			n = *v
		}
		if n < 1 || n > maxSize {
			problem("%s is %d, must be from 1 to 2^30", field, n)
			return 1
		}
		return n
	}
	of, known := familyOf(r.ModelType)
	if !known {
		problem("model_type is %q: supported are %s", r.ModelType, supported())
	}
	c := Config{
		Family:           of,
		VocabSize:        positive("vocab_size", r.VocabSize, 0),
		HiddenSize:       positive("hidden_size", r.HiddenSize, 0),
		IntermediateSize: positive("intermediate_size", r.IntermediateSize, 0),
		Layers:           positive("num_hidden_layers", r.NumHiddenLayers, 0),
		Heads:            positive("num_attention_heads", r.NumAttentionHeads, 0),
		MaxPositions:     positive("max_position_embeddings", r.MaxPositionEmbeddings, families[of].positions),
		RMSNormEps:       1e-6, RopeTheta: 10000, InitializerRange: 0.02,
	}
	if c.Layers > maxLayers { // the tensors of every layer are listed before any is read
		problem("num_hidden_layers is %d, at most %d are supported", c.Layers, maxLayers)
	}
	c.KVHeads = positive("num_key_value_heads", r.NumKeyValueHeads, c.Heads)
	c.HeadDim = positive("head_dim", r.HeadDim, cmp.Or(c.family().headDim, max(1, c.HiddenSize/c.Heads)))
	if r.HeadDim == nil && c.family().headDim == 0 && c.HiddenSize%c.Heads != 0 {
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
	r.others(b, known, c, problem)
	if r.AttentionDropout != nil && *r.AttentionDropout != 0 {
		problem("attention_dropout is %v, only 0 is supported", *r.AttentionDropout)
	}
	if present(r.QuantizationConfig) {
		problem("quantization_config is set: quantized models are not supported")
	}
	r.rope(&c, problem)
	c.BOS = tokenIDs("bos_token_id", r.BOS, c.VocabSize, problem)
	c.EOS = tokenIDs("eos_token_id", r.EOS, c.VocabSize, problem)
	c.Pad = tokenIDs("pad_token_id", r.Pad, c.VocabSize, problem)
	if len(bad) > 0 {
		return Config{}, fmt.Errorf("read config.json: %w: %s", ErrConfig, strings.Join(bad, "; "))
	}
	return c, nil
}

func present(raw json.RawMessage) bool { return len(raw) > 0 && !bytes.Equal(raw, []byte("null")) }

// others reports the fields of other architectures, and what a family has only switched off.
// b is the whole config.json.
func (r *rawConfig) others(b []byte, known bool, c Config, problem func(string, ...any)) {
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(b, &fields) // it was read before
	f := c.family()
	if known && len(r.Architectures) > 0 && !slices.Contains(r.Architectures, f.architecture) {
		problem("architectures is %q, only %q is supported for model_type %q", r.Architectures, f.architecture, r.ModelType)
	}
	for _, name := range foreign {
		if v := string(fields[name]); known && v != "" && !slices.Contains([]string{"null", "0", "1", "1.0"}, v) {
			problem("%s is %.40s: it belongs to another architecture; supported are %s", name, v, supported())
		}
	}
	for _, name := range f.off {
		if v := string(fields[name]); v != "" && v != "null" && v != "false" {
			problem("%s is %.40s, only false is supported for model_type %q", name, v, r.ModelType)
		}
	}
	if r.UseSlidingWindow != nil && *r.UseSlidingWindow || !f.windows && present(r.SlidingWindow) {
		problem("use_sliding_window or sliding_window is set: sliding windows are not supported")
	}
	for i, t := range r.LayerTypes {
		if t != "full_attention" {
			problem("layer_types[%d] is %q, only \"full_attention\" is supported", i, t)
		}
	}
	if r.LayerTypes != nil && len(r.LayerTypes) != c.Layers {
		problem("layer_types has %d entries for num_hidden_layers %d", len(r.LayerTypes), c.Layers)
	}
}

// tokenIDs reads ids that may be absent, a number, or a list.
func tokenIDs(field string, raw json.RawMessage, vocab int, problem func(string, ...any)) TokenIDs {
	if !present(raw) {
		return ""
	}
	var list []int
	var id int
	var value any = &list
	if bytes.TrimSpace(raw)[0] != '[' {
		value = &id
	}
	if err := json.Unmarshal(raw, value); err != nil || value == any(&list) && (len(list) == 0 || len(list) > maxTokenIDs) {
		problem("%s is %.200s, must be an id or a list of up to %d ids", field, raw, maxTokenIDs)
		return ""
	}
	for _, id := range append([]int{id}, list...) {
		if id < 0 || id >= vocab {
			problem("%s is %d, outside the vocabulary of %d", field, id, vocab)
			return ""
		}
	}
	if list == nil {
		return ID(id)
	}
	b, _ := json.Marshal(list) // integers
	return TokenIDs(b)
}

// JSON returns config.json with sorted keys, an indent of two spaces and the dtype
// float32. The same Config gives the same bytes. The rope base appears in both forms, so
// that old and new versions of transformers load it.
func (c Config) JSON() []byte {
	f := c.family()
	fields := map[string]any{ // a map is marshalled with sorted keys
		"architectures":           []string{f.architecture},
		"attention_dropout":       floatJSON(0),
		"bos_token_id":            c.BOS,
		"dtype":                   "float32",
		"eos_token_id":            c.EOS,
		"head_dim":                c.HeadDim,
		"hidden_act":              "silu",
		"hidden_size":             c.HiddenSize,
		"initializer_range":       floatJSON(c.InitializerRange),
		"intermediate_size":       c.IntermediateSize,
		"max_position_embeddings": c.MaxPositions,
		"model_type":              f.modelType,
		"num_attention_heads":     c.Heads,
		"num_hidden_layers":       c.Layers,
		"num_key_value_heads":     c.KVHeads,
		"pad_token_id":            c.Pad,
		"rms_norm_eps":            floatJSON(c.RMSNormEps),
		"rope_parameters":         c.RopeScaling.json(c.RopeTheta),
		"rope_theta":              floatJSON(c.RopeTheta),
		"tie_word_embeddings":     c.TieEmbeddings,
		"torch_dtype":             "float32",
		"use_cache":               true,
		"vocab_size":              c.VocabSize,
	}
	if f.windows {
		fields["layer_types"] = slices.Repeat([]string{"full_attention"}, c.Layers)
		fields["max_window_layers"] = c.Layers
		fields["sliding_window"] = nil
		fields["use_sliding_window"] = false
	}
	if c.RopeScaling != (RopeScaling{}) {
		fields["rope_scaling"] = fields["rope_parameters"]
	}
	for _, name := range f.off {
		fields[name] = false
	}
	maps.Copy(fields, f.ignored)
	b, err := json.MarshalIndent(fields, "", "  ")
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

// padding is the id whose input embedding gets no gradient, if there is one.
func (c Config) padding() (int32, bool) {
	id, err := strconv.ParseInt(string(c.Pad), 10, 32)
	return int32(id), err == nil && c.family().asTransformers
}

// shape is the configuration without the fields that change neither programs nor tensors.
func (c Config) shape() Config {
	c.BOS, c.EOS = "", ""
	if _, ok := c.padding(); !ok {
		c.Pad = ""
	}
	c.MaxPositions = 0
	c.InitializerRange = 0
	c.LoRA.Base = ""
	c.RewardModel = false
	return c
}

// values is how many numbers a critic's head computes for each token.
func (c Config) values() int { return max(c.Values, 1) }

// second reports whether the model is the second network of a run: a critic or a process reward
// model.
func (c Config) second() bool { return c.ValueHead || c.RewardModel }

// body is the shape of what a policy, its critic and their base model have in common.
func (c Config) body() Config {
	c = c.shape()
	c.LoRA, c.ValueHead, c.Values, c.TieEmbeddings = LoRA{}, false, 0, false
	return c
}

// Critic returns the configuration of the policy's critic: the same backbone with a value head
// instead of the output head. With LoRA it has adapters of its own over the same base. Programs of
// this configuration support Values and CriticUpdate, and its States and Snapshots are critics.
func (c Config) Critic() Config {
	c.ValueHead, c.TieEmbeddings = true, false
	return c
}

// CriticOf is Critic with a head of so many numbers for each token.
func (c Config) CriticOf(values int) Config {
	c = c.Critic()
	if values > 1 {
		c.Values = values
	}
	return c
}
