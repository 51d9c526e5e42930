package model

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/reprise-rl/reprise/model/cost"
)

// LoRA says how a model is trained by adapters (Hu et al., arXiv 2106.09685): the weights of
// a base model are frozen, and a targeted linear map x·Wᵀ becomes x·Wᵀ + s·(x·Aᵀ)·Bᵀ with the
// trained matrices A [Rank, in] and B [out, Rank]. The zero value trains all weights.
type LoRA struct {
	// Rank is the rank of the adapters; 0 means that there are none.
	Rank int
	// Alpha scales the adapters: s is Alpha/Rank, or Alpha/√Rank with RSLoRA (Kalajdzievski,
	// arXiv 2312.03732).
	Alpha  float64
	RSLoRA bool
	// Targets are the linear maps that have adapters, in every layer.
	Targets Targets
	// Base is the name of the base model in adapter_config.json. It changes nothing else.
	Base string
}

// MaxRank bounds the rank of adapters.
const MaxRank = 1 << 12

// Scale is what the product of the adapters is multiplied with.
func (l LoRA) Scale() float64 {
	if l.RSLoRA {
		return l.Alpha / math.Sqrt(float64(l.Rank))
	}
	return l.Alpha / float64(l.Rank)
}

// Check returns an error if the adapters are none or cannot be trained.
func (l LoRA) Check() error {
	switch {
	case l.Rank < 1 || l.Rank > MaxRank:
		return fmt.Errorf("rank is %d, must be from 1 to %d", l.Rank, MaxRank)
	case !(l.Alpha > 0) || l.Alpha > math.MaxFloat32:
		return fmt.Errorf("alpha is %v, must be positive and finite", l.Alpha)
	case l.Targets == 0 || l.Targets > AllLinear:
		return fmt.Errorf("no targets, must be some of %s", strings.Join(AllLinear.Names(), ", "))
	}
	return nil
}

// Targets is a set of a layer's linear maps.
type Targets uint8

// AllLinear are all linear maps of a layer.
const AllLinear Targets = 1<<len(targetNames) - 1

// targetNames are the names of the linear maps, in the order of Config.projections.
var targetNames = cost.LinearMaps

// ParseTargets reads the names of linear maps.
func ParseTargets(names []string) (Targets, error) {
	var out Targets
	for _, name := range names {
		i := slices.Index(targetNames[:], name)
		if i < 0 {
			return 0, fmt.Errorf("target %q, must be one of %s", name, strings.Join(targetNames[:], ", "))
		}
		out |= 1 << i
	}
	return out, nil
}

// Names are the names of the linear maps in the set, in a layer's order.
func (t Targets) Names() []string {
	var out []string
	for i, name := range targetNames {
		if t.has(i) {
			out = append(out, name)
		}
	}
	return out
}

// has reports whether the set has a layer's i-th linear map.
func (t Targets) has(i int) bool { return t>>i&1 == 1 }

// count is how many linear maps the set has.
func (t Targets) count() int { return len(t.Names()) }

// Adapted reports whether the model is trained by adapters.
func (c Config) Adapted() bool { return c.LoRA.Rank > 0 }

// Base is the configuration of the base model below a policy's adapters: the policy's own
// without them.
func (c Config) Base() Config {
	c.LoRA = LoRA{}
	return c
}

// Frozen lists the tensors of the base model that a policy or a critic with adapters reads,
// in the base's order. There are none without adapters: then all weights are trained, and
// Tensors lists them. A critic reads the tensors that come before the policy's head.
func (c Config) Frozen() []TensorShape {
	if !c.Adapted() {
		return nil
	}
	return c.Base().backbone(!c.ValueHead)
}

// adapterPrefix begins the names of adapters in the files of PEFT.
const adapterPrefix = "base_model.model."

// Endings of the names of adapters.
const (
	adapterA = ".lora_A.weight"
	adapterB = ".lora_B.weight"
)

// adapters lists the tensors of the adapters: of every layer, of every targeted map, A and B.
func (c Config) adapters() []TensorShape {
	var ts []TensorShape
	if !c.Adapted() {
		return nil
	}
	for i := range c.Layers {
		for j, p := range c.projections() {
			if c.LoRA.Targets.has(j) {
				name := adapterPrefix + layerName(i) + p.name
				ts = append(ts, TensorShape{name + adapterA, []int{c.LoRA.Rank, p.in}}, TensorShape{name + adapterB, []int{p.out, c.LoRA.Rank}})
			}
		}
	}
	return ts
}

// adapterStep numbers the linear map of adapter tensor i, whatever the other targets are.
func (c Config) adapterStep(i int) int64 {
	pair := i / 2
	layer, nth := pair/c.LoRA.Targets.count(), pair%c.LoRA.Targets.count()
	at := slices.Index(targetNames[:], c.LoRA.Targets.Names()[nth])
	return int64(layer*len(targetNames) + at)
}
