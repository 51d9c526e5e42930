package model

import (
	"context"
	"slices"
	"strconv"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
)

// A block's rows are decoded in GenerateRows slots. Between two executions the host collects the
// rows that have ended, and seats the next rows of the block in their slots, in the order of
// both. So the slot of a row, and the step at which it gets it, follow from the block's rows and
// what was sampled for them. Prompts are prefilled as many at once as those of a pass, or as
// Shapes.SharedPrompts says, before their rows get slots: a prefill of few prompts costs more for
// each. Neighbours with the same prompt, as the members of a group have in their first turn, share
// its keys and values. A row's keys and values do not depend on its place in a prefill, so sharing
// changes no bit.
//
// What the row before has left in a slot's caches comes after the row's own tokens, and is not seen.

// blockTimes is how many times rows are seated while a row samples all its tokens.
const blockTimes = 16

// blockSteps is the number of steps between two times at which rows are seated. It decides bits, so
// it does not depend on how many steps an execution does.
func (s *Sampler) blockSteps() int { return max(1, s.sh.MaxNewTokens/blockTimes) }

// seatRows is how many rows an execution seats, at most: a divisor of GenerateRows, an eighth of it
// or less.
func (s *Sampler) seatRows() int {
	for n := s.sh.GenerateRows / 8; n > 1; n-- {
		if s.sh.GenerateRows%n == 0 {
			return n
		}
	}
	return 1
}

// blockPlaces are the places of a step of a block: each row has its own step, which is the
// block's less that at which it was seated.
func (s *Sampler) blockPlaces(g *graph.Graph, v map[string]*graph.Node) places {
	rows, fresh := s.sh.GenerateRows, s.sh.MaxNewTokens
	whole := func(n int) *graph.Node { return graph.Const(g, int32(n)) }
	own := graph.Sub(v["step"], v["start"]) // [R]
	columns := shapes.Make(dtypes.Int32, rows, fresh)
	now := graph.Equal(graph.Iota(g, columns, 1), graph.BroadcastToShape(graph.Reshape(own, rows, 1), columns))
	return places{
		step: own,
		take: func(of *graph.Node) *graph.Node {
			return graph.ReduceSum(graph.Where(now, of, zeros(g, of.DType(), rows, fresh)), -1)
		},
		put: func(of, values *graph.Node) *graph.Node {
			return graph.Where(now, graph.BroadcastToShape(graph.Reshape(values, rows, 1), of.Shape()), of)
		},
		living: func(alive *graph.Node) *graph.Node {
			more := graph.LessThan(own, graph.BroadcastToShape(whole(fresh-1), own.Shape()))
			return graph.Mul(alive, graph.ConvertDType(more, dtypes.Int32))
		},
	}
}

// buildBlockRoom is the program that makes room for the keys and values of all slots. Its input
// is not read.
func (s *Sampler) buildBlockRoom(in *inputs) []*graph.Node {
	return s.room(in, s.sh.GenerateRows, s.positions)
}

// room is zeros for each layer's keys and values of so many rows and tokens. It declares an input
// that is not read.
func (s *Sampler) room(in *inputs, rows, tokens int) []*graph.Node {
	zero := graph.MulScalar(graph.ConvertDType(in.next(dtypes.Int32), s.net.dtype), 0)
	var out []*graph.Node
	for i := range 2 * s.c.Layers {
		out = append(out, graph.BroadcastToShape(zero, shapes.Make(s.net.dtype, s.net.keptDims(i, rows, tokens)...)))
	}
	return out
}

// buildBlockSeat is the program that puts keys and values of a prefill in slots, in the memory of
// the old ones. Its inputs are the layers' keys and values, those of the prefill, and which rows
// of the prefill go to which slots, two times [c] int32.
func (s *Sampler) buildBlockSeat(in *inputs) []*graph.Node {
	var caches, fresh []*graph.Node
	for i := range 2 * s.c.Layers {
		caches = append(caches, in.donated(i, s.net.dtype, s.cacheDims(i)...))
	}
	for i := range caches {
		fresh = append(fresh, in.next(s.net.dtype, s.net.keptDims(i, s.prefillRows(), s.sh.PromptTokens)...))
	}
	rows, slots := in.next(dtypes.Int32, s.seatRows()), in.next(dtypes.Int32, s.seatRows())
	zero := graph.Const(in.g, int32(0))
	for i := range s.seatRows() {
		row, slot := element(rows, i), element(slots, i)
		for k := range caches {
			of := graph.DynamicSlice(fresh[k], []*graph.Node{row, zero, zero, zero}, s.net.keptDims(k, 1, s.sh.PromptTokens))
			caches[k] = graph.DynamicUpdateSlice(caches[k], of, []*graph.Node{slot, zero, zero, zero})
		}
	}
	return caches
}

// blockCaches is the place of the keys and values among the outputs of a block's steps.
const blockCaches = 6

