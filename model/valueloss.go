package model

import (
	"math"

	"github.com/gomlx/gomlx/core/graph"
)

// knobs are the inputs of the loss: the clip, +Inf if it is off.
func (k CriticSettings) knobs() []float32 {
	if k.Clip == 0 {
		return []float32{float32(math.Inf(1))}
	}
	return []float32{k.Clip}
}

// Places of the critic's own columns.
const (
	columnReturn = columnOwn + iota
	columnOldValue
	criticColumnCount
)

func criticColumns(b MicroBatch, k CriticSettings) []column {
	return []column{
		{name: "Returns", values: b.Returns, required: true},
		{name: "OldValues", values: b.OldValues, required: k.Clip != 0},
	}
}

// Places of the critic's own metrics.
const (
	criticMetricClip = metricLoss + 1 + iota
	criticMetricMean
	criticMetricCount
)

// valueLoss is the loss that trains the critic, with its derivative by the values, [n].
// Its reference on plain numbers is referenceValue in the tests. Values and columns
// are [n] each. Tokens that are not trained on have no effect on the results, even if
// their numbers are not finite.
func valueLoss(values *graph.Node, columns []*graph.Node, clip *graph.Node) (byValue, metrics *graph.Node) {
	zero := scalar(values, 0)
	weight, share := columns[columnWeight], columns[columnMean]
	used := graph.GreaterThan(share, zero)
	whereUsed := func(x *graph.Node) *graph.Node { return graph.Where(used, x, zero) }
	sum := func(x, weights *graph.Node) *graph.Node {
		return graph.Reshape(graph.ReduceAllSum(graph.Mul(whereUsed(x), weights)), 1)
	}
	old := columns[columnOldValue]
	clamped := graph.Min(graph.Max(values, graph.Sub(old, clip)), graph.Add(old, clip))
	plainError, clampedError := graph.Sub(values, columns[columnReturn]), graph.Sub(clamped, columns[columnReturn])
	plain, bounded := graph.Mul(plainError, plainError), graph.Mul(clampedError, clampedError)
	// bounded is greater only if the value is outside the bounds. There clamped is constant.
	clipped := graph.GreaterThan(bounded, plain)
	square := graph.Mul(graph.Where(clipped, bounded, plain), scalar(values, 0.5))
	metrics = graph.Concatenate([]*graph.Node{
		sum(square, weight), sum(graph.ConvertDType(clipped, values.DType()), share), sum(values, share),
	}, 0)
	return graph.Mul(whereUsed(graph.Where(clipped, zero, plainError)), weight), metrics
}
