package model

import (
	"context"
	"fmt"

	"github.com/gomlx/compute"
)

// pass says how a minibatch is computed.
type pass struct {
	temperature float32   // not read by a critic
	knobs       []float32 // of the loss
}

// report is what an update's apply program says.
type report struct {
	metrics []float64 // in the order of the loss
	norm    float64
	skipped bool
}

// train makes the state after one update on a minibatch.
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
	metrics compute.Buffer   // those of the loss
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

// backward adds one micro-batch's gradients to acc.
func (p *Programs) backward(prog *program, s *State, b packed, how pass, acc *accumulated) error {
	f, err := p.forward(s, b.ids, how.temperature)
	if err != nil {
		return err
	}
	defer f.free()
	var extra []compute.Buffer
	defer func() { free(extra) }()
	n := p.sh.MicroBatch * p.sh.Sequence
	put := func(v []float32, dims ...int) error {
		buf, err := upload(p.device, v, dims...)
		if err == nil {
			extra = append(extra, buf)
		}
		return err
	}
	if err := put(b.columns, len(b.columns)/n, n); err != nil {
		return err
	}
	if err := put(how.knobs, len(how.knobs)); err != nil {
		return err
	}
	first := acc.grads == nil
	firstBuf, err := upload(p.device, []bool{first})
	if err != nil {
		return err
	}
	extra = append(extra, firstBuf)
	sums, metrics := acc.grads, acc.metrics
	if first { // any buffers of the right shape: they are not read
		if err := put(make([]float32, p.metricCount()), p.metricCount()); err != nil {
			return err
		}
		sums, metrics = s.params, extra[3]
	}
	args := append(append([]compute.Buffer{}, s.params...), f.inputs(p)...)
	args = append(append(args, f.scores...), f.saved...)
	args = append(args, extra[:3]...)
	args = append(append(args, sums...), metrics)
	out, err := prog.call(args...)
	if err != nil {
		return err
	}
	acc.free()
	acc.grads, acc.metrics = out[:len(out)-1], out[len(out)-1]
	return nil
}

// metricCount is how many metrics the loss has.
func (p *Programs) metricCount() int {
	if p.c.ValueHead {
		return criticMetricCount
	}
	return metricCount
}
