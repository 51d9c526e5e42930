package losses

import (
	"github.com/gomlx/gomlx/core/graph"

	"github.com/reprise-rl/reprise/model/batch"
	"github.com/reprise-rl/reprise/model/loss"
	"github.com/reprise-rl/reprise/model/loss/terms"
)

// aside is added to the chances of a coin's other side, so that their logarithms are finite (verl).
const aside = 1e-8

var _ = add(terms.Surrogate, string(loss.DPPOKL), surrogate(dppoKL))

// dppoKL is loss.DPPOKL.
func dppoKL(x Tokens) (value, slope, bound *graph.Node) {
	value, slope = x.weighted(graph.Min(x.Ratio, x.Knob(terms.RatioCap)))
	old := x.Column(batch.OldLogProbs)
	p, q := graph.Exp(x.LogProb), graph.Exp(old)
	other := func(of *graph.Node) *graph.Node { return graph.Add(graph.Sub(x.One, of), scalar(of, aside)) }
	far := graph.Add(graph.Mul(q, graph.Sub(old, x.LogProb)),
		graph.Mul(graph.Sub(x.One, q), graph.Sub(graph.Log(other(q)), graph.Log(other(p)))))
	beyond := graph.Where(graph.GreaterThan(x.Column(batch.Advantages), x.Zero),
		graph.LogicalAnd(graph.GreaterThan(p, q), graph.GreaterThan(far, x.Column(batch.ClipHigh))),
		graph.LogicalAnd(graph.LessThan(p, q), graph.GreaterThan(far, x.Column(batch.ClipLow))))
	return graph.Where(beyond, x.Zero, value), graph.Where(beyond, x.Zero, slope), beyond
}
