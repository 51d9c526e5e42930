package model

import (
	"context"
	"fmt"

	"github.com/gomlx/compute"
)

// pass holds the settings of the passes over a minibatch.
type pass struct {
	temperature float32   // not used for a critic
	knobs       []float32 // of the loss
}

// report is what an update finds before it writes.
type report struct {
	metrics []float64 // in the order of the loss
	norm    float64
	skipped bool
}

// train applies one update on a minibatch and returns the next state; see apply for what is
// left of the old one.
func (p *Programs) train(ctx context.Context, s *State, batches []packed, how pass, o Optimizer) (next *State, r report, err error) {
	p.device.run.Lock()
	defer p.device.run.Unlock()
	if err := p.check(s); err != nil {
		return nil, r, err
	}
	if s.m == nil {
		return nil, r, fmt.Errorf("%w: the state has no moments", ErrInput)
	}
	err = try("train", func() error {
		acc, err := p.accumulate(ctx, s, batches, how)
		if err != nil {
			return err
		}
		defer acc.free()
		next, r, err = p.apply(s, acc, o)
		return err
	})
	return next, r, err
}

// accumulated is the gradient of a minibatch on the device.
type accumulated struct {
	grads   []compute.Buffer // in Config.Tensors order
	metrics compute.Buffer   // the loss's
}

func (a *accumulated) free() {
	free(a.grads)
	free([]compute.Buffer{a.metrics})
}

// accumulate sums the gradients of the micro-batches in order. The caller holds run.
func (p *Programs) accumulate(ctx context.Context, s *State, batches []packed, how pass) (_ *accumulated, err error) {
	prog, err := p.program(kindBackward)
	if err != nil {
		return nil, err
	}
	acc := &accumulated{}
	defer func() {
		if err != nil {
			acc.free()
		}
	}()
	for i, b := range batches {
		if b.tokens == 0 {
			continue // adding zeros changes nothing
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := p.backward(prog, s, b, how, acc); err != nil {
			return nil, fmt.Errorf("micro-batch %d: %w", i, err)
		}
	}
	return acc, nil
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

// backward adds one micro-batch's gradients to acc.
func (p *Programs) backward(prog *program, s *State, b packed, how pass, acc *accumulated) error {
	f, err := p.forward(s, b.ids, how.temperature)
	if err != nil {
		return err
	}
	defer f.free()
	var in backwardInputs
	defer func() { in.free() }()
	n := p.sh.MicroBatch * p.sh.Sequence
	if in.columns, err = upload(p.device, b.columns, len(b.columns)/n, n); err != nil {
		return err
	}
	if in.knobs, err = upload(p.device, how.knobs, len(how.knobs)); err != nil {
		return err
	}
	first := acc.grads == nil
	if in.first, err = upload(p.device, []bool{first}); err != nil {
		return err
	}
	metrics := acc.metrics
	if first { // the program does not read the sums, but writes in their memory
		if acc.grads, err = p.zeros(); err != nil {
			return err
		}
		if in.noMetrics, err = upload(p.device, make([]float32, p.metricCount()), p.metricCount()); err != nil {
			return err
		}
		metrics = in.noMetrics
	}
	args := append(append([]compute.Buffer{}, s.params...), f.inputs(p)...)
	args = append(append(args, f.scores...), f.saved...)
	args = append(args, in.columns, in.knobs, in.first)
	args = append(append(args, acc.grads...), metrics)
	out, err := prog.call(args...)
	if err != nil {
		return err
	}
	acc.free()
	acc.grads, acc.metrics = out[:len(out)-1], out[len(out)-1]
	return nil
}

// metricCount is the number of metrics of the loss.
func (p *Programs) metricCount() int {
	if p.c.ValueHead {
		return criticMetricCount
	}
	return metricCount
}
