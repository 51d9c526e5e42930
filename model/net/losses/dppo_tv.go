package losses

import (
	"github.com/gomlx/gomlx/core/graph"

	"github.com/reprise-rl/reprise/model/batch"
	"github.com/reprise-rl/reprise/model/loss"
	"github.com/reprise-rl/reprise/model/loss/terms"
)

var _ = add(terms.Surrogate, string(loss.DPPOTV), surrogate(dppoTV))

// dppoTV is loss.DPPOTV.
func dppoTV(x Tokens) (value, slope, bound *graph.Node) {
	value, slope = x.weighted(graph.Min(x.Ratio, x.Knob(terms.RatioCap)))
	moved := graph.Sub(graph.Exp(x.LogProb), graph.Exp(x.Column(batch.OldLogProbs)))
	beyond := graph.Where(graph.GreaterThan(x.Column(batch.Advantages), x.Zero),
		graph.GreaterThan(moved, x.Column(batch.ClipHigh)), graph.LessThan(moved, graph.Neg(x.Column(batch.ClipLow))))
	return graph.Where(beyond, x.Zero, value), graph.Where(beyond, x.Zero, slope), beyond
}
