package spec

import (
	"fmt"
	"strings"
)

// Origin takes From apart. The error says what is wrong with it.
func (p Policy) Origin() (Origin, error) { return originOf(p.From) }

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
