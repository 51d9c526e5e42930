package losses

import (
	"github.com/gomlx/gomlx/core/graph"

	"github.com/reprise-rl/reprise/model/batch"
	"github.com/reprise-rl/reprise/model/loss/terms"
)

var _ = add(terms.Guard, terms.OffPolicy, guard(offPolicy))

// offPolicy drops the tokens with a negative advantage of the rows whose mean of old log-prob
// − log-prob is above the limit.
func offPolicy(x Tokens, _ *graph.Node) (acts, instead *graph.Node) {
	limit := x.Knob(terms.OffPolicyLimit)
	far := graph.GreaterThan(graph.Neg(x.mean(x.LogRatio)), limit)
	return graph.LogicalAnd(x.spread(far), graph.LessThan(x.Column(batch.Advantages), scalar(x.LogRatio, 0))), x.Zero
}
