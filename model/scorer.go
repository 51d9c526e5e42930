package model

import (
	"context"
	"fmt"
	"math"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/reprise-rl/reprise/model/batch"
)

// Scorer scores micro-batches with a policy, or gives them the values of a critic. It has the programs
// of Shapes.MicroBatch that go forward.
type Scorer struct {
	*core
	rope tables // of the tokens of a row
	// widths are the scorers of micro-batches, by width: it itself, and those of Shapes.Narrower.
	widths []*Scorer
}

func newScorer(c *core) *Scorer {
	p := &Scorer{core: c}
	p.widths = []*Scorer{p}
	return p
}

// uploadTables uploads the rotary tables. The caller holds run.
func (p *Scorer) uploadTables() error {
	if p.sh.MicroBatch == 0 {
		return nil
	}
	return p.uploadRope(&p.rope, p.sh.Sequence)
}

// prepare adds the scorer's program. The caller holds run.
func (p *Scorer) prepare() {
	switch {
	case p.sh.MicroBatch == 0:
	case p.c.ValueHead:
		p.add(kindForward, p.microBatchKey(), p.buildValues)
	default:
		p.add(kindForward, p.microBatchKey(), p.buildForward)
	}
}

// tables are what the programs of micro-batches of all widths read besides weights and rows.
func (p *Scorer) tables() (out []*tables) {
	for _, q := range p.widths {
		out = append(out, &q.legal, &q.rope)
	}
	return out
}

// at is the scorer as it runs on device k, on which spread has been.
func (p *Scorer) at(k int) *Scorer {
	q := *p
	q.core = p.core.at(k)
	return &q
}

// free frees what the scorer's program reads. The caller holds run.
func (p *Scorer) free() { p.rope.free() }

// Score returns, at index t of each row, log p(ids[t] | ids[<t]) over the legal
// vocabulary at the temperature, and the entropy in nats of the distribution that
// ids[t] was drawn from. Both are 0 at t = 0 and from the row's length on. Rows are
// as long as the micro-batch is wide, in the batch's order.
//
// Update computes its log-probs with the same program, so with the parameters that
// scored a batch, every ratio is exactly 1.
func (p *Scorer) Score(ctx context.Context, s *State, b batch.MicroBatch, temperature float32) (logProbs, entropy [][]float32, err error) {
	out, err := p.ScoreAll(ctx, s, []batch.MicroBatch{b}, temperature)
	if err != nil {
		return nil, nil, err
	}
	return out[0].LogProbs, out[0].Entropies, nil
}

// Scores are what Score returns for a micro-batch.
type Scores struct {
	LogProbs, Entropies [][]float32 // [rows][width]
}

// ScoreAll is Score for several micro-batches, which are dealt to the devices. The context is
// checked before each.
func (p *Scorer) ScoreAll(ctx context.Context, s *State, batches []batch.MicroBatch, temperature float32) ([]Scores, error) {
	if !(temperature > 0) || math.IsInf(float64(temperature), 0) {
		return nil, fmt.Errorf("score: %w: temperature %v", ErrInput, temperature)
	}
	got, err := p.scores(ctx, s, batches, false, temperature, 2)
	if err != nil {
		return nil, fmt.Errorf("score: %w", err)
	}
	out := make([]Scores, len(got))
	for i, of := range got {
		out[i] = Scores{LogProbs: of[0], Entropies: of[1]}
	}
	return out, nil
}

// scores runs the forward program on micro-batches and returns its first count outputs,
// [micro-batch][output][row][token]. critic reports whether the programs must be a critic's or a
// policy's.
func (p *Scorer) scores(ctx context.Context, s *State, batches []batch.MicroBatch, critic bool, temperature float32, count int) ([][][][]float32, error) {
	if err := p.checkRole(critic); err != nil {
		return nil, err
	}
	on, ids := make([]*Scorer, len(batches)), make([][]int32, len(batches))
	for i, b := range batches {
		width, err := p.place(b)
		if err != nil {
			return nil, err
		}
		on[i] = p.widths[width]
		if ids[i], err = on[i].pack(b); err != nil {
			return nil, err
		}
	}
	p.device.run.Lock()
	defer p.device.run.Unlock()
	if err := p.check(s); err != nil {
		return nil, err
	}
	if err := p.spread(s, len(batches), p.tables()...); err != nil {
		return nil, err
	}
	out := make([][][][]float32, len(batches))
	return out, p.device.deal(len(batches), func(k, i int) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return try("forward", func() error {
			p := on[i].at(k)
			f, err := p.forward(s, ids[i], temperature)
			if err != nil {
				return err
			}
			defer f.free()
			for _, buffer := range f.scores[:count] {
				v, err := download[float32](buffer, p.sh.MicroBatch*p.sh.Sequence*p.perToken())
				if err != nil {
					return err
				}
				out[i] = append(out[i], p.unshift(v, batches[i]))
			}
			return nil
		})
	})
}

