package losses

import (
	"github.com/gomlx/gomlx/core/graph"

	"github.com/reprise-rl/reprise/model/batch"
	"github.com/reprise-rl/reprise/model/loss/terms"
)

var _ = add(terms.Value, terms.Squared, value(squared))

// squared is half the square of the error or of the clipped value's, whichever is greater.
func squared(x Values) Estimate {
	target, old := x.Column(batch.Returns), x.Column(batch.OldValues)
	clamped := graph.Min(graph.Max(x.Of, graph.Sub(old, x.Clip)), graph.Add(old, x.Clip))
	plainError, clampedError := graph.Sub(x.Of, target), graph.Sub(clamped, target)
	plain, bounded := graph.Mul(plainError, plainError), graph.Mul(clampedError, clampedError)
	// bounded is greater only if the value is outside the bounds. There clamped is constant.
	clipped := graph.GreaterThan(bounded, plain)
	return Estimate{
		Loss:    graph.Mul(graph.Where(clipped, bounded, plain), scalar(x.Of, 0.5)),
		Slope:   func() *graph.Node { return graph.Where(clipped, x.Zero, plainError) },
		Clipped: clipped, Said: x.Of,
	}
}
