package model

import (
	"fmt"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
)

// shards deals the micro-batches of an optimizer step to W shards: micro-batch i belongs to shard
// i mod W. Shard s is computed by device s mod N in round ⌊s/N⌋, micro-batch by micro-batch in
// their order. After a round the shards' sums are added to the total in the order of s. So a
// total is the same left fold over shards, each a left fold over its micro-batches, whatever
// N is. A shard without a token that is trained on is left out, never added as zeros.
type shards struct {
	of            int // W
	devices       int // N
	batches       int
	round, column int // what comes next: micro-batch number column of each of the round's shards
}

// next are the micro-batches that come next, that of device k at k; empty after the last.
func (c *shards) next() []int {
	var out []int
	for s := c.round * c.devices; s < min((c.round+1)*c.devices, c.of); s++ {
		if i := c.column*c.of + s; i < c.batches {
			out = append(out, i)
		}
	}
	return out
}

// advance goes on to what follows; ended tells that a round has ended.
func (c *shards) advance() (ended bool) {
	if c.column++; len(c.next()) > 0 {
		return false
	}
	c.round, c.column = c.round+1, 0
	return true
}

// width is the number of devices that compute.
func (c *shards) width() int { return min(c.devices, c.of, c.batches) }

// addShards adds what the devices have summed up to the total, in the order of the devices, and frees
// it there. The total of a tensor is on its owner. The caller holds run.
func (l *Learner) addShards(total *accumulated, sums []accumulated, owner []int) error {
	metrics, err := l.metricsOf(total, sums)
	if err != nil || metrics == nil {
		return err
	}
	if total.grads == nil {
		total.grads = make([]compute.Buffer, len(owner))
	}
	if err := l.device.eachOwned(owner, "add up shards", func(to, i int) error {
		for k := range sums {
			if sums[k].grads == nil {
				continue
			}
			if err := l.addTensor(total.grads, sums[k].grads, k, to, i); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return err
	}
	for k := range sums {
		sums[k].free()
	}
	return put(l.device, 0, &total.metrics, metrics, l.metricCount())
}

// metricsOf adds the metrics of shards to those of the total; nil if no shard has any.
func (l *Learner) metricsOf(total *accumulated, sums []accumulated) (out []float32, err error) {
	n := l.metricCount()
	for k := range sums {
		if sums[k].grads == nil {
			continue
		}
		if out == nil && total.grads != nil {
			if out, err = download[float32](total.metrics, n); err != nil {
				return nil, err
			}
		}
		more, err := download[float32](sums[k].metrics, n)
		if err != nil {
			return nil, err
		}
		if out == nil {
			out = more
			continue
		}
		out = l.addMetrics(out, more)
	}
	return out, nil
}

// addTensor adds tensor i of device k's sum to the total on its owner.
func (l *Learner) addTensor(total, shard []compute.Buffer, k, owner, i int) error {
	if k != owner {
		here, err := shard[i].CopyToDevice(l.device.numbers[owner])
		if err != nil {
			return err
		}
		free(shard[i : i+1])
		shard[i] = here
		l.device.ended.Add(1)
	}
	if total[i] == nil {
		total[i], shard[i] = shard[i], nil
		return nil
	}
	adds, err := l.group(kindAdd)
	if err != nil {
		return err
	}
	out, err := adds[i].on(owner, total[i], shard[i])
	if err != nil {
		return err
	}
	total[i] = out[0]
	free(shard[i : i+1])
	return nil
}

// addMetrics adds the metrics of a shard to those of the shards before it, in float32.
func (l *Learner) addMetrics(before, shard []float32) []float32 {
	out := make([]float32, len(shard))
	for i, m := range l.layout.Metrics {
		if out[i] = before[i] + shard[i]; m.Largest {
			out[i] = max(before[i], shard[i])
		}
	}
	return out
}

// buildAdd is the program that adds a tensor of a shard's gradient to the total, in the total's
// memory.
func buildAdd(t TensorShape) builder {
	return func(in *inputs) []*graph.Node {
		total := in.donated(0, dtypes.Float32, t.Shape...)
		return []*graph.Node{graph.Add(total, in.next(dtypes.Float32, t.Shape...))}
	}
}

// Shard cuts the step into so many shards, before its first micro-batch. One shard, as without a
// call, is a left fold over the micro-batches. More need programs with Shapes.Sharded.
func (g *Gradient[M]) Shard(shards int) error {
	switch {
	case shards < 1:
		return fmt.Errorf("%w: %d shards", ErrInput, shards)
	case g.added > 0:
		return fmt.Errorf("%w: %d micro-batches were added before the step was cut into shards", ErrInput, g.added)
	case shards > 1 && !g.l.sh.Sharded:
		return fmt.Errorf("%w: %d shards, but the programs were prepared without Sharded", ErrInput, shards)
	}
	g.order.of = shards
	return nil
}
