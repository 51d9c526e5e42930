package model

import (
	"context"
	"fmt"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
)

func (a AppendShapes) check(sh Shapes, bad func(string, ...any) error) error {
	switch {
	case a == AppendShapes{}:
		return nil
	case sh.BlockRows > 0:
		return bad("Append and BlockRows exclude each other")
	case a.Widest < sh.PromptTokens:
		return bad("Append.Widest is %d, must be at least PromptTokens, %d", a.Widest, sh.PromptTokens)
	case a.Before < 0 || a.Before > sh.PromptTokens:
		return bad("Append.Before is %d, must be from 0 to PromptTokens, %d", a.Before, sh.PromptTokens)
	case a.Before > 0 && sh.SharedPrompts > 0:
		return bad("Append.Before and SharedPrompts exclude each other: such a turn prefills no prompt")
	case a.Before > 0 && (a.Tokens < 1 || a.Tokens > sh.PromptTokens):
		return bad("Append.Tokens is %d, must be from 1 to PromptTokens, %d", a.Tokens, sh.PromptTokens)
	}
	return nil
}

// Kept are the keys and values of rows' contexts, kept from turn to turn. They depend on the ids
// that were appended in each turn and on the shapes, and on nothing that was decoded: who appends
// the same ids in the same turns has the same bits.
type Kept struct {
	device *Device
	width  int // places of a row
	passes []keptPass
}

// keptPass are those of a pass, on the device that computes the pass.
type keptPass struct {
	buffers []compute.Buffer // as prefills give them; nil where no row of the pass is alive
	lengths []int32          // tokens of each row
}

// Bytes is the device memory that the keys and values take.
func (k *Kept) Bytes() int64 {
	k.device.run.Lock()
	defer k.device.run.Unlock()
	n := int64(0)
	for _, pass := range k.passes {
		for _, b := range pass.buffers {
			if shape, err := b.Shape(); err == nil {
				n += int64(shape.ByteSize())
			}
		}
	}
	return n
}

// Free releases the keys and values. It waits for the running program; calling it twice is fine.
func (k *Kept) Free() {
	k.device.run.Lock()
	defer k.device.run.Unlock()
	k.free()
}

func (k *Kept) free() {
	for _, pass := range k.passes {
		free(pass.buffers)
	}
	k.passes = nil
}

// pass are the keys and values of a pass, which stay the owner's.
func (k *Kept) pass(i int) []compute.Buffer { return k.passes[i].buffers }

// checkKept checks that keys and values are those of prompts of these lengths.
func (s *Sampler) checkKept(k *Kept, prompts [][]int32, alive []bool) error {
	if k == nil {
		if s.sh.Append.Before > 0 {
			return fmt.Errorf("%w: the keys and values of the prompts are missing", ErrInput)
		}
		return nil
	}
	rows := s.sh.GenerateRows
	fits := s.sh.Append != AppendShapes{} && k.width == s.sh.PromptTokens && len(k.passes) == (len(prompts)+rows-1)/rows
	for i := 0; fits && i < len(prompts); i++ {
		pass := k.passes[i/rows]
		fits = alive != nil && !alive[i] || pass.buffers != nil && len(prompts[i]) == int(pass.lengths[i%rows])
	}
	if !fits {
		return fmt.Errorf("%w: the keys and values are not those of the prompts", ErrInput)
	}
	return nil
}

// Append gives the keys and values of the rows' contexts at the beginning of a turn. before are
// those of the turn before, whose contexts these continue; nil in the first turn. Append consumes
// before, also if it fails. A row that is not alive keeps what it had. The context is checked
// between programs.
func (s *Sampler) Append(ctx context.Context, st *State, before *Kept, contexts [][]int32, alive []bool) (*Kept, error) {
	s.device.run.Lock()
	defer s.device.run.Unlock()
	rows := s.sh.GenerateRows
	out := &Kept{device: s.device, width: s.sh.PromptTokens}
	err := s.checkAppend(st, before, contexts, alive)
	if err == nil {
		out.passes = make([]keptPass, (len(contexts)+rows-1)/rows)
		if before != nil {
			copy(out.passes, before.passes)
			before.passes = nil
		}
		err = s.spread(st, len(out.passes), s.tables()...)
	}
	if err == nil {
		err = s.device.deal(len(out.passes), func(k, i int) error {
			from, to := i*rows, min((i+1)*rows, len(contexts))
			in := GenerateInput{Prompts: contexts, Alive: alive, Greedy: true}
			return try("append", func() error { return s.at(k).appendPass(ctx, st, &out.passes[i], s.passRows(in, from, to)) })
		})
	}
	if err != nil {
		out.free()
		if before != nil {
			before.free()
		}
		return nil, fmt.Errorf("append: %w", err)
	}
	return out, nil
}

