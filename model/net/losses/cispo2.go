package losses

import (
	"github.com/gomlx/gomlx/core/graph"

	"github.com/reprise-rl/reprise/model/batch"
	"github.com/reprise-rl/reprise/model/loss/terms"
)

var _ = add(terms.Surrogate, "cispo2", surrogate(cispo2))

// cispo2 is cispo with a lower bound.
func cispo2(x Tokens) (value, slope, bound *graph.Node) {
	high := graph.Add(x.One, x.Column(batch.ClipHigh))
	value, slope = x.weighted(graph.Max(x.Knob("weight_floor"), graph.Min(x.Ratio, high)))
	return value, slope, graph.GreaterThan(x.Ratio, high)
}
