package model

import (
	"context"
	"fmt"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
)

// pass holds the settings of the passes over a minibatch.
type pass struct {
	temperature float32   // not used for a critic
	knobs       []float32 // of the loss
}

// report is what an update finds before it writes.
type report struct {
	metrics map[string]float64 // by name
	norm    float64
	skipped bool
}

// Gradient is an optimizer step on the way: the sums of the gradients and metrics of the
// micro-batches that were added so far, in the device's memory, 4 bytes a parameter, and in
// shards 8. M is what the step tells: UpdateMetrics or CriticMetrics.
//
// [Learner.Gradient] and [Learner.CriticGradient] begin one. Add is called until none is Left,
// then Apply. However long it lies between two calls, the bits are those of
// [Learner.Update]: a sum is a left fold over the micro-batches in their order, or with Shard
// over those of a shard. It is not safe for concurrent use.
type Gradient[M any] struct {
	l       *Learner
	state   *State // of the micro-batches added so far; nil before the first
	batches []packed
	added   int // of batches
	order   shards
	how     pass
	o       Optimizer
	tell    func(report) M
	sums    []accumulated // by device, of the round's shards
	total   accumulated   // of the rounds before; a tensor's is on its owner
	ended   bool
}

// newGradient begins a step.
func newGradient[M any](l *Learner, batches []packed, how pass, o Optimizer, tell func(report) M) *Gradient[M] {
	devices := l.device.Count()
	return &Gradient[M]{
		l: l, batches: batches, how: how, o: o, tell: tell,
		order: shards{of: 1, devices: devices, batches: len(batches)}, sums: make([]accumulated, devices),
	}
}

// accumulated is the gradient of a minibatch on the device.
type accumulated struct {
	grads   []compute.Buffer // in Config.Tensors order; nil before the first micro-batch
	metrics compute.Buffer   // the loss's; of a total on the first device
}

func (a *accumulated) free() {
	free(a.grads)
	free([]compute.Buffer{a.metrics})
	*a = accumulated{}
}

// Left is the number of micro-batches that are still to be added.
func (g *Gradient[M]) Left() int { return len(g.batches) - g.added }

// Add adds the next micro-batch's gradient at the state; in shards, one micro-batch on each device
// at a time. One without a token that is trained on adds nothing. If the context has ended, the sums stay
// as they were; any other error frees them, and the step has to begin anew.
func (g *Gradient[M]) Add(ctx context.Context, s *State) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	g.l.device.run.Lock()
	defer g.l.device.run.Unlock()
	err := g.usable(s)
	if err == nil && g.Left() == 0 {
		err = fmt.Errorf("%w: all micro-batches were added", ErrInput)
	}
	next := g.order.next()
	if err == nil {
		err = g.l.spread(s, g.order.width(), g.l.scorer.tables()...)
	}
	if err == nil {
		err = g.l.device.deal(len(next), func(k, at int) error {
			b := g.batches[next[at]]
			if b.tokens == 0 {
				return nil // adding zeros changes nothing
			}
			return try("train", func() error { return b.on.at(k).backward(s, b, g.how, &g.sums[k]) })
		})
	}
	if err == nil && g.order.advance() {
		err = g.l.addShards(&g.total, g.sums, s.owner)
	}
	if err != nil {
		g.end()
		return fmt.Errorf("micro-batch %d: %w", g.added, err)
	}
	for _, i := range next {
		g.batches[i] = packed{} // it is not read again
	}
	g.state = s
	g.added += len(next)
	return nil
}

// Measure returns what Apply would tell, and changes nothing: the figures are those of the state that the micro-batches
// were added at.
func (g *Gradient[M]) Measure(s *State) (m M, err error) {
	g.l.device.run.Lock()
	defer g.l.device.run.Unlock()
	if err := g.whole(s); err != nil {
		return m, err
	}
	var r report
	if err := try("train", func() error {
		r, err = g.l.decide(s, &g.total)
		return err
	}); err != nil {
		return m, err
	}
	return g.tell(r), nil
}

// whole returns an error if the step cannot be made at the state, or if micro-batches are missing. The caller holds run.
func (g *Gradient[M]) whole(s *State) error {
	err := g.usable(s)
	if err == nil && g.Left() > 0 {
		err = fmt.Errorf("%w: %d of %d micro-batches were not added", ErrInput, g.Left(), len(g.batches))
	}
	return err
}

// Apply makes the step and returns the next state, in the memory of s; see [Learner.Update].
// The sums are freed, whatever it returns.
func (g *Gradient[M]) Apply(s *State) (next *State, m M, err error) {
	g.l.device.run.Lock()
	defer g.l.device.run.Unlock()
	defer g.end()
	if err := g.whole(s); err != nil {
		return nil, m, err
	}
	var r report
	if err = try("train", func() error {
		next, r, err = g.l.apply(s, &g.total, g.o)
		return err
	}); err != nil {
		return nil, m, err
	}
	return next, g.tell(r), nil
}

