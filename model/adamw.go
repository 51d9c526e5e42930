package model

import (
	"math"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
)

// Places in the optimizer's knobs vector.
const (
	adamRate = iota
	adamBeta1
	adamBeta2
	adamEpsilon
	adamDecay
	adamMaxNorm
	adamBias1     // 1 − β₁^t
	adamRootBias2 // √(1 − β₂^t)
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

// adamKnobs are the inputs of the optimizer for the update that leads to step t.
func adamKnobs(k Optimizer, t int64) []float32 {
	v := make([]float32, adamCount)
	v[adamRate], v[adamBeta1], v[adamBeta2] = k.LearningRate, k.Beta1, k.Beta2
	v[adamEpsilon], v[adamDecay], v[adamMaxNorm] = k.AdamEpsilon, k.WeightDecay, k.MaxGradNorm
	v[adamBias1] = float32(1 - power(float64(k.Beta1), t))
	v[adamRootBias2] = float32(math.Sqrt(1 - power(float64(k.Beta2), t)))
	return v
}

// apply makes the next state from a minibatch's gradient. The caller holds run.
func (p *Programs) apply(s *State, acc *accumulated, o Optimizer) (*State, report, error) {
	prog, err := p.program(kindApply)
	if err != nil {
		return nil, report{}, err
	}
	knobs, err := upload(p.device, adamKnobs(o, s.step+1), adamCount)
	if err != nil {
		return nil, report{}, err
	}
	defer free([]compute.Buffer{knobs})
	args := append([]compute.Buffer{}, s.params...)
	args = append(append(args, s.m...), s.v...)
	args = append(append(args, acc.grads...), acc.metrics, knobs)
	out, err := prog.call(args...)
	if err != nil {
		return nil, report{}, err
	}
	n := len(s.params)
	next := &State{device: s.device, c: s.c, step: s.step, fingerprint: s.fingerprint.hold(),
		params: out[:n], m: out[n : 2*n], v: out[2*n : 3*n]}
	count := p.metricCount()
	results, err := download[float32](out[3*n], count+2)
	free(out[3*n:])
	if err != nil {
		next.release()
		return nil, report{}, err
	}
	r := report{norm: float64(results[count]), skipped: results[count+1] != 0}
	for _, x := range results[:count] {
		r.metrics = append(r.metrics, float64(x))
	}
	if !r.skipped {
		next.step++
	}
	return next, r, nil
}

// buildApply is the AdamW program. Its inputs are the parameters, m, v, the gradient, the
// metrics and the knobs; its outputs are the next parameters, m and v, and the report.
// As in torch, a parameter decays first and then takes the step with bias-corrected
// moments (Loshchilov and Hutter, arXiv 1711.05101), and the gradient is clipped as by
// clip_grad_norm_.
func (p *Programs) buildApply(in *inputs) []*graph.Node {
	ts := p.c.Tensors()
	tensors := func() []*graph.Node { return in.tensors(dtypes.Float32, ts) }
	params := tensors()
	ms := tensors()
	vs := tensors()
	grads := tensors()
	metrics, knobs := in.next(dtypes.Float32, p.metricCount()), in.next(dtypes.Float32, adamCount)
	knob := func(i int) *graph.Node { return element(knobs, i) }
	one := scalar(knobs, 1)

	var square *graph.Node
	for _, g := range grads {
		s := graph.ReduceAllSum(graph.Mul(g, g))
		if square != nil {
			s = graph.Add(square, s)
		}
		square = s
	}
	norm := graph.Sqrt(square)
	ok := graph.LogicalAnd(graph.IsFinite(norm), graph.IsFinite(element(metrics, metricLoss)))
	scale := graph.Min(one, graph.Div(knob(adamMaxNorm), graph.Add(norm, scalar(norm, 1e-6))))
	scale = graph.Where(graph.GreaterThan(knob(adamMaxNorm), scalar(norm, 0)), scale, one)

	decay := graph.Sub(one, graph.Mul(knob(adamRate), knob(adamDecay)))
	rate := graph.Div(knob(adamRate), knob(adamBias1))
	b1, b2 := knob(adamBeta1), knob(adamBeta2)
	next := make([]*graph.Node, 3*len(ts))
	for i, t := range ts {
		g := graph.Mul(grads[i], scale)
		m := graph.Add(graph.Mul(ms[i], b1), graph.Mul(g, graph.Sub(one, b1)))
		v := graph.Add(graph.Mul(vs[i], b2), graph.Mul(graph.Mul(g, g), graph.Sub(one, b2)))
		x := params[i]
		if len(t.Shape) == 2 {
			x = graph.Mul(x, decay)
		}
		root := graph.Add(graph.Div(graph.Sqrt(v), knob(adamRootBias2)), knob(adamEpsilon))
		x = graph.Sub(x, graph.Mul(rate, graph.Div(m, root)))
		next[i] = graph.Where(ok, x, params[i])
		next[len(ts)+i] = graph.Where(ok, m, ms[i])
		next[2*len(ts)+i] = graph.Where(ok, v, vs[i])
	}
	skipped := graph.ConvertDType(graph.LogicalNot(ok), dtypes.Float32)
	report := []*graph.Node{metrics}
	for _, x := range []*graph.Node{norm, skipped} {
		report = append(report, graph.Reshape(x, 1))
	}
	return append(next, graph.Concatenate(report, 0))
}
