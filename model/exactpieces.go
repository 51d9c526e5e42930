package model

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/dtypes/bfloat16"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/reprise-rl/reprise/model/draw"
)

// PieceSizes are the numbers of rows and the widths with which ExactPieces computes.
type PieceSizes struct {
	// Rows are numbers of positions at once: few, as the sampler has them, and many, as the scorer.
	Rows []int
	// Widths are numbers of keys that the attention of a token has.
	Widths []int
}

// Piece is a part of the network, and where its bits depend on what else is computed at once.
type Piece struct {
	// Name is the operation with its sizes.
	Name string
	// As are the ways in which it was computed, and Differing those of which a number is not as in the first.
	As, Differing []string
}

// ExactPieces computes each piece of a network of c that the sampler and the scorer share, in float32 or bfloat16, for several numbers
// of rows and of keys, and compares the bits of the first rows. Where all are the same, the log-probs of the sampler are the
// trainer's; where not, the piece says why.
func (d *Device) ExactPieces(ctx context.Context, c Config, dtype string, sizes PieceSizes) ([]Piece, error) {
	of := dtypes.Float32
	if dtype == "bfloat16" {
		of = dtypes.BFloat16
	}
	var out []Piece
	t := network{c: c, dtype: of, wide: dtypes.Float32, limits: defaultLimits, exact: true}
	for _, p := range t.pieces(sizes) {
		piece := Piece{Name: p.name}
		var first []uint32
		for _, w := range p.ways {
			if err := ctx.Err(); err != nil {
				return out, err
			}
			got, err := d.computePiece(w)
			if err != nil {
				return out, fmt.Errorf("%s, %s: %w", p.name, w.name, err)
			}
			piece.As = append(piece.As, w.name)
			if first == nil {
				first = got
			}
			if n := min(len(first), len(got)); !slices.Equal(first[:n], got[:n]) {
				piece.Differing = append(piece.Differing, w.name)
			}
		}
		out = append(out, piece)
	}
	return out, nil
}

// SayPieces says which pieces differ.
func SayPieces(pieces []Piece) string {
	var differ []string
	for _, p := range pieces {
		if len(p.Differing) > 0 {
			differ = append(differ, fmt.Sprintf("%s (%s, not as %s)", p.Name, strings.Join(p.Differing, ", "), p.As[0]))
		}
	}
	if differ == nil {
		return fmt.Sprintf("each of %d pieces of the network is the same alone", len(pieces))
	}
	return "other bits has the " + strings.Join(differ, "; the ")
}

// pieceWays are the ways to compute a piece. Their results begin with the same numbers if it is exact.
type pieceWays struct {
	name string
	ways []pieceWay
}

type pieceWay struct {
	name   string
	inputs []shapes.Shape // equal places have equal numbers in their first rows
	build  build
}

// build makes a piece of its inputs.
type build func(in []*graph.Node) *graph.Node

// pieces are the pieces, in the order of a layer.
func (t network) pieces(sizes PieceSizes) (out []pieceWays) {
	few := slices.Min(sizes.Rows)
	// The widths of an input begin with 0 where it has so many rows.
	add := func(name string, dtype dtypes.DType, widths [][]int, build build) {
		p := pieceWays{name: name}
		for _, n := range sizes.Rows {
			if n > few && n*widths[0][len(widths[0])-1] > t.limits.logits { // the head computes no more at once either
				continue
			}
			w := pieceWay{name: fmt.Sprintf("%d rows", n), build: build}
			for _, dims := range widths {
				if dims[0] == 0 {
					dims = append([]int{n}, dims[1:]...)
				}
				w.inputs = append(w.inputs, shapes.Make(dtype, dims...))
			}
			p.ways = append(p.ways, w)
		}
		out = append(out, p)
	}
	c := t.c
	hidden, wide, heads, kv, half := c.HiddenSize, c.IntermediateSize, c.Heads*c.HeadDim, c.KVHeads*c.HeadDim, c.HeadDim/2
	add(fmt.Sprintf("norm of %d", hidden), dtypes.Float32, [][]int{{0, hidden}, {hidden}}, func(in []*graph.Node) *graph.Node {
		return t.norm(t.cast(in[0]), in[1])
	})
	seen := map[[2]int]bool{}
	for _, p := range [][2]int{{hidden, heads}, {hidden, kv}, {heads, hidden}, {hidden, wide}, {wide, hidden}} {
		if !seen[p] {
			seen[p] = true
			add(fmt.Sprintf("product of %d numbers with %d", p[0], p[1]), t.dtype, [][]int{{0, p[0]}, {p[1], p[0]}}, func(in []*graph.Node) *graph.Node {
				return t.product(in[0], in[1])
			})
		}
	}
	add(fmt.Sprintf("SwiGLU of %d", wide), t.dtype, [][]int{{0, 2 * wide}}, func(in []*graph.Node) *graph.Node {
		gate, up := graph.SliceAxis(in[0], 1, graph.AxisRange(0, wide)), graph.SliceAxis(in[0], 1, graph.AxisRange(wide))
		return graph.Mul(graph.Mul(gate, graph.Sigmoid(gate)), up)
	})
	add(fmt.Sprintf("rotary positions of %d", c.HeadDim), dtypes.Float32, [][]int{{0, c.KVHeads, c.HeadDim}, {0, half}, {0, half}},
		func(in []*graph.Node) *graph.Node {
			n := in[0].Shape().Dimensions[0]
			s := sequences{rows: n, tokens: 1} // as the sampler has them, and many as the scorer
			if n > few {
				s = sequences{rows: 1, tokens: n}
			}
			s.cos, s.sin = graph.Reshape(in[1], s.rows, s.tokens, half), graph.Reshape(in[2], s.rows, s.tokens, half)
			x := graph.Reshape(t.cast(in[0]), s.rows, s.tokens, c.KVHeads, c.HeadDim)
			return graph.Reshape(t.rotate(x, s), n, c.KVHeads, c.HeadDim)
		})
	for _, width := range sizes.Widths {
		out = append(out, t.attentionWays(width))
	}
	add(fmt.Sprintf("logits of %d ids", c.VocabSize), t.dtype, [][]int{{0, hidden}, {c.VocabSize, hidden}}, func(in []*graph.Node) *graph.Node {
		return head{t: t, weight: in[1]}.products(in[0])
	})
	add(fmt.Sprintf("log-prob and entropy of %d ids", c.VocabSize), dtypes.Float32, [][]int{{0, c.VocabSize}}, func(in []*graph.Node) *graph.Node {
		d := distributionOf(in[0])
		first := graph.Reshape(graph.SliceAxis(in[0], 1, graph.AxisRange(0, 1)), in[0].Shape().Dimensions[0])
		return graph.Stack([]*graph.Node{d.logProb(first), d.entropy()}, 1)
	})
	return out
}