// Free gives the step up and frees its sums. Freeing twice is fine.
func (g *Gradient[M]) Free() {
	g.l.device.run.Lock()
	defer g.l.device.run.Unlock()
	g.end()
}

// end frees what the step holds. The caller holds run.
func (g *Gradient[M]) end() {
	if !g.ended {
		g.ended = true
		g.total.free()
		for k := range g.sums {
			g.sums[k].free()
		}
	}
}

// usable returns an error if the step has ended, or if s is not the state to train. The
// caller holds run.
func (g *Gradient[M]) usable(s *State) error {
	if g.ended {
		return fmt.Errorf("%w: the gradient was applied or freed", ErrInput)
	}
	if err := g.l.check(s); err != nil {
		return err
	}
	if s.m == nil {
		return fmt.Errorf("%w: the state has no moments", ErrInput)
	}
	if g.state != nil && g.state != s {
		return fmt.Errorf("%w: another state than that of the micro-batches before", ErrInput)
	}
	return nil
}

// train makes a whole optimizer step.
func train[M any](ctx context.Context, s *State, g *Gradient[M], err error) (*State, M, error) {
	var none M
	if err != nil {
		return nil, none, err
	}
	defer g.Free()
	for g.Left() > 0 {
		if err := g.Add(ctx, s); err != nil {
			return nil, none, err
		}
	}
	return g.Apply(s)
}

// backwardInputs are the buffers that are uploaded for one micro-batch's backward pass.
type backwardInputs struct {
	columns, knobs compute.Buffer // of the loss
	first          compute.Buffer // whether acc is still empty
	noMetrics      compute.Buffer // instead of acc's metrics if it is
}

func (in backwardInputs) free() {
	free([]compute.Buffer{in.columns, in.knobs, in.first, in.noMetrics})
}

// backward adds one micro-batch's gradients to acc. The caller holds run.
func (l *Learner) backward(s *State, b packed, how pass, acc *accumulated) error {
	prog, err := l.program(kindBackward)
	if err != nil {
		return err
	}
	f, err := l.scorer.forward(s, b.ids, how.temperature)
	if err != nil {
		return err
	}
	defer f.free()
	var in backwardInputs
	defer func() { in.free() }()
	n := l.sh.MicroBatch * l.sh.Sequence * l.perToken()
	if in.columns, err = upload(l.device, l.k, b.columns, len(b.columns)/n, n); err != nil {
		return err
	}
	if in.knobs, err = upload(l.device, l.k, how.knobs, len(how.knobs)); err != nil {
		return err
	}
	first := acc.grads == nil
	if in.first, err = upload(l.device, l.k, []bool{first}); err != nil {
		return err
	}
	metrics := acc.metrics
	if first { // the program does not read the sums, but writes in their memory
		if acc.grads, err = l.zeros(); err != nil {
			return err
		}
		if in.noMetrics, err = upload(l.device, l.k, make([]float32, l.metricCount()), l.metricCount()); err != nil {
			return err
		}
		metrics = in.noMetrics
	}
	args, err := l.weights(s)
	if err != nil {
		return err
	}
	args = append(args, f.inputs(l.scorer)...)
	args = append(append(args, f.scores...), f.saved...)
	args = append(args, in.columns, in.knobs, in.first)
	args = append(append(args, acc.grads...), metrics)
	out, err := prog.on(l.k, args...)
	if err != nil {
		return err
	}
	acc.free()
	acc.grads, acc.metrics = out[:len(out)-1], out[len(out)-1]
	return nil
}

// zeros are tensors of zeros made on the device. The caller holds run.
func (l *Learner) zeros() ([]compute.Buffer, error) {
	zeros, ofBundles := l.progs[l.named(kindZeros)]
	if !ofBundles {
		var err error
		if zeros, err = l.group(kindFill); err != nil {
			return nil, err
		}
	}
	numbers, err := upload(l.device, l.k, make([]uint32, 3), 3) // of all: without spread no seed matters
	if err != nil {
		return nil, err
	}
	defer free([]compute.Buffer{numbers})
	out := make([]compute.Buffer, len(l.c.Tensors()))
	if err := l.device.abreast("make zeros", len(zeros), func(b int) error {
		made, err := zeros[b].on(l.k, numbers)
		if err == nil {
			l.bundles[b].put(out, made)
		}
		return err
	}); err != nil {
		free(out)
		return nil, err
	}
	return out, nil
}

// buildZeros is the program that makes a bundle of tensors of zeros, with buildFill's numbers.
func buildZeros(t TensorShape, n int) builder {
	return func(in *inputs) []*graph.Node {
		numbers := in.next(dtypes.Uint32, 3)
		zero := graph.Bitcast(element(numbers, 0), dtypes.Float32)
		out := make([]*graph.Node, n)
		for i := range out {
			out[i] = graph.BroadcastToDims(zero, t.Shape...)
		}
		return out
	}
}
