package losses

import (
	"github.com/gomlx/gomlx/core/graph"

	"github.com/reprise-rl/reprise/model/loss"
	"github.com/reprise-rl/reprise/model/loss/terms"
)

// The estimators compute loss.KLEstimator's Estimate from d = log π − log π_ref, with its derivative by log π.
var (
	_ = add(terms.Distance, string(loss.K1), distance(k1))
	_ = add(terms.Distance, string(loss.K2), distance(k2))
	_ = add(terms.Distance, string(loss.K3), distance(k3))
	_ = add(terms.Distance, string(loss.KAbs), distance(kAbs))
)

// difference is d, [n], with scalars of its dtype.
type difference struct{ d, zero, one *graph.Node }

func k1(x difference) (kl, slope *graph.Node) { return x.d, graph.OnesLike(x.d) }

func k2(x difference) (kl, slope *graph.Node) {
	return graph.Mul(scalar(x.d, 0.5), graph.Mul(x.d, x.d)), x.d
}

// maxK3 bounds K3, as in package loss.
const maxK3 = 10

func k3(x difference) (kl, slope *graph.Node) {
	ratio := graph.Exp(graph.Neg(x.d))
	kl = graph.Sub(graph.Add(ratio, x.d), x.one)
	over := graph.GreaterThan(kl, scalar(x.d, maxK3))
	return graph.Where(over, scalar(x.d, maxK3), kl), graph.Where(over, x.zero, graph.Sub(x.one, ratio))
}

func kAbs(x difference) (kl, slope *graph.Node) { return graph.Abs(x.d), graph.Sign(x.d) }
