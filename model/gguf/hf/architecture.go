package hf

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// architecture is what distinguishes one architecture from another.
type architecture struct {
	name  string // general.architecture, and the prefix of its keys
	class string // architectures in config.json
	// permuted says that the rows of queries and keys are in llama.cpp's order of rotary pairs.
	permuted bool
	// biases and headNorms say which tensors a layer has besides matrices and norms.
	biases, headNorms bool
	// ropeFactors says that the frequencies of rotary positions may be scaled by a tensor.
	ropeFactors bool
}

var architectures = []architecture{
	{name: "llama", class: "LlamaForCausalLM", permuted: true, ropeFactors: true},
	{name: "qwen2", class: "Qwen2ForCausalLM", biases: true},
	{name: "qwen3", class: "Qwen3ForCausalLM", headNorms: true},
}

// architecture finds the file's architecture; nil, with a problem, if it is none that is known.
func (p *problems) architecture() *architecture {
	if kind, ok := p.metadata["general.type"]; ok && kind != "model" {
		p.add("general.type is %.40q, only \"model\" is supported", fmt.Sprint(kind))
		return nil
	}
	if n, err := p.metadata.Int("split.count"); err == nil && n > 1 {
		p.add("split.count is %d: this is one of llama.cpp's shards, which are not read; merge them first (llama-gguf-split --merge)", n)
		return nil
	}
	name, err := p.metadata.String("general.architecture")
	if err != nil {
		p.note(err)
		return nil
	}
	var known []string
	for i := range architectures {
		if architectures[i].name == name {
			return &architectures[i]
		}
		known = append(known, architectures[i].name)
	}
	p.add("general.architecture is %.40q: supported are %s", name, strings.Join(known, ", "))
	return nil
}

// shapeKeys are the keys, after the architecture's name, that shape reads.
var shapeKeys = []string{
	"block_count", "context_length", "embedding_length", "feed_forward_length", "vocab_size",
	"attention.head_count", "attention.head_count_kv", "attention.key_length", "attention.value_length",
	"attention.layer_norm_rms_epsilon", "rope.dimension_count", "rope.freq_base",
}

// neutral are keys of an architecture that may stand there if they change nothing, with the
// values that do so.
var neutral = map[string][]string{
	"rope.scaling.type": {"none"}, "rope.scaling.factor": {"1"}, "rope.scaling.finetuned": {"false"}, "rope.scale_linear": {"1"},
	"expert_count": {"0"}, "expert_used_count": {"0"}, "attention.sliding_window": {"0"}, "attention.causal": {"true"},
	"use_parallel_residual": {"false"}, "logit_scale": {"0", "1"}, "embedding_scale": {"1"}, "residual_scale": {"1"},
}

// quantizationVersion is the version of llama.cpp's quantised kinds since 2023.
const quantizationVersion = 2

// refuseKeys reports the keys of the architecture and the tokenizer that are not carried over. Keys
// under other names (general, quantize, split and those of whoever made the file) tell where the
// model comes from, and change no number.
func (p *problems) refuseKeys(a *architecture) {
	for _, key := range p.metadata.Keys() {
		if of, ok := strings.CutPrefix(key, a.name+"."); ok {
			value := fmt.Sprint(p.metadata[key])
			if !slices.Contains(shapeKeys, of) && !slices.Contains(neutral[of], value) {
				p.add("%s is %.40q: it is not carried over", key, value)
			}
		}
		if strings.HasPrefix(key, "tokenizer.") && !knownTokenizerKey(key) {
			p.add("%s is not carried over", key)
		}
	}
	const key = "general.quantization_version"
	if v, err := p.metadata.Int(key); p.metadata.Has(key) && (err != nil || v != quantizationVersion) {
		p.add("%s is %v, only %d is read", key, p.metadata[key], quantizationVersion)
	}
}

// shape is a model's shape as its metadata give it.
type shape struct {
	layers, context, hidden, feedForward int
	heads, kvHeads, headDim              int
	vocabulary                           int // 0 if the metadata do not say
	eps, theta                           float32
	tied                                 bool // no output matrix of its own
	scaling                              *ropeScaling
}

const (
	// maxLayers is far above the number of layers of any model.
	maxLayers = 1 << 12
	// maxSize bounds every other size.
	maxSize = 1 << 30
	// defaultTheta is the base of rotary positions where the metadata have none, in llama.cpp.
	defaultTheta = 10000
)

// shape reads the model's shape, and reports what is missing or does not fit.
func (p *problems) shape(a *architecture) shape {
	positive := func(of string, most int) int {
		n, err := p.metadata.Int(a.name + "." + of)
		if err == nil && (n < 1 || n > most) {
			err = fmt.Errorf("%s.%s is %d, must be from 1 to %d", a.name, of, n, most)
		}
		if err != nil {
			p.note(err)
			return 1
		}
		return n
	}
	optional := func(of string, absent int) int {
		if !p.metadata.Has(a.name + "." + of) {
			return absent
		}
		return positive(of, maxSize)
	}
	s := shape{
		layers: positive("block_count", maxLayers), context: positive("context_length", maxSize), hidden: positive("embedding_length", maxSize),
		feedForward: positive("feed_forward_length", maxSize), heads: positive("attention.head_count", maxSize),
		vocabulary: optional("vocab_size", 0), theta: defaultTheta,
	}
	s.kvHeads = optional("attention.head_count_kv", s.heads)
	s.headDim = optional("attention.key_length", max(1, s.hidden/s.heads))
	if !p.metadata.Has(a.name+".attention.key_length") && s.hidden%s.heads != 0 {
		p.add("%s.embedding_length %d is not a multiple of %s.attention.head_count %d", a.name, s.hidden, a.name, s.heads)
	}
	if s.heads%s.kvHeads != 0 {
		p.add("%s.attention.head_count %d is not a multiple of %s.attention.head_count_kv %d", a.name, s.heads, a.name, s.kvHeads)
	}
	if s.headDim%2 != 0 {
		p.add("heads of %d numbers: an odd number has no rotary pairs", s.headDim)
	}
	for _, of := range []string{"attention.value_length", "rope.dimension_count"} {
		if n := optional(of, s.headDim); n != s.headDim {
			p.add("%s.%s is %d and heads have %d numbers: only equal ones are supported", a.name, of, n, s.headDim)
		}
	}
	s.eps = p.float(a.name+".attention.layer_norm_rms_epsilon", 0)
	s.theta = p.float(a.name+".rope.freq_base", defaultTheta)
	return s
}

// float reads a positive number; absent is its value without the key, 0 if the key must be there.
func (p *problems) float(key string, absent float32) float32 {
	if absent != 0 && !p.metadata.Has(key) {
		return absent
	}
	v, err := p.metadata.Float32(key)
	if err == nil && !(v > 0 && v <= math.MaxFloat32) {
		err = fmt.Errorf("%s is %v, must be positive", key, v)
	}
	p.note(err)
	return v
}

// decimal is the shortest decimal number that is the float32: 1e-05, where the metadata hold
// 9.999999747378752e-06. That is what config.json had before.
func decimal(v float32) float64 {
	d, err := strconv.ParseFloat(strconv.FormatFloat(float64(v), 'g', -1, 32), 64)
	if err != nil { // the text of a float32 is a float64
		panic(fmt.Sprintf("decimal of %v: %v", v, err))
	}
	return d
}