func (s *Sampler) checkAppend(st *State, before *Kept, contexts [][]int32, alive []bool) error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: "+format, append([]any{ErrInput}, args...)...)
	}
	if err := s.check(st); err != nil {
		return err
	}
	if s.sh.Append == (AppendShapes{}) {
		return bad("the programs were prepared without the shapes that appending needs")
	}
	if err := s.checkPrompts(contexts, alive); err != nil {
		return err
	}
	rows := s.sh.GenerateRows
	if before == nil {
		if s.sh.Append.Before > 0 {
			return bad("the keys and values of the turn before are missing")
		}
		return nil
	}
	if before.width != s.sh.Append.Before || len(before.passes) != (len(contexts)+rows-1)/rows {
		return bad("the keys and values are of %d passes of %d places, must be of %d of %d",
			len(before.passes), before.width, (len(contexts)+rows-1)/rows, s.sh.Append.Before)
	}
	for i, c := range contexts {
		pass := before.passes[i/rows]
		if alive != nil && !alive[i] {
			continue
		}
		if pass.buffers == nil || len(c) < int(pass.lengths[i%rows]) {
			return bad("the context of row %d does not continue that of the turn before", i)
		}
	}
	return nil
}

// appendPass continues the keys and values of a pass, or begins them.
func (s *Sampler) appendPass(ctx context.Context, st *State, pass *keptPass, b passRows) error {
	if b.living == 0 {
		free(pass.buffers)
		*pass = keptPass{}
		return nil
	}
	if s.sh.Append.Before == 0 {
		pass.lengths = b.lengths()
		var err error
		pass.buffers, err = s.prefillAll(ctx, st, b)
		return err
	}
	chunk, of := s.partRows(), 2*s.c.Layers
	for c := range s.sh.GenerateRows / chunk {
		if err := s.appendChunk(ctx, st, pass.buffers[c*of:(c+1)*of], pass.lengths[c*chunk:(c+1)*chunk], b, c*chunk); err != nil {
			return err
		}
	}
	return nil
}

// lengths are the tokens of the rows that are alive, 0 of others.
func (b passRows) lengths() []int32 {
	out := make([]int32, len(b.length))
	for r := range out {
		out[r] = b.length[r] * b.alive[r]
	}
	return out
}

