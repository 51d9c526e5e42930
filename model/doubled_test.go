package model

import (
	"math"
	"slices"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"
)

// doubled computes losses and gradients in float64, by the graphs of which p's forward
// and backward programs are built. The backward program is cut in two, so that what
// a loss costs to compile is its own part alone; micro-batches are added up in Go.
type doubled struct {
	p             *Programs
	forward, pull *program
	// frozen are the forward program's inputs before the parameters: the base model's weights.
	frozen []compute.Buffer
	// constants are its inputs after the parameters and the ids.
	constants []compute.Buffer
}

// inFloat64 is p's network in float64. It uses nothing that p has on the device.
func inFloat64(t *testing.T, p *Programs, legal []bool, temperature float32) *doubled {
	t.Helper()
	d := &doubled{p: widened(p)}
	d.forward = &program{name: "forward in float64", device: p.device, build: d.p.Scorer.buildForward}
	d.pull = &program{name: "pull in float64", device: p.device, build: d.buildPull}
	half := p.c.HeadDim / 2
	cos, sin := ropeTables(p.c, p.sh.Sequence)
	d.constants = []compute.Buffer{d.put(t, float64s(cos), p.sh.Sequence, half), d.put(t, float64s(sin), p.sh.Sequence, half)}
	if p.c.ValueHead {
		d.forward.build = d.p.Scorer.buildValues
	} else {
		bias := make([]float64, p.c.VocabSize)
		for i := range bias {
			if !legal[i] {
				bias[i] = math.Inf(-1)
			}
		}
		d.constants = append(d.constants, d.put(t, bias, len(bias)), d.put(t, []float64{1 / float64(temperature)}))
	}
	t.Cleanup(func() {
		d.forward.finalize()
		d.pull.finalize()
		free(d.frozen)
		free(d.constants)
	})
	return d
}

// below puts a base model below the adapters.
func (d *doubled) below(t *testing.T, base Params) {
	t.Helper()
	for i, ts := range d.p.c.Frozen() {
		d.frozen = append(d.frozen, d.put(t, float64s(base.Values[i]), ts.Shape...))
	}
}

// widened is p with a network in float64.
func widened(p *Programs) *Programs {
	c := *p.core
	c.net.dtype, c.net.wide = dtypes.Float64, dtypes.Float64
	return programsOf(&c)
}

func float64s(v []float32) []float64 {
	out := make([]float64, len(v))
	for i, x := range v {
		out[i] = float64(x)
	}
	return out
}

// buildPull is the backward program without the loss: it takes what the forward
// program took and gave, and the loss's derivatives by the scores.
func (d *doubled) buildPull(in *inputs) []*graph.Node {
	p := d.p
	n, wide := p.sh.MicroBatch*p.sh.Sequence, p.net.wide
	w := p.net.weights(in)
	b := p.Scorer.batchInputs(in)
	if p.c.ValueHead {
		in.next(wide, n)
		saved := p.Learner.savedInputs(in)
		return p.Learner.pullValues(w, saved, b, in.next(wide, n))
	}
	in.next(wide, n)
	entropy, logSum := in.next(wide, n), in.next(wide, n)
	saved := p.Learner.savedInputs(in)
	return p.Learner.pullScores(w, saved, b, entropy, logSum, in.next(wide, n), in.next(wide, n))
}

func (d *doubled) put(t *testing.T, v []float64, dims ...int) compute.Buffer {
	t.Helper()
	b, err := d.p.device.backend.BufferFromFlatData(0, v, shapes.Make(dtypes.Float64, dims...))
	require.NoError(t, err)
	return b
}

func get(t *testing.T, b compute.Buffer, n int) []float64 {
	t.Helper()
	v := make([]float64, n)
	require.NoError(t, b.ToFlatData(v))
	return v
}

// minibatch is a minibatch of a loss, on the device.
type minibatch struct {
	loss         *program
	ids, columns []compute.Buffer
	knobs        compute.Buffer
	metrics      int
}

func (m *minibatch) free() {
	m.loss.finalize()
	free(m.ids)
	free(m.columns)
	free([]compute.Buffer{m.knobs})
}

// minibatch lays a minibatch out for a loss, which was built of Programs as widened
// gives them.
func (d *doubled) minibatch(t *testing.T, prog *program, all []packed, knobs []float32) *minibatch {
	t.Helper()
	n := d.p.sh.MicroBatch * d.p.sh.Sequence
	m := &minibatch{loss: prog, knobs: d.put(t, float64s(knobs), len(knobs)), metrics: d.p.Learner.metricCount()}
	for _, b := range all {
		ids, err := upload(d.p.device, 0, b.ids, d.p.sh.MicroBatch, d.p.sh.Sequence)
		require.NoError(t, err)
		m.ids = append(m.ids, ids)
		m.columns = append(m.columns, d.put(t, float64s(b.columns), len(b.columns)/n, n))
	}
	return m
}

// score runs the forward program and gives all that comes out of it.
func (d *doubled) score(t *testing.T, params []compute.Buffer, ids compute.Buffer) (inputs, out []compute.Buffer) {
	t.Helper()
	inputs = slices.Concat(d.frozen, params, []compute.Buffer{ids}, d.constants)
	out, err := d.forward.call(inputs...)
	require.NoError(t, err)
	return inputs, out
}

// losses gives the metrics of a minibatch, summed up over its micro-batches, and its
// gradient where it is asked for.
func (d *doubled) losses(t *testing.T, params []compute.Buffer, m *minibatch, gradient bool) (metrics []float64, grads [][]float64) {
	t.Helper()
	d.p.device.run.Lock()
	defer d.p.device.run.Unlock()
	metrics = make([]float64, m.metrics)
	add := func(to []float64, b compute.Buffer) {
		for i, x := range get(t, b, len(to)) {
			to[i] += x
		}
	}
	for i, ids := range m.ids {
		inputs, scored := d.score(t, params, ids)
		read := 2 // log-probs and entropies
		if d.p.c.ValueHead {
			read = 1
		}
		said, err := m.loss.call(append(slices.Clone(scored[:read]), m.columns[i], m.knobs)...)
		require.NoError(t, err)
		by := said[:len(said)-1]
		add(metrics, said[len(by)])
		if gradient {
			out, err := d.pull.call(append(append(inputs, scored...), by...)...)
			require.NoError(t, err)
			for j, ts := range d.p.c.Tensors() {
				if i == 0 {
					grads = append(grads, make([]float64, ts.Elements()))
				}
				add(grads[j], out[j])
			}
			free(out)
		}
		free(scored)
		free(said)
	}
	return metrics, grads
}
