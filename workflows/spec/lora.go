package spec

import (
	"fmt"
	"strings"

	"github.com/reprise-rl/reprise/model/cost"
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

// adapters are what the sizes of the adapters depend on; nil if l is.
func (l *LoRA) adapters() *cost.Adapters {
	if l == nil {
		return nil
	}
	return &cost.Adapters{Rank: l.Rank, Targets: l.Targets}
}

// allLinear stands for all linear maps of a layer, which are cost.LinearMaps.
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
