package model

import (
	"context"
	"fmt"
	"math"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
)

// MicroBatch is rows of Score and Update. Slices are indexed [row][token]; a row
// may be shorter than Shapes.Sequence, and a batch may have fewer rows than
// Shapes.MicroBatch: the rest is padding that changes no other row's bits.
type MicroBatch struct {
	// IDs are token ids, padded on the right with anything in the vocabulary.
	IDs [][]int32
	// Lengths are the tokens of each row that count; 0 makes a row padding.
	Lengths []int32
	// LossMask is 1 where the token at that index was sampled and counts in the
	// loss, else 0; at index 0 and from the length on it must be 0. Score ignores it.
	LossMask [][]float32
	// OldLogProbs and Advantages are read where LossMask is not 0. They may be nil
	// for SupervisedUpdate.
	OldLogProbs, Advantages [][]float32
	// RowWeights multiply the rows' masks, in the loss and in its normaliser. Nil
	// means 1 for every row.
	RowWeights []float32
}

// Score gives, at index t of each row, log p(ids[t] | ids[<t]) over the legal
// vocabulary at the temperature, and the entropy in nats of the distribution that
// ids[t] came from. Both are 0 at t = 0 and from the row's length on. Rows are
// Sequence long, in the batch's order.
//
// Update runs this same program for its own log-probs, so at the parameters that
// scored a batch, every ratio is exactly 1.
func (p *Programs) Score(ctx context.Context, s *State, b MicroBatch, temperature float32) (logProbs, entropy [][]float32, err error) {
	rows, err := p.pack(b)
	if err != nil {
		return nil, nil, fmt.Errorf("score: %w", err)
	}
	if !(temperature > 0) || math.IsInf(float64(temperature), 0) {
		return nil, nil, fmt.Errorf("score: %w: temperature %v", ErrInput, temperature)
	}
	p.device.run.Lock()
	defer p.device.run.Unlock()
	if err := p.check(s); err != nil {
		return nil, nil, fmt.Errorf("score: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return nil, nil, fmt.Errorf("score: %w", err)
	}
	err = try("score", func() error {
		f, err := p.forward(s, rows.ids, temperature)
		if err != nil {
			return err
		}
		defer f.free()
		n := p.sh.MicroBatch * p.sh.Sequence
		lp, err := download[float32](f.logProb, n)
		if err != nil {
			return err
		}
		ent, err := download[float32](f.entropy, n)
		if err != nil {
			return err
		}
		logProbs, entropy = p.unshift(lp, b), p.unshift(ent, b)
		return nil
	})
	return logProbs, entropy, err
}

// packed is a micro-batch as the programs read it: [MicroBatch·Sequence], with
// what belongs to the token at t+1 moved to t, where it is predicted.
type packed struct {
	ids                  []int32
	mask, old, advantage []float32
	tokens               int     // with a mask that is not 0
	weight               float64 // sum of the masks
}

// pack checks a micro-batch and lays it out.
func (p *Programs) pack(b MicroBatch) (packed, error) {
	rows, width := p.sh.MicroBatch, p.sh.Sequence
	bad := func(format string, args ...any) (packed, error) {
		return packed{}, fmt.Errorf("%w: "+format, append([]any{ErrInput}, args...)...)
	}
	if _, err := p.program(kindForward); err != nil {
		return packed{}, err
	}
	if len(b.IDs) > rows {
		return bad("%d rows, a micro-batch has %d", len(b.IDs), rows)
	}
	if len(b.Lengths) != len(b.IDs) {
		return bad("%d lengths for %d rows", len(b.Lengths), len(b.IDs))
	}
	for _, x := range []struct {
		what string
		v    [][]float32
	}{{"LossMask", b.LossMask}, {"OldLogProbs", b.OldLogProbs}, {"Advantages", b.Advantages}} {
		if x.v != nil && len(x.v) != len(b.IDs) {
			return bad("%s has %d rows, IDs %d", x.what, len(x.v), len(b.IDs))
		}
	}
	if b.RowWeights != nil && len(b.RowWeights) != len(b.IDs) {
		return bad("%d row weights for %d rows", len(b.RowWeights), len(b.IDs))
	}
	out := packed{ids: make([]int32, rows*width), mask: make([]float32, rows*width),
		old: make([]float32, rows*width), advantage: make([]float32, rows*width)}
	for r, ids := range b.IDs {
		length := int(b.Lengths[r])
		if len(ids) > width || length < 0 || length > len(ids) {
			return bad("row %d has length %d of %d ids, the width is %d", r, length, len(ids), width)
		}
		for t, id := range ids {
			if id < 0 || int(id) >= p.c.VocabSize {
				return bad("row %d has id %d at %d, the vocabulary has %d", r, id, t, p.c.VocabSize)
			}
			out.ids[r*width+t] = id
		}
		if b.LossMask == nil {
			continue
		}
		weight := float32(1)
		if b.RowWeights != nil {
			weight = b.RowWeights[r]
		}
		for t, m := range b.LossMask[r] {
			if m == 0 {
				continue
			}
			if t == 0 || t >= length {
				return bad("row %d of length %d has a loss mask at %d", r, length, t)
			}
			m *= weight
			if m == 0 {
				continue
			}
			if !(m > 0) || math.IsInf(float64(m), 0) {
				return bad("row %d has a loss weight of %v at %d", r, m, t)
			}
			at := r*width + t - 1
			out.mask[at] = m
			out.tokens++
			out.weight += float64(m)
			if b.OldLogProbs != nil && t < len(b.OldLogProbs[r]) {
				out.old[at] = b.OldLogProbs[r][t]
			}
			if b.Advantages != nil && t < len(b.Advantages[r]) {
				out.advantage[at] = b.Advantages[r][t]
			}
		}
	}
	return out, nil
}

// unshift moves what is predicted at t back to the token at t+1.
func (p *Programs) unshift(v []float32, b MicroBatch) [][]float32 {
	width := p.sh.Sequence
	out := make([][]float32, len(b.IDs))
	for r := range out {
		out[r] = make([]float32, width)
		for t := 1; t < int(b.Lengths[r]); t++ {
			out[r][t] = v[r*width+t-1]
		}
	}
	return out
}

// scored is what a forward pass leaves on the device.
type scored struct {
	ids, inverse compute.Buffer
	// logProb, entropy and logSum are [MicroBatch·Sequence] float32; saved are the
	// inputs of the layers and what comes out of the last, [MicroBatch·Sequence, d].
	logProb, entropy, logSum compute.Buffer
	saved                    []compute.Buffer
}

func (f *scored) free() {
	free([]compute.Buffer{f.ids, f.inverse, f.logProb, f.entropy, f.logSum})
	free(f.saved)
}

// forward runs the forward program. The caller holds run.
func (p *Programs) forward(s *State, ids []int32, temperature float32) (f *scored, err error) {
	prog, err := p.program(kindForward)
	if err != nil {
		return nil, err
	}
	f = &scored{}
	if f.ids, err = upload(p.device, ids, p.sh.MicroBatch, p.sh.Sequence); err != nil {
		return nil, err
	}
	if f.inverse, err = upload(p.device, []float32{1 / temperature}); err != nil {
		f.free()
		return nil, err
	}
	args := append([]compute.Buffer{}, s.params...)
	out, err := prog.call(append(args, f.ids, p.tables[0], p.tables[1], p.legal, f.inverse)...)
	if err != nil {
		f.free()
		return nil, err
	}
	f.logProb, f.entropy, f.logSum, f.saved = out[0], out[1], out[2], out[3:]
	return f, nil
}

// buildForward takes parameters, ids [b, T], rotary tables, legal ids and the
// inverse temperature, and gives log-probs, entropies and log-sums of the tokens
// that follow, [b·T], and the activations between layers.
func (p *Programs) buildForward(in *inputs) []*graph.Node {
	params := in.tensors(p.c.Tensors())
	b := p.batchInputs(in)
	x := p.net.embed(params[0], b.flat)
	saved := []*graph.Node{x}
	for i := range p.c.Layers {
		x = p.net.layer(p.c.layerOf(params, i), x, p.sh.MicroBatch, p.sh.Sequence, b.cos, b.sin)
		saved = append(saved, x)
	}
	hd := head{t: p.net, weight: params[p.c.head()], legal: b.legal, inverse: b.inverse}
	lp, ent, sum := hd.score(x, params[p.c.finalNorm()], b.target)
	return append([]*graph.Node{lp, ent, sum}, saved...)
}

// batchNodes are the inputs that the forward and the backward program share.
type batchNodes struct {
	flat, target             *graph.Node // [b·T] int32
	cos, sin, legal, inverse *graph.Node
}

func (p *Programs) batchInputs(in *inputs) batchNodes {
	rows, width, half := p.sh.MicroBatch, p.sh.Sequence, p.c.HeadDim/2
	ids := in.next(dtypes.Int32, rows, width)
	// The last position predicts nothing that is there; its target is never read.
	next := graph.Concatenate([]*graph.Node{
		graph.Slice(ids, graph.AxisRange(), graph.AxisRange(1, width)),
		graph.Slice(ids, graph.AxisRange(), graph.AxisRange(0, 1)),
	}, 1)
	table := func() *graph.Node { return graph.Reshape(in.next(dtypes.Float32, width, half), 1, width, half) }
	return batchNodes{
		flat: graph.Reshape(ids, rows*width), target: graph.Reshape(next, rows*width),
		cos: table(), sin: table(),
		legal: in.next(dtypes.Float32, p.c.VocabSize), inverse: in.next(dtypes.Float32),
	}
}
