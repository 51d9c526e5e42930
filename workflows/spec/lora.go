package spec

import (
	"fmt"
	"slices"
	"strings"
)

// LoRA is how a policy is trained by adapters over a frozen base model, and its critic by
// others (arXiv 2106.09685).
type LoRA struct {
	Rank  int     `json:"rank"`
	Alpha float64 `json:"alpha"`
	// Targets are linear maps of each layer, in the layer's order.
	Targets []string `json:"targets"`
	RSLoRA  bool     `json:"rslora,omitempty"`
	Seed    uint64   `json:"seed"`
}

// linearMaps are the linear maps of a layer in its order, by the names that PEFT matches, and
// allLinear stands for all of them.
var linearMaps = []string{"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}

const allLinear = "all-linear"

// Starting is a policy that begins with adapters that there are: theirs says how they are
// made, and base is their base model, as Policy.From; empty if that is not known. document is
// what a person wrote: where it says otherwise of the adapters, the error, of type Problems,
// says so.
func (p Policy) Starting(theirs LoRA, base string, document []byte) (Policy, error) {
	own := LoRA{Seed: 1}
	if p.LoRA != nil {
		own = *p.LoRA
	}
	theirs.Seed = own.Seed // draws nothing
	var problems Problems
	for _, f := range []struct {
		key         string
		found, want string
	}{
		{"rank", fmt.Sprint(own.Rank), fmt.Sprint(theirs.Rank)},
		{"alpha", formatNumber(own.Alpha), formatNumber(theirs.Alpha)},
		{"targets", strings.Join(own.Targets, ", "), strings.Join(theirs.Targets, ", ")},
		{"rslora", fmt.Sprint(own.RSLoRA), fmt.Sprint(theirs.RSLoRA)},
	} {
		if path := "policy.lora." + f.key; f.found != f.want && Writes(document, path) {
			problems = append(problems, Problem{Path: path, Found: f.found, Allowed: f.want, Hint: "policy.from names adapters that have it; leave it out"})
		}
	}
	if p.LoRA == nil && p.WarmStart.LearningRate == formatRate && !Writes(document, warmStartRate) {
		p.WarmStart.LearningRate = formatAdapterRate // it was not known that there are adapters
	}
	p.LoRA = &theirs
	if p.Base == "" {
		p.Base = base
	}
	return p, problems.Err()
}

// adapterParameters is the number of weights of a policy's adapters; 0 if all weights are
// trained.
func (m ModelShape) adapterParameters(l *LoRA) int64 {
	if l == nil {
		return 0
	}
	var widths int64
	for _, w := range m.adapted(l) {
		widths += w[0] + w[1]
	}
	return int64(m.Layers) * int64(l.Rank) * widths
}

// largestAdapter is the number of weights of the largest tensor of the adapters.
func (m ModelShape) largestAdapter(l *LoRA) int64 {
	var widest int64
	for _, w := range m.adapted(l) {
		widest = max(widest, w[0], w[1])
	}
	return int64(l.Rank) * widest
}

// adapted are the widths of the inputs and outputs of a layer's targets.
func (m ModelShape) adapted(l *LoRA) (out [][2]int64) {
	hidden, inner := int64(m.HiddenSize), int64(m.IntermediateSize)
	queries, keys := int64(m.Heads)*m.headDim(), int64(m.KVHeads)*m.headDim()
	all := [][2]int64{{hidden, queries}, {hidden, keys}, {hidden, keys}, {queries, hidden}, {hidden, inner}, {hidden, inner}, {inner, hidden}}
	for i, name := range linearMaps {
		if slices.Contains(l.Targets, name) {
			out = append(out, all[i])
		}
	}
	return out
}

// checkBase is what is wrong with a base model's name.
func checkBase(from string) string {
	if from == FromStarter {
		return "a starter is made by a run, and no adapters name it"
	}
	return checkOrigin(from)
}

// HubBase is the hub's model that adapters name as their base; "" if the name is none of the
// hub's.
func HubBase(name string) string {
	from := OriginHub + ":" + name
	if name == "" || checkOrigin(from) != "" {
		return ""
	}
	return from
}

// DefaultLoRA are the adapters that an empty policy.lora gives a policy from a model.
func DefaultLoRA(from string) *LoRA {
	d := decoder{values: map[string]any{"policy.from": from, "policy.lora": true}}
	return d.assemble().Policy.LoRA
}
