// Package losses computes the losses that train, in a graph. A term is one file: a function of named columns and
// knobs (package terms declares its name, its columns, its knobs and its metrics) that gives the loss of each
// token with its derivative. Policy and Critic compose the terms that a loss has.
//
// The tests of package model compute the same losses in float64 on plain numbers.
//
// The operations and their order decide a program's hash, and a run resumes only with the programs it had.
// So a changed term gets a new name.
package losses

import (
	"fmt"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/reprise-rl/reprise/model/batch"
	"github.com/reprise-rl/reprise/model/loss/terms"
)

// Columns are the columns of a loss in its program, [n] each. Every loss has Weight and Share.
type Columns struct {
	Weight *graph.Node // in the loss
	Share  *graph.Node // in the means of the metrics; above 0 for tokens that are trained on
	Own    map[batch.Column]*graph.Node
}

// Column is a column that the loss reads.
func (c Columns) Column(of batch.Column) *graph.Node {
	v, ok := c.Own[of]
	if !ok {
		panic(fmt.Sprintf("losses: the loss does not read %s", of))
	}
	return v
}

// Numbers are the knobs of a loss in its program, in the order of a layout.
type Numbers struct {
	Layout terms.Layout
	Vector *graph.Node
}

// Knob is a knob, as a scalar.
func (n Numbers) Knob(name string) *graph.Node {
	at := n.Layout.Knob(name)
	if at < 0 {
		panic("losses: the loss has no knob " + name)
	}
	return graph.Reshape(graph.Slice(n.Vector, graph.AxisRange(at, at+1)))
}

// Sizes are those of a micro-batch: n is Rows · Width.
type Sizes struct {
	Rows, Width int
	// Turns is the largest turn where ratios are of turns.
	Turns int
	Wide  dtypes.DType // of numbers
}

// Tokens are what the terms of a policy's loss read, [n] each; Zero and One are scalars. At tokens that are not
// Used, which have no part in the loss, log-probs and their differences are 0.
type Tokens struct {
	Sizes
	Columns
	Numbers
	Zero, One *graph.Node
	Used      *graph.Node
	LogProb   *graph.Node
	// LogRatio is log-prob − old log-prob, without a bound.
	LogRatio *graph.Node
	// Ratio is that of the token or of what the term of kind Ratio gives, and Inside marks where its logarithm
	// was within its bounds.
	Ratio, Inside *graph.Node
}

// A term is a function of one of these types, by its kind.
type (
	// surrogate gives the loss of each token before its weight, its derivative by the token's log-prob, and
	// whether a bound acted. Without a derivative (nil) the compiler differentiates the loss by the log-probs,
	// each token's alone: the sum over tokens is differentiated, so a ratio of a turn or a row needs its own.
	surrogate func(Tokens) (value, slope, bound *graph.Node)
	// ratio gives the ratio of each token, and marks where its logarithm was within its bounds.
	ratio func(Tokens) (ratio, inside *graph.Node)
	// guard marks tokens, and gives the loss that they have instead of value.
	guard func(x Tokens, value *graph.Node) (acts, instead *graph.Node)
	// distance estimates the distance from the reference from d = log π − log π_ref, with its derivative by log π.
	distance func(d difference) (kl, slope *graph.Node)
	// value is the loss of a critic's values.
	value func(Values) Estimate
)

// registered are the terms that a file has, by kind and name.
var registered = map[terms.Kind]map[string]any{}

// add takes a term up. It is called where the term stands, while the program starts.
func add[T surrogate | ratio | guard | distance | value](kind terms.Kind, name string, term T) T {
	if registered[kind] == nil {
		registered[kind] = map[string]any{}
	}
	registered[kind][name] = term
	return term
}

// find is a term that was added.
func find[T surrogate | ratio | guard | distance | value](of terms.Term) T {
	term, ok := registered[of.Kind][of.Name].(T)
	if !ok {
		panic(fmt.Sprintf("losses: no term for %s %s", of.Kind, of.Name))
	}
	return term
}

// scalar is a constant of x's dtype.
func scalar(x *graph.Node, v float32) *graph.Node { return graph.ConstAs(x, v) }

// within clamps x to [low, high] and marks where it was inside. NaN stays NaN and counts
// as inside.
func within(x *graph.Node, low, high float32) (bounded, inside *graph.Node) {
	under, over := graph.LessThan(x, scalar(x, low)), graph.GreaterThan(x, scalar(x, high))
	bounded = graph.Where(under, scalar(x, low), graph.Where(over, scalar(x, high), x))
	return bounded, graph.LogicalNot(graph.LogicalOr(under, over))
}

// mean is the mean of a number over the used tokens of each row, [rows].
func (x Tokens) mean(of *graph.Node) *graph.Node {
	perRow := func(v *graph.Node) *graph.Node { return graph.ReduceSum(graph.Reshape(v, x.Rows, x.Width), -1) }
	count := graph.Max(perRow(graph.ConvertDType(x.Used, x.Wide)), scalar(of, 1))
	return graph.Div(perRow(of), count)
}

// spread gives each token the number of its row.
func (x Tokens) spread(of *graph.Node) *graph.Node {
	return graph.Reshape(graph.BroadcastToDims(graph.Reshape(of, x.Rows, 1), x.Rows, x.Width), x.Rows*x.Width)
}

// weighted is the loss of a weight in front of the log-prob, which is not differentiated.
func (x Tokens) weighted(weight *graph.Node) (value, slope *graph.Node) {
	slope = graph.Neg(graph.Mul(weight, x.Column(batch.Advantages)))
	return graph.Mul(slope, x.LogProb), slope
}
