// Package families knows published models by name: their shapes, from the config.json of
// each model's page. So a spec that names a model can be checked before it is fetched.
package families

import (
	"fmt"
	"slices"
	"strings"

	"github.com/reprise-rl/reprise/infra/strict"
	"github.com/reprise-rl/reprise/model"
)

// Known is a published model.
type Known struct {
	// Name is the model's short name, "qwen2.5-0.5b".
	Name string
	// Hub are the names of the models of this shape on the hub, without a revision.
	Hub []string
	// Config is the shape, as the hub's config.json gives it, without token ids.
	Config model.Config
}

// qwen25 is a model of the Qwen2.5 family (arXiv 2412.15115, table 1). The smaller ones
// share the head with the embedding; the larger ones pad the vocabulary further.
func qwen25(size string, hidden, intermediate, layers, heads, kvHeads int, large bool) Known {
	k := Known{Name: "qwen2.5-" + strings.ToLower(size), Config: model.Config{
		VocabSize: 151_936, HiddenSize: hidden, IntermediateSize: intermediate, Layers: layers, Heads: heads, KVHeads: kvHeads,
		HeadDim: hidden / heads, MaxPositions: 32_768, RMSNormEps: 1e-6, RopeTheta: 1e6, TieEmbeddings: !large, InitializerRange: 0.02,
	}}
	if large {
		k.Config.VocabSize = 152_064
	}
	for _, name := range []string{"Qwen2.5-" + size, "Qwen2.5-Coder-" + size} {
		if size == "72B" && strings.Contains(name, "Coder") {
			continue // there is none
		}
		k.Hub = append(k.Hub, "Qwen/"+name, "Qwen/"+name+"-Instruct")
	}
	return k
}

// qwen3 is a dense model of the Qwen3 family (arXiv 2505.09388, table 1). Its heads are 128
// wide, whatever the hidden size.
func qwen3(size string, hidden, intermediate, layers, heads int, tied bool, hub ...string) Known {
	k := Known{Name: "qwen3-" + strings.ToLower(size), Config: model.Config{
		Family: model.Qwen3, VocabSize: 151_936, HiddenSize: hidden, IntermediateSize: intermediate, Layers: layers, Heads: heads, KVHeads: 8,
		HeadDim: 128, MaxPositions: 40_960, RMSNormEps: 1e-6, RopeTheta: 1e6, TieEmbeddings: tied, InitializerRange: 0.02,
	}}
	for _, name := range hub {
		k.Hub = append(k.Hub, "Qwen/Qwen3-"+size+name)
	}
	return k
}

// llama is a model of Llama 3 (arXiv 2407.21783, table 3) or of its successors; factor is
// that of their scaled positions, 0 for none.
func llama(name string, hidden, intermediate, layers, heads int, factor float64, hub ...string) Known {
	c := model.Config{
		Family: model.Llama, VocabSize: 128_256, HiddenSize: hidden, IntermediateSize: intermediate, Layers: layers, Heads: heads, KVHeads: 8,
		HeadDim: hidden / heads, MaxPositions: 8192, RMSNormEps: 1e-5, RopeTheta: 5e5, TieEmbeddings: hidden < 4096, InitializerRange: 0.02,
	}
	if factor > 0 {
		c.MaxPositions = 131_072
		c.RopeScaling = model.RopeScaling{Factor: factor, LowFrequency: 1, HighFrequency: 4, OriginalPositions: 8192}
	}
	k := Known{Name: name, Config: c}
	for _, h := range hub {
		k.Hub = append(k.Hub, "meta-llama/"+h)
	}
	return k
}

// smollm2 is a model of SmolLM2 (arXiv 2502.02737): a Llama with a vocabulary of its own. Its heads
// are 64 wide.
func smollm2(size string, hidden, intermediate, layers, kvHeads int, theta, deviation float64) Known {
	name := "SmolLM2-" + size
	return Known{
		Name: strings.ToLower(name), Hub: []string{"HuggingFaceTB/" + name, "HuggingFaceTB/" + name + "-Instruct"},
		Config: model.Config{
			Family: model.Llama, VocabSize: 49_152, HiddenSize: hidden, IntermediateSize: intermediate, Layers: layers,
			Heads: hidden / 64, KVHeads: kvHeads, HeadDim: 64, MaxPositions: 8192, RMSNormEps: 1e-5, RopeTheta: theta,
			TieEmbeddings: true, InitializerRange: deviation,
		},
	}
}

