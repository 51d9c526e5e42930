package losses

import (
	"github.com/gomlx/gomlx/core/graph"

	"github.com/reprise-rl/reprise/model/loss/terms"
)

// Values are what the terms of a critic's loss read, [n] each; Zero is a scalar.
type Values struct {
	Columns
	Numbers
	Of   *graph.Node // the values
	Clip *graph.Node // the knob that every critic has, as a scalar
	Zero *graph.Node
}

// Estimate is the loss of each value, [n], with what belongs to it.
type Estimate struct {
	Loss *graph.Node
	// Slope gives the derivative by the value. It is called when the metrics are computed.
	Slope func() *graph.Node
	// Clipped marks the tokens whose loss comes from the clipped value; nil if values are not clipped.
	Clipped *graph.Node
	// Said is the value as the metrics have it.
	Said *graph.Node
}

// Critic is the loss that trains a critic, with its derivative by the values, [n].
// Its reference on plain numbers is referenceValue in the tests of package model. Values and columns
// are [n] each. Tokens that are not trained on have no effect on the results, even if
// their numbers are not finite.
func Critic(of terms.Selection, values *graph.Node, columns Columns, knobs *graph.Node) (byValue, metrics *graph.Node) {
	layout := of.CriticLayout()
	v := Values{Columns: columns, Numbers: Numbers{layout, knobs}, Of: values}
	v.Clip, v.Zero = v.Knob(terms.ValueClip), scalar(values, 0)
	used := graph.GreaterThan(columns.Share, v.Zero)
	// only is x with zeros at the other tokens, even where x is not finite there.
	only := func(x *graph.Node) *graph.Node { return graph.Where(used, x, v.Zero) }
	sum := func(x, weights *graph.Node) *graph.Node {
		return graph.Reshape(graph.ReduceAllSum(graph.Mul(only(x), weights)), 1)
	}
	e := find[value](of.CriticTerm())(v)
	said := map[string]*graph.Node{terms.Loss: sum(e.Loss, columns.Weight)}
	clipped := graph.ZerosLike
	if e.Clipped != nil {
		clipped = func(like *graph.Node) *graph.Node { return graph.ConvertDType(e.Clipped, like.DType()) }
	}
	said[terms.ValueClipFraction] = sum(clipped(values), columns.Share)
	said[terms.ValueMean] = sum(e.Said, columns.Share)
	metrics = inOrder(layout, said)
	return graph.Mul(only(e.Slope()), columns.Weight), metrics
}
