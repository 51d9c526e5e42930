package model

import (
	"fmt"
	"math"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/reprise-rl/reprise/model/loss/terms"
)

// Places in the optimizer's numbers.
const (
	adamRate = iota
	adamBeta1
	adamBeta2
	adamEpsilon
	adamDecay
	adamBias1     // 1 − β₁^t
	adamRootBias2 // √(1 − β₂^t)
	adamScale     // of the gradient, to clip its norm
	adamCount
)

// power computes b^n by squaring, so that every machine gets the same bits.
func power(b float64, n int64) float64 {
	r := 1.0
	for ; n > 0; n >>= 1 {
		if n&1 == 1 {
			r *= b
		}
		b *= b
	}
	return r
}

// adamNumbers are the inputs of the optimizer for the update that leads to step t.
func adamNumbers(k Optimizer, t int64, scale float32) []float32 {
	v := make([]float32, adamCount)
	v[adamRate], v[adamBeta1], v[adamBeta2] = k.LearningRate, k.Beta1, k.Beta2
	v[adamEpsilon], v[adamDecay], v[adamScale] = k.AdamEpsilon, k.WeightDecay, scale
	v[adamBias1] = float32(1 - power(float64(k.Beta1), t))
	v[adamRootBias2] = float32(math.Sqrt(1 - power(float64(k.Beta2), t)))
	return v
}

// clipScale is what a gradient is multiplied with to clip its norm, as by torch's
// clip_grad_norm_.
func clipScale(norm, maxNorm float32) float32 {
	if maxNorm <= 0 {
		return 1
	}
	return min(1, maxNorm/(norm+1e-6))
}

// apply makes the next state from a minibatch's gradient. It first decides whether the step
// is finite, and reads only the gradient for that; then it writes, tensor by tensor, in the
// memory of the old state, which it consumes, each on its owner. If there is an error after the first tensor was
// written, there is neither the old state nor the next. The caller holds run.
func (l *Learner) apply(s *State, acc *accumulated, o Optimizer) (*State, report, error) {
	r, err := l.decide(s, acc)
	if err != nil {
		return nil, report{}, err
	}
	step := fmt.Sprintf("the update to step %d", s.step+1)
	if r.skipped {
		return s.pass(step + ", which was skipped"), r, nil
	}
	steps, err := l.group(kindApply)
	if err != nil {
		return nil, report{}, err
	}
	if err := steps.compile(); err != nil {
		return nil, report{}, err
	}
	numbers := make([]compute.Buffer, l.device.Count()) // by device
	defer free(numbers)
	for k := range numbers {
		of := adamNumbers(o, s.step+1, clipScale(float32(r.norm), o.MaxGradNorm))
		if numbers[k], err = upload(l.device, k, of, adamCount); err != nil {
			return nil, report{}, err
		}
	}
	next := s.pass(step)
	next.dropCopies()
	complete := false
	defer func() { // also of a panic
		if !complete {
			next.release()
		}
	}()
	if err := l.device.eachOwned(l.ownersOf(next), "step", func(k, b int) error {
		of := l.bundles[b]
		args := slices.Concat(of.take(next.params), of.take(next.m), of.take(next.v), of.take(acc.grads))
		out, err := steps[b].on(k, append(args, numbers[k])...)
		if err != nil {
			return fmt.Errorf("tensor %d of %d: %w", of[0], len(next.params), err)
		}
		n := len(of)
		of.put(next.params, out[:n])
		of.put(next.m, out[n:2*n])
		of.put(next.v, out[2*n:])
		for _, i := range of {
			free(acc.grads[i : i+1])
		}
		return nil
	}); err != nil {
		return nil, report{}, fmt.Errorf("%w: %w", ErrConsumed, err)
	}
	next.step++
	complete = true
	return next, r, nil
}

