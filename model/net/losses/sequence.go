package losses

import (
	"github.com/gomlx/gomlx/core/graph"

	"github.com/reprise-rl/reprise/model/loss"
	"github.com/reprise-rl/reprise/model/loss/terms"
)

// maxMeanLogRatio bounds the mean of the log-ratios of a row or a turn from above, the same as in the tests' reference.
const maxMeanLogRatio = 10

var _ = add(terms.Ratio, string(loss.SequenceRatio), ratio(sequenceRatio))

// sequenceRatio is loss.SequenceRatio: the ratio of each token's row, which is the exponential of
// the mean of the row's log-ratios. It marks where that mean was within its bound.
func sequenceRatio(x Tokens) (ratio, inside *graph.Node) {
	mean := x.mean(x.LogRatio)
	over := graph.GreaterThan(mean, scalar(mean, maxMeanLogRatio))
	ratio = graph.Exp(graph.Where(over, scalar(mean, maxMeanLogRatio), mean))
	return x.spread(ratio), graph.LogicalNot(x.spread(over))
}