// appendChunk appends to a chunk of rows, of which the first is at place first of the pass. It
// replaces the buffers, and counts what the rows have in lengths.
func (s *Sampler) appendChunk(ctx context.Context, st *State, buffers []compute.Buffer, lengths []int32, b passRows, first int) error {
	if s.moreRoom() {
		prog, err := s.program(kindAppendRoom)
		if err != nil {
			return err
		}
		out, err := prog.on(s.k, buffers...)
		if err != nil {
			return err
		}
		free(buffers)
		copy(buffers, out)
	}
	prog, err := s.program(kindAppend)
	if err != nil {
		return err
	}
	most, width := int32(s.sh.Append.Tokens), s.sh.PromptTokens
	for {
		ids, count := make([]int32, len(lengths)*int(most)), make([]int32, len(lengths))
		any := false
		for r := range lengths {
			at := first + r
			if b.alive[at] == 0 || lengths[r] == b.length[at] {
				continue
			}
			count[r], any = min(most, b.length[at]-lengths[r]), true
			from := at*width + int(lengths[r])
			copy(ids[r*int(most):], b.ids[from:from+int(count[r])])
		}
		if !any {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := s.appendOnce(st, prog, buffers, ids, lengths, count); err != nil {
			return err
		}
		for r := range lengths {
			lengths[r] += count[r]
		}
	}
}

// appendOnce runs the append program, and replaces the buffers.
func (s *Sampler) appendOnce(st *State, prog *program, buffers []compute.Buffer, ids, start, count []int32) error {
	var given [3]compute.Buffer
	defer func() { free(given[:]) }()
	rows := len(start)
	if err := firstOf(
		put(s.device, s.k, &given[0], ids, rows, s.sh.Append.Tokens),
		put(s.device, s.k, &given[1], start, rows),
		put(s.device, s.k, &given[2], count, rows),
	); err != nil {
		return err
	}
	args, err := s.weights(st)
	if err != nil {
		return err
	}
	args = append(append(args, buffers...), given[0], given[1], given[2])
	out, err := prog.on(s.k, append(args, s.rope.on(s.k)...)...)
	free(buffers) // they were donated
	if err != nil {
		return err
	}
	copy(buffers, out)
	return nil
}

// moreRoom tells whether the contexts have more places than in the turn before.
func (s *Sampler) moreRoom() bool {
	return s.net.places(s.sh.Append.Before) < s.net.places(s.sh.PromptTokens)
}

// buildAppendRoom is the program that widens the keys and values of a chunk of rows from
// Append.Before to PromptTokens places. The new ones are zero.
func (s *Sampler) buildAppendRoom(in *inputs) []*graph.Node {
	var out []*graph.Node
	for i := range 2 * s.c.Layers {
		kept := in.next(s.net.dtype, s.net.keptDims(i, s.partRows(), s.sh.Append.Before)...)
		out = append(out, padded(kept, 2, s.net.places(s.sh.PromptTokens)))
	}
	return out
}

// buildAppend is the append program. Its inputs are the parameters, each layer's keys and values
// so far, [c, KVHeads, PromptTokens, HeadDim], the ids to append [c, Append.Tokens] padded on the
// right, each row's tokens so far [c] int32 and how many are appended [c] int32, and rotary
// tables. Its outputs are the keys and values with the new ones behind each row's own, in the
// memory of the old ones. A token attends to what its row has so far and to the new tokens up to
// itself.
func (s *Sampler) buildAppend(in *inputs) []*graph.Node {
	c, rows, tokens := s.c, s.partRows(), s.sh.Append.Tokens
	weights := s.net.weights(in)
	kept := make([]*graph.Node, 2*c.Layers)
	for i := range kept {
		kept[i] = in.donated(i, s.net.dtype, s.net.keptDims(i, rows, s.sh.PromptTokens)...)
	}
	ids, start, count := in.next(dtypes.Int32, rows, tokens), in.next(dtypes.Int32, rows), in.next(dtypes.Int32, rows)
	last := graph.Const(in.g, int32(s.positions-1))
	position := graph.Add(byRow(start, rows, tokens), graph.Iota(in.g, shapes.Make(dtypes.Int32, rows, tokens), 1))
	position = graph.Reshape(graph.Min(position, last), rows*tokens, 1) // padding may be beyond the tables
	table := func() *graph.Node {
		return graph.Reshape(graph.Gather(in.next(dtypes.Float32, s.positions, c.HeadDim/2), position), rows, tokens, c.HeadDim/2)
	}
	sequence := sequences{rows, tokens, table(), table()}
	places := behindKept(start, count, tokens, s.net.places(s.sh.PromptTokens))

	x := s.net.embed(weights.embedding, graph.Reshape(ids, rows*tokens))
	var out []*graph.Node
	for i, w := range weights.layers {
		a := activations{x: x}
		q, k, v := s.net.project(w, &a, sequence)
		k, v = places.put(k, kept[2*i]), places.put(v, kept[2*i+1])
		out = append(out, k, v)
		if i < c.Layers-1 { // the last layer's output is not needed
			a.attended = s.net.onKept(q, k, v, start, sequence)
			x = s.net.finish(w, &a)
		}
	}
	return out
}

// byRow repeats a number of each row [rows] along n columns: [rows, n].
func byRow(x *graph.Node, rows, n int) *graph.Node {
	return graph.BroadcastToShape(graph.Reshape(x, rows, 1), shapes.Make(x.DType(), rows, n))
}

// newPlaces say which of the rows' places get new tokens, and which tokens.
type newPlaces struct {
	rows, width int
	fresh       *graph.Node // bool [rows, 1, width, 1]
	from        *graph.Node // int32 [rows·width, 2]: row and token
}

// behindKept puts count new tokens of each row, of so many, behind its first start places.
func behindKept(start, count *graph.Node, tokens, width int) newPlaces {
	g, rows := start.Graph(), start.Shape().Dimensions[0]
	at := shapes.Make(dtypes.Int32, rows, width)
	zero, most := graph.Const(g, int32(0)), graph.Const(g, int32(tokens-1))
	token := graph.Sub(graph.Iota(g, at, 1), byRow(start, rows, width))
	fresh := graph.LogicalAnd(
		graph.GreaterOrEqual(token, graph.BroadcastToShape(zero, at)),
		graph.LessThan(token, byRow(count, rows, width)))
	from := graph.Concatenate([]*graph.Node{
		graph.Reshape(graph.Iota(g, at, 0), rows*width, 1),
		graph.Reshape(graph.Min(graph.Max(token, zero), most), rows*width, 1),
	}, 1)
	return newPlaces{rows, width, graph.Reshape(fresh, rows, 1, width, 1), from}
}

// put replaces keys or values, kept [rows, KVHeads, width, HeadDim], by those of new tokens,
// x [rows, KVHeads, tokens, HeadDim], at their places.
func (n newPlaces) put(x, kept *graph.Node) *graph.Node {
	heads, dim := x.Shape().Dimensions[1], x.Shape().Dimensions[3]
	x = graph.Gather(graph.TransposeAllAxes(x, 0, 2, 1, 3), n.from)
	x = graph.TransposeAllAxes(graph.Reshape(x, n.rows, n.width, heads, dim), 0, 2, 1, 3)
	fresh := n.fresh
	return graph.Where(graph.BroadcastToDims(fresh, kept.Shape().Dimensions...), x, kept)
}