// attentionWays attend the last of width tokens: as the sampler does, alone in a row, in caches of more and more places; as the
// scorer does, after the tokens before it.
func (t network) attentionWays(width int) pieceWays {
	kv, n := t.c.KVHeads, min(width, t.limits.queries)
	cached := shapes.Make(t.dtype, width, kv, t.c.HeadDim)
	inputs := []shapes.Shape{shapes.Make(t.dtype, n, kv, t.c.Heads/kv, t.c.HeadDim), cached, cached}
	queries := func(in []*graph.Node) *graph.Node {
		return graph.ExpandAxes(graph.TransposeAllAxes(in[0], 1, 2, 0, 3), 0)
	}
	last := func(q *graph.Node) *graph.Node { return graph.SliceAxis(q, 3, graph.AxisRange(n-1)) }
	keys := func(x *graph.Node, places, size int) *graph.Node {
		return padded(padded(graph.ExpandAxes(graph.TransposeAllAxes(x, 1, 0, 2), 0), 2, places), 3, size)
	}
	twice := func(x *graph.Node) *graph.Node { return graph.Concatenate([]*graph.Node{x, x}, 0) }
	p := pieceWays{name: fmt.Sprintf("attention to %d keys", width)}
	for _, empty := range []int{0, lane, 7 * lane} {
		places := t.places(width) + empty
		p.ways = append(p.ways, pieceWay{fmt.Sprintf("one token, %d places", places), inputs, func(in []*graph.Node) *graph.Node {
			q := last(queries(in))
			at := graph.Iota(q.Graph(), shapes.Make(dtypes.Int32, 1, 1, 1, 1, places), 4)
			seen := graph.LessThan(at, graph.Const(q.Graph(), int32(width)))
			o := t.attend(twice(q), twice(keys(in[1], places, t.c.HeadDim)), twice(keys(in[2], places, t.valueWidth())), seen)
			return graph.SliceAxis(o, 0, graph.AxisRange(0, 1))
		}})
	}
	p.ways = append(p.ways, pieceWay{fmt.Sprintf("%d tokens", n), inputs, func(in []*graph.Node) *graph.Node {
		q, places := queries(in), t.places(width)
		seen := queryBlock{width - n, width}.before(q.Graph(), places)
		return last(t.attend(q, keys(in[1], places, t.c.HeadDim), keys(in[2], places, t.valueWidth()), seen))
	}})
	return p
}

// computePiece computes a piece in one way, on fixed numbers, and gives the result's bits.
func (d *Device) computePiece(w pieceWay) ([]uint32, error) {
	d.run.Lock()
	defer d.run.Unlock()
	var given []compute.Buffer
	defer func() { free(given) }()
	for i, shape := range w.inputs {
		r := draw.Address{Purpose: "piece", Member: int64(i)}.Rand()
		narrow, wide := make([]bfloat16.BFloat16, shape.Size()), make([]float32, shape.Size())
		for j := range wide {
			wide[j] = float32(r.NormFloat64())
			narrow[j] = bfloat16.FromFloat32(wide[j])
		}
		var b compute.Buffer
		var err error
		if shape.DType == dtypes.BFloat16 {
			b, err = upload(d, 0, narrow, shape.Dimensions...)
		} else {
			b, err = upload(d, 0, wide, shape.Dimensions...)
		}
		if err != nil {
			return nil, err
		}
		given = append(given, b)
	}
	var size int
	p := &program{name: "piece", device: d, build: func(in *inputs) []*graph.Node {
		var nodes []*graph.Node
		for _, shape := range w.inputs {
			nodes = append(nodes, in.next(shape.DType, shape.Dimensions...))
		}
		out := w.build(nodes)
		size = out.Shape().Size()
		kind := dtypes.Uint32
		if out.DType() == dtypes.BFloat16 {
			kind = dtypes.Uint16
		}
		return []*graph.Node{graph.ConvertDType(graph.Bitcast(out, kind), dtypes.Uint32)}
	}}
	defer p.finalize()
	out, err := p.call(given...)
	if err != nil {
		return nil, err
	}
	defer free(out)
	return download[uint32](out[0], size)
}