// buildDecodeBlock is the program that does some steps of a block. Its inputs are those of
// buildDecodeChunk, where the steps are the block's, and the steps at which the slots' rows were seated
// [R] int32. Its outputs are the latest tokens, which rows are alive, tokens, log-probs, entropies and
// counts, and the keys and values, in the memory of the old ones. A row ends at a stop id or with its last token.
func (s *Sampler) buildDecodeBlock(in *inputs) []*graph.Node {
	rows, fresh := s.sh.GenerateRows, s.sh.MaxNewTokens
	loop := &loopState{}
	params := s.net.weights(in).all
	var caches []*graph.Node
	for i := range 2 * s.c.Layers {
		caches = append(caches, in.donated(blockCaches+i, s.net.dtype, s.cacheDims(i)...))
	}
	loop.add("step", in.next(dtypes.Int32))
	loop.add("end", in.next(dtypes.Int32))
	loop.add("token", in.next(dtypes.Int32, rows))
	s.decodeInputs(in, loop)
	loop.add("tokens", in.next(dtypes.Int32, rows, fresh))
	loop.add("logprobs", in.next(dtypes.Float32, rows, fresh))
	loop.add("entropies", in.next(dtypes.Float32, rows, fresh))
	loop.add("count", in.next(dtypes.Int32, rows))
	loop.add("start", in.next(dtypes.Int32, rows))
	for i, cache := range caches {
		loop.add("cache"+strconv.Itoa(i), cache)
	}
	final := s.decodeLoop(in.g, loop, params, func(_ *graph.Graph, v map[string]*graph.Node) *graph.Node { return v["end"] })
	out := []*graph.Node{final["token"], final["alive"], final["tokens"], final["logprobs"], final["entropies"], final["count"]}
	for i := range caches { // from blockCaches on
		out = append(out, final["cache"+strconv.Itoa(i)])
	}
	return out
}

// seats is a block while it is decoded, on the host.
type seats struct {
	passRows                   // of the slots; ids is not used
	queue     []int            // rows of the input that are not prefilled yet
	ready     []prefilled      // rows that are prefilled, and have no slot yet
	prompts   []compute.Buffer // keys and values of the prefill whose last rows are ready
	of        []int            // the slots' rows of the input; −1 is a free slot
	start     []int32          // the steps at which they were seated
	tokens    []int32          // [R, N]
	logProbs  []float32        // [R, N], and so are
	entropies []float32
	count     []int32 // [R]
	step      int     // of the block
	cache     []compute.Buffer
}

// prefilled is a row of the input whose prompt has been prefilled.
type prefilled struct {
	row   int
	place int // of its prompt in the prefill
}

// free are the free slots.
func (b *seats) free() (slots []int) {
	for slot, of := range b.of {
		if of < 0 {
			slots = append(slots, slot)
		}
	}
	return slots
}

// block generates for the rows [from, to) of the input, which are a block. The caller holds run.
func (s *Sampler) block(ctx context.Context, st *State, in GenerateInput, from, to int, out GenerateOutput) error {
	rows, fresh := s.sh.GenerateRows, s.sh.MaxNewTokens
	b := &seats{
		passRows: s.passRows(in, 0, 0), of: slices.Repeat([]int{-1}, rows), start: make([]int32, rows),
		tokens: make([]int32, rows*fresh), logProbs: make([]float32, rows*fresh), entropies: make([]float32, rows*fresh),
		count: make([]int32, rows),
	}
	for i := from; i < to; i++ {
		if in.Alive == nil || in.Alive[i] {
			b.queue = append(b.queue, i)
		}
	}
	if len(b.queue) == 0 {
		return nil
	}
	room, err := s.program(kindBlockRoom)
	if err != nil {
		return err
	}
	none, err := upload(s.device, s.k, []int32{0})
	if err != nil {
		return err
	}
	defer free([]compute.Buffer{none})
	if b.cache, err = room.on(s.k, none); err != nil {
		return err
	}
	defer func() { free(b.cache); free(b.prompts) }()
	for {
		for slots := b.free(); len(slots) > 0 && len(b.ready)+len(b.queue) > 0; slots = b.free() {
			if err := ctx.Err(); err != nil {
				return err
			}
			if len(b.ready) == 0 {
				if err := s.prefillNext(st, in, b); err != nil {
					return err
				}
			}
			if err := s.seat(in, b, slots); err != nil {
				return err
			}
		}
		if b.living == 0 {
			return nil
		}
		end := b.step + s.blockSteps()
		for b.living > 0 && b.step < end {
			if err := ctx.Err(); err != nil {
				return err
			}
			to := end
			if s.sh.ChunkTokens > 0 {
				to = min(to, b.step+s.sh.ChunkTokens)
			}
			if err := s.decodeBlock(st, in, b, to); err != nil {
				return err
			}
			b.step = to
			s.collect(in, b, out)
		}
		b.step = end
	}
}

// prefillNext prefills the prompts of the next rows of a block, as many different ones as a prefill has
// rows.
func (s *Sampler) prefillNext(st *State, in GenerateInput, b *seats) (err error) {
	width := s.sh.PromptTokens
	ids := make([]int32, s.prefillRows()*width) // places that are left over have the id 0
	b.ready = nil
	place := -1
	for i, row := range b.queue {
		if i == 0 || !slices.Equal(in.Prompts[row], in.Prompts[b.queue[i-1]]) {
			if place++; place == s.prefillRows() {
				break
			}
			copy(ids[place*width:], in.Prompts[row])
		}
		b.ready = append(b.ready, prefilled{row, place})
	}
	b.queue = b.queue[len(b.ready):]
	free(b.prompts)
	b.prompts, err = s.prefill(st, ids)
	return err
}

