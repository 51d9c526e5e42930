package losses

import (
	"github.com/gomlx/gomlx/core/graph"

	"github.com/reprise-rl/reprise/model/batch"
	"github.com/reprise-rl/reprise/model/loss"
	"github.com/reprise-rl/reprise/model/loss/terms"
)

var _ = add(terms.Surrogate, string(loss.Clip), surrogate(clip))

// clip is loss.Clip.
func clip(x Tokens) (value, slope, bound *graph.Node) {
	advantage := x.Column(batch.Advantages)
	plain := graph.Neg(graph.Mul(x.Ratio, advantage))
	low, high := graph.Sub(x.One, x.Column(batch.ClipLow)), graph.Add(x.One, x.Column(batch.ClipHigh))
	bounded := graph.Neg(graph.Mul(graph.Min(graph.Max(x.Ratio, low), high), advantage))
	clipped := graph.GreaterThan(bounded, plain)
	value = graph.Where(clipped, bounded, plain)
	return value, graph.Where(graph.LogicalAnd(x.Inside, graph.LogicalNot(clipped)), plain, x.Zero), clipped
}