var known = []Known{
	qwen25("0.5B", 896, 4864, 24, 14, 2, false),
	qwen25("1.5B", 1536, 8960, 28, 12, 2, false),
	qwen25("3B", 2048, 11_008, 36, 16, 2, false),
	qwen25("7B", 3584, 18_944, 28, 28, 4, true),
	qwen25("14B", 5120, 13_824, 48, 40, 8, true),
	qwen25("32B", 5120, 27_648, 64, 40, 8, true),
	qwen25("72B", 8192, 29_568, 80, 64, 8, true),

	qwen3("0.6B", 1024, 3072, 28, 16, true, "", "-Base"),
	qwen3("1.7B", 2048, 6144, 28, 16, true, "", "-Base"),
	qwen3("4B", 2560, 9728, 36, 32, true, "", "-Base", "-Instruct-2507", "-Thinking-2507"),
	qwen3("8B", 4096, 12_288, 36, 32, false, "", "-Base"),
	qwen3("14B", 5120, 17_408, 40, 40, false, "", "-Base"),
	qwen3("32B", 5120, 25_600, 64, 64, false, ""),

	smollm2("135M", 576, 1536, 30, 3, 1e5, 1.0/24),
	smollm2("360M", 960, 2560, 32, 5, 1e5, 0.02),
	smollm2("1.7B", 2048, 8192, 24, 32, 1.3e5, 0.02),

	llama("llama3-8b", 4096, 14_336, 32, 32, 0, "Meta-Llama-3-8B", "Meta-Llama-3-8B-Instruct"),
	llama("llama3-70b", 8192, 28_672, 80, 64, 0, "Meta-Llama-3-70B", "Meta-Llama-3-70B-Instruct"),
	llama("llama3.1-8b", 4096, 14_336, 32, 32, 8, "Llama-3.1-8B", "Llama-3.1-8B-Instruct", "Meta-Llama-3.1-8B", "Meta-Llama-3.1-8B-Instruct"),
	llama("llama3.1-70b", 8192, 28_672, 80, 64, 8, "Llama-3.1-70B", "Llama-3.1-70B-Instruct", "Meta-Llama-3.1-70B", "Meta-Llama-3.1-70B-Instruct",
		"Llama-3.3-70B-Instruct"),
	llama("llama3.2-1b", 2048, 8192, 16, 32, 32, "Llama-3.2-1B", "Llama-3.2-1B-Instruct"),
	llama("llama3.2-3b", 3072, 8192, 28, 24, 32, "Llama-3.2-3B", "Llama-3.2-3B-Instruct"),
}

// Names lists the short names, family by family.
func Names() []string {
	names := make([]string, len(known))
	for i, k := range known {
		names[i] = k.Name
	}
	return names
}

// ByName finds a model by its short name. The error lists the known ones.
func ByName(name string) (Known, error) {
	if i := slices.IndexFunc(known, func(k Known) bool { return k.Name == strings.ToLower(name) }); i >= 0 {
		return known[i], nil
	}
	hint := ""
	if near, ok := strict.Nearest(strings.ToLower(name), Names()); ok {
		hint = fmt.Sprintf("; the nearest is %q", near)
	}
	return Known{}, fmt.Errorf("no shape is called %q: known are %s%s", name, strings.Join(Names(), ", "), hint)
}

// OnHub finds a model by its name on the hub, and reports whether it is known.
func OnHub(name string) (Known, bool) {
	for _, k := range known {
		if slices.ContainsFunc(k.Hub, func(h string) bool { return strings.EqualFold(h, name) }) {
			return k, true
		}
	}
	return Known{}, false
}