// seat puts the next rows that are ready in free slots, as many as an execution seats.
func (s *Sampler) seat(in GenerateInput, b *seats, slots []int) error {
	fresh := s.sh.MaxNewTokens
	taken := b.ready[:min(s.seatRows(), len(b.ready), len(slots))]
	from, places := make([]int32, s.seatRows()), make([]int32, s.seatRows())
	for i := range places {
		at := min(i, len(taken)-1) // what is left of an execution repeats its last row
		from[i], places[i] = int32(taken[at].place), int32(slots[at])
	}
	b.ready = b.ready[len(taken):]
	prog, err := s.program(kindBlockSeat)
	if err != nil {
		return err
	}
	var rows, to compute.Buffer
	defer func() { free([]compute.Buffer{rows, to}) }()
	if err := firstOf(put(s.device, s.k, &rows, from, len(from)), put(s.device, s.k, &to, places, len(places))); err != nil {
		return err
	}
	args := append(slices.Clone(b.cache), b.prompts...)
	b.cache = nil // donated
	if b.cache, err = prog.on(s.k, append(args, rows, to)...); err != nil {
		return err
	}
	for i, next := range taken {
		slot, row, prompt := slots[i], next.row, in.Prompts[next.row]
		b.of[slot], b.start[slot] = row, int32(b.step)
		b.last[slot], b.length[slot], b.alive[slot], b.count[slot] = prompt[len(prompt)-1], int32(len(prompt)), 1, 0
		b.living++
		if !in.Greedy {
			copy(b.uniforms[slot*fresh:], in.Uniforms[row])
		}
	}
	return nil
}

// decodeBlock does the block's steps before a step.
func (s *Sampler) decodeBlock(st *State, in GenerateInput, b *seats, to int) error {
	rows, fresh := s.sh.GenerateRows, s.sh.MaxNewTokens
	prog, err := s.program(kindDecodeBlock)
	if err != nil {
		return err
	}
	d, err := s.newDecoding(in, b.passRows)
	defer func() { d.free() }()
	if err != nil {
		return err
	}
	var step, end, start compute.Buffer
	defer func() { free([]compute.Buffer{step, end, start}) }()
	if err := firstOf(
		put(s.device, s.k, &step, []int32{int32(b.step)}),
		put(s.device, s.k, &end, []int32{int32(to)}),
		put(s.device, s.k, &start, b.start, rows),
		put(s.device, s.k, &d.tokens, b.tokens, rows, fresh),
		put(s.device, s.k, &d.logProbs, b.logProbs, rows, fresh),
		put(s.device, s.k, &d.entropies, b.entropies, rows, fresh),
		put(s.device, s.k, &d.count, b.count, rows),
	); err != nil {
		return err
	}
	args, err := s.weights(st)
	if err != nil {
		return err
	}
	args = append(args, b.cache...)
	args = append(append(args, step, end, d.token), d.inputs(s)...)
	b.cache = nil // donated
	out, err := prog.on(s.k, append(args, d.tokens, d.logProbs, d.entropies, d.count, start)...)
	if err != nil {
		return err
	}
	defer free(out[:blockCaches])
	b.cache = out[blockCaches:]
	if b.last, err = download[int32](out[0], rows); err != nil {
		return err
	}
	if b.alive, err = download[int32](out[1], rows); err != nil {
		return err
	}
	if b.tokens, err = download[int32](out[2], rows*fresh); err != nil {
		return err
	}
	if b.logProbs, err = download[float32](out[3], rows*fresh); err != nil {
		return err
	}
	if b.entropies, err = download[float32](out[4], rows*fresh); err != nil {
		return err
	}
	b.count, err = download[int32](out[5], rows)
	return err
}

// collect takes the rows that have ended from their slots, also those that a stop text ended.
func (s *Sampler) collect(in GenerateInput, b *seats, out GenerateOutput) {
	fresh := s.sh.MaxNewTokens
	b.living = 0
	for slot, row := range b.of {
		if row < 0 {
			continue
		}
		n, ended := in.kept(b.tokens[slot*fresh : slot*fresh+int(b.count[slot])])
		if b.alive[slot] != 0 && !ended {
			b.living++
			continue
		}
		out.Tokens[row] = slices.Clone(b.tokens[slot*fresh : slot*fresh+n])
		out.LogProbs[row] = slices.Clone(b.logProbs[slot*fresh : slot*fresh+n])
		out.Entropies[row] = slices.Clone(b.entropies[slot*fresh : slot*fresh+n])
		out.Truncated[row] = !ended && (in.IgnoreStop || !slices.Contains(in.Stop, out.Tokens[row][n-1]))
		b.of[slot], b.alive[slot] = -1, 0
	}
}
