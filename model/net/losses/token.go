package losses

import (
	"github.com/gomlx/gomlx/core/graph"

	"github.com/reprise-rl/reprise/model/loss"
	"github.com/reprise-rl/reprise/model/loss/terms"
)

var _ = add(terms.Ratio, string(loss.TokenRatio), ratio(tokenRatio))

// tokenRatio is loss.TokenRatio, which every loss computes for its metrics.
func tokenRatio(x Tokens) (ratio, inside *graph.Node) { return x.Ratio, x.Inside }
