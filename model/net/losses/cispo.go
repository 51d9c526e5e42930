package losses

import (
	"github.com/gomlx/gomlx/core/graph"

	"github.com/reprise-rl/reprise/model/batch"
	"github.com/reprise-rl/reprise/model/loss"
	"github.com/reprise-rl/reprise/model/loss/terms"
)

var _ = add(terms.Surrogate, string(loss.CISPO), surrogate(cispo))

// cispo is loss.CISPO.
func cispo(x Tokens) (value, slope, bound *graph.Node) {
	high := graph.Add(x.One, x.Column(batch.ClipHigh))
	value, slope = x.weighted(graph.Min(x.Ratio, high))
	return value, slope, graph.GreaterThan(x.Ratio, high)
}