// decide reads a minibatch's metrics and the norm of its gradient. Owners sum up the squares of
// their tensors; the host adds these in the order of tensors, so that the sum does not depend on who
// owns which. A step is skipped unless both the loss and the norm are finite.
func (l *Learner) decide(s *State, acc *accumulated) (report, error) {
	squares, err := l.group(kindSquare)
	if err != nil {
		return report{}, err
	}
	of := make([]float32, len(acc.grads))
	if err := l.device.eachOwned(l.ownersOf(s), "norm", func(k, b int) error {
		bundle := l.bundles[b]
		out, err := squares[b].on(k, bundle.take(acc.grads)...)
		if err != nil {
			return err
		}
		defer free(out)
		sums, err := download[float32](out[0], len(bundle))
		for at, sum := range sums {
			of[bundle[at]] = sum
		}
		return err
	}); err != nil {
		return report{}, err
	}
	var sum float32
	for _, square := range of {
		sum += square
	}
	metrics, err := download[float32](acc.metrics, l.metricCount())
	if err != nil {
		return report{}, err
	}
	var named []float64
	for _, x := range metrics {
		named = append(named, float64(x))
	}
	r := report{metrics: l.layout.Report(named)}
	r.norm = float64(float32(math.Sqrt(float64(sum))))
	r.skipped = !finite(r.norm) || !finite(r.metrics[terms.Loss])
	return r, nil
}

// finite reports whether x is neither NaN nor infinite.
func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// buildSquare is the program that gives the sum of squares of each of n gradients: [n], or a scalar if
// n is 1.
func buildSquare(t TensorShape, n int) builder {
	return func(in *inputs) []*graph.Node {
		sums := make([]*graph.Node, n)
		for i := range sums {
			g := in.next(dtypes.Float32, t.Shape...)
			sums[i] = sumOfSquares(g)
		}
		if n == 1 {
			return sums
		}
		return []*graph.Node{graph.Stack(sums, 0)}
	}
}

// sumOfSquares is that of all numbers of x. First few of them are added up at a time, in one loop with their squares: the compiler makes
// parts of a longer sum, and holds all squares for that.
func sumOfSquares(x *graph.Node) *graph.Node {
	n, few := x.Shape().Size(), maxSum
	for n%few != 0 {
		few--
	}
	x = graph.Reshape(x, n/few, few)
	return graph.ReduceAllSum(notNegative(graph.ReduceSum(graph.Mul(x, x), -1)))
}

// buildApply is the AdamW program of n tensors of one shape. Its inputs are their parameters, their m, their v,
// their gradients and the numbers; its outputs are the next parameters, m and v, in the memory of
// the old ones. As in torch, a parameter decays first and then takes the step with
// bias-corrected moments (Loshchilov and Hutter, arXiv 1711.05101).
func buildApply(t TensorShape, n int) builder {
	return func(in *inputs) []*graph.Node {
		var states [3][]*graph.Node // parameters, m, v
		for part := range states {
			for i := range n {
				states[part] = append(states[part], in.donated(part*n+i, dtypes.Float32, t.Shape...))
			}
		}
		grads := make([]*graph.Node, n)
		for i := range grads {
			grads[i] = in.next(dtypes.Float32, t.Shape...)
		}
		numbers := in.next(dtypes.Float32, adamCount)
		number := func(i int) *graph.Node { return element(numbers, i) }
		one := scalar(numbers, 1)

		decay := graph.Sub(one, graph.Mul(number(adamRate), number(adamDecay)))
		rate := graph.Div(number(adamRate), number(adamBias1))
		b1, b2 := number(adamBeta1), number(adamBeta2)
		for i := range n {
			x, m, v := states[0][i], states[1][i], states[2][i]
			g := graph.Mul(grads[i], number(adamScale))
			m = graph.Add(graph.Mul(m, b1), graph.Mul(g, graph.Sub(one, b1)))
			v = graph.Add(graph.Mul(v, b2), graph.Mul(graph.Mul(g, g), graph.Sub(one, b2)))
			if len(t.Shape) == 2 {
				x = graph.Mul(x, decay)
			}
			root := graph.Add(graph.Div(graph.Sqrt(v), number(adamRootBias2)), number(adamEpsilon))
			x = graph.Sub(x, graph.Mul(rate, graph.Div(m, root)))
			states[0][i], states[1][i], states[2][i] = x, m, v
		}
		return slices.Concat(states[:]...)
	}
}

// ownersOf are the owners of the bundles of a state's tensors.
func (l *Learner) ownersOf(s *State) []int {
	out := make([]int, len(l.bundles))
	for b, of := range l.bundles {
		out[b] = s.owner[of[0]]
	}
	return out
}
