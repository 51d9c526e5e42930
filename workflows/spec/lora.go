package spec

import "github.com/reprise-rl/reprise/model/cost"

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