// scored holds the inputs and outputs of a forward pass on the device.
type scored struct {
	ids, inverse compute.Buffer // inverse is nil for a critic, which has no temperature
	// scores are the policy's log-probs, entropies and log-sums, or the critic's values,
	// each [MicroBatch·Sequence] float32. saved are the rest of the program's outputs.
	scores, saved []compute.Buffer
}

func (f *scored) free() {
	free([]compute.Buffer{f.ids, f.inverse})
	free(f.scores)
	free(f.saved)
}

// inputs are the inputs of the forward program after the parameters.
func (f *scored) inputs(p *Scorer) []compute.Buffer {
	in := append([]compute.Buffer{f.ids}, p.rope.on(p.k)...)
	if p.c.ValueHead {
		return in
	}
	return append(in, p.legal.on(p.k)[0], f.inverse)
}

// forward runs the forward program. The caller holds run.
func (p *Scorer) forward(s *State, ids []int32, temperature float32) (f *scored, err error) {
	prog, err := p.program(kindForward)
	if err != nil {
		return nil, err
	}
	args, err := p.weights(s)
	if err != nil {
		return nil, err
	}
	f = &scored{}
	if f.ids, err = upload(p.device, p.k, ids, p.sh.MicroBatch, p.sh.Sequence); err != nil {
		return nil, err
	}
	if !p.c.ValueHead {
		if f.inverse, err = upload(p.device, p.k, []float32{1 / temperature}); err != nil {
			f.free()
			return nil, err
		}
	}
	out, err := prog.on(p.k, append(args, f.inputs(p)...)...)
	if err != nil {
		f.free()
		return nil, err
	}
	n := p.scoreCount()
	f.scores, f.saved = out[:n], out[n:]
	return f, nil
}

// scoreCount is how many scores the forward program gives.
func (p *Scorer) scoreCount() int {
	if p.c.ValueHead {
		return 1
	}
	return 3
}

// buildForward is the policy's forward program. Its inputs are the parameters, ids [b, T],
// rotary tables, legal ids and the inverse temperature; its outputs are log-probs,
// entropies and log-sums of the tokens that follow, [b·T], and what is saved for the backward
// program.
func (p *Scorer) buildForward(in *inputs) []*graph.Node {
	w := p.net.weights(in)
	b := p.batchInputs(in)
	saved := p.layers(w, b)
	hd := head{t: p.net, weight: w.head, legal: b.legal, inverse: b.inverse}
	lp, ent, sum, products := hd.score(saved.last, w.norm, b.target)
	saved.logits = products
	return append([]*graph.Node{lp, ent, sum}, p.savedOutputs(saved)...)
}

// layers computes the embedding and all layers.
func (p *Scorer) layers(w weights, b batchNodes) saved {
	s := saved{layers: make([]activations, p.c.Layers), last: p.net.embed(w.embedding, b.flat)}
	for i, l := range w.layers {
		s.last, s.layers[i] = p.net.layer(l, s.last, b.sequences)
	}
	return s
}

// batchNodes are the inputs that the forward and the backward program share.
type batchNodes struct {
	sequences
	flat, target   *graph.Node // [b·T] int32
	legal, inverse *graph.Node // a critic has neither legal ids nor a temperature
}

func (p *Scorer) batchInputs(in *inputs) batchNodes {
	rows, width, half := p.sh.MicroBatch, p.sh.Sequence, p.c.HeadDim/2
	ids := in.next(dtypes.Int32, rows, width)
	// The last position has no token to predict; its target is never read.
	next := graph.Concatenate([]*graph.Node{
		graph.Slice(ids, graph.AxisRange(), graph.AxisRange(1, width)),
		graph.Slice(ids, graph.AxisRange(), graph.AxisRange(0, 1)),
	}, 1)
	table := func() *graph.Node { return graph.Reshape(in.next(p.net.wide, width, half), 1, width, half) }
	b := batchNodes{
		flat: graph.Reshape(ids, rows*width), target: graph.Reshape(next, rows*width),
		sequences: sequences{rows: rows, tokens: width, cos: table(), sin: table()},
	}
	if !p.c.ValueHead {
		b.legal, b.inverse = in.next(p.net.wide, p.c.VocabSize), in.next(p.net.wide)
	}
	return b
}
