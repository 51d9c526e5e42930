package model

import (
	"strconv"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/reprise-rl/reprise/model/cost"
)

// MaxStops is how many end-of-turn ids a generation can have.
const MaxStops = 8

// prefillRows is the number of prompts of one prefill: those of a part of a pass, or those that rows
// share. A block is prefilled as its rows are about to get slots.
func (s *Sampler) prefillRows() int {
	if n := s.sh.SharedPrompts; n > 0 {
		return max(min(n, s.net.limits.prefill/s.sh.PromptTokens), 1)
	}
	return s.partRows()
}

// partRows is the number of rows of a part of a pass, a divisor of GenerateRows: the keys and values of
// a wide batch of prompts are in several parts.
func (s *Sampler) partRows() int {
	return cost.PartRows(s.sh.GenerateRows, max(s.sh.PromptTokens, s.sh.Append.Widest), s.net.limits.prefill)
}

// buildPrefill is the prefill program. Its inputs are the parameters, prompts
// [c, PromptTokens] padded on the right, and rotary tables; its outputs are each layer's
// keys and values, [c, KVHeads, PromptTokens, HeadDim]. It has no head: decoding starts
// with the prompt's last token and computes the first distribution.
func (s *Sampler) buildPrefill(in *inputs) []*graph.Node {
	rows, width, half := s.prefillRows(), s.sh.PromptTokens, s.c.HeadDim/2
	weights := s.net.weights(in)
	ids := in.next(dtypes.Int32, rows, width)
	table := func() *graph.Node {
		all := in.next(dtypes.Float32, s.positions, half)
		return graph.Reshape(graph.Slice(all, graph.AxisRange(0, width)), 1, width, half)
	}
	prompts := sequences{rows, width, table(), table()}
	x := s.net.embed(weights.embedding, graph.Reshape(ids, rows*width))
	var out []*graph.Node
	for i, w := range weights.layers {
		a := activations{x: x}
		q, k, v := s.net.project(w, &a, prompts)
		k, v = s.net.placed(k, v)
		out = append(out, k, v)
		if i < s.c.Layers-1 { // the last layer's output is not needed
			a.attended = s.net.causal(q, k, v, prompts)
			x = s.net.finish(w, &a)
		}
	}
	return out
}

// loopState holds the values that a decoding loop carries from step to step, by name.
// XLA's closures capture nothing, so it includes the weights.
type loopState struct {
	names  []string
	shapes []shapes.Shape
	values []*graph.Node
}

func (s *loopState) add(name string, v *graph.Node) {
	s.names = append(s.names, name)
	s.shapes = append(s.shapes, v.Shape())
	s.values = append(s.values, v)
}

// open declares the state as a closure's parameters.
func (s *loopState) open(g *graph.Graph) map[string]*graph.Node {
	out := map[string]*graph.Node{}
	for i, name := range s.names {
		out[name] = graph.Parameter(g, "loop_"+name, s.shapes[i])
	}
	return out
}

// close returns the next state in order. values is the map of open with the new values.
func (s *loopState) close(values map[string]*graph.Node) []*graph.Node {
	out := make([]*graph.Node, len(s.names))
	for i, name := range s.names {
		out[i] = values[name]
	}
	return out
}

// buildDecode is the decoding program. Its inputs are the parameters, the prefills' keys
// and values (chunk by chunk, layer by layer), each row's last prompt token and prompt
// length [R] int32, uniforms [R, N], which rows are alive [R] int32 (1 or 0), rotary
// tables, legal ids, the inverse temperature, greedy (bool), the stop ids [MaxStops] int32
// (−1 if unused), and the number of rows that are alive. Its outputs are tokens [R, N]
// int32, their log-probs and the entropies [R, N], the number of tokens of each row [R] int32, and
// which rows are still alive [R] int32.
//
// New token s of a row has position length − 1 + s, and is stored at that place of the cache, right
// after the row's prompt: a row attends to the places up to its token's. The loop ends when no row
// is alive.
func (s *Sampler) buildDecode(in *inputs) []*graph.Node {
	rows, fresh := s.sh.GenerateRows, s.sh.MaxNewTokens
	g := in.g
	loop := &loopState{}
	params := s.net.weights(in).all
	caches := s.prefilled(in)
	loop.add("step", graph.Const(g, int32(0)))
	loop.add("token", in.next(dtypes.Int32, rows))
	s.decodeInputs(in, loop)
	loop.add("tokens", zeros(g, dtypes.Int32, rows, fresh))
	loop.add("logprobs", zeros(g, dtypes.Float32, rows, fresh))
	loop.add("entropies", zeros(g, dtypes.Float32, rows, fresh))
	loop.add("count", zeros(g, dtypes.Int32, rows))
	for i, parts := range caches {
		loop.add("cache"+strconv.Itoa(i), s.withRoom(parts))
	}
	final := s.decodeLoop(g, loop, params, func(g *graph.Graph, _ map[string]*graph.Node) *graph.Node { return graph.Const(g, int32(fresh)) })
	return []*graph.Node{final["tokens"], final["logprobs"], final["entropies"], final["count"], final["alive"]}
}

// buildDecodeRoom is the program that decoding in chunks begins with. Its inputs are the
// prefills' keys and values, as buildDecode's; its outputs are each layer's keys and values
// of all rows, each of cacheDims, with room for the new tokens.
func (s *Sampler) buildDecodeRoom(in *inputs) []*graph.Node {
	var out []*graph.Node
	for _, parts := range s.prefilled(in) {
		out = append(out, s.withRoom(parts))
	}
	return out
}

// chunkCaches is the place of the keys and values among the outputs of a chunk's program.
const chunkCaches = 7

// buildDecodeChunk is the decoding program that does some steps: the same steps as
// buildDecode's, so a row's bits do not depend on the chunks. Its inputs are the
// parameters, the layers' keys and values with room, the step that it begins with and the
// one that it ends before (int32), the rows' latest tokens [R] int32, the same inputs as
// buildDecode from the prompts' lengths on, and tokens, log-probs, entropies and counts so far. Its
// outputs are the latest tokens, which rows are alive, how many are, tokens, log-probs, entropies
// and counts, and the keys and values, in the memory of the old ones.
func (s *Sampler) buildDecodeChunk(in *inputs) []*graph.Node {
	c, rows, fresh := s.c, s.sh.GenerateRows, s.sh.MaxNewTokens
	loop := &loopState{}
	params := s.net.weights(in).all
	var caches []*graph.Node
	for i := range 2 * c.Layers {
		caches = append(caches, in.donated(chunkCaches+i, s.net.dtype, s.cacheDims(i)...))
	}
	loop.add("step", in.next(dtypes.Int32))
	loop.add("end", in.next(dtypes.Int32))
	loop.add("token", in.next(dtypes.Int32, rows))
	s.decodeInputs(in, loop)
	loop.add("tokens", in.next(dtypes.Int32, rows, fresh))
	loop.add("logprobs", in.next(dtypes.Float32, rows, fresh))
	loop.add("entropies", in.next(dtypes.Float32, rows, fresh))
	loop.add("count", in.next(dtypes.Int32, rows))
	for i, cache := range caches {
		loop.add("cache"+strconv.Itoa(i), cache)
	}
	final := s.decodeLoop(in.g, loop, params, func(_ *graph.Graph, v map[string]*graph.Node) *graph.Node { return v["end"] })
	out := []*graph.Node{final["token"], final["alive"], final["any"], final["tokens"], final["logprobs"], final["entropies"], final["count"]}
	for i := range caches { // from chunkCaches on
		out = append(out, final["cache"+strconv.Itoa(i)])
	}
	return out
}

// prefilled declares the prompts' keys and values, and returns them by layer, each in the parts of a
// pass.
func (s *Sampler) prefilled(in *inputs) [][]*graph.Node {
	caches := make([][]*graph.Node, 2*s.c.Layers)
	for range s.sh.GenerateRows / s.partRows() {
		for i := range caches {
			caches[i] = append(caches[i], in.next(s.net.dtype, s.net.keptDims(i, s.partRows(), s.sh.PromptTokens)...))
		}
	}
	return caches
}

// withRoom puts the parts of a layer's keys or values together, with room for new tokens.
func (s *Sampler) withRoom(parts []*graph.Node) *graph.Node {
	return padded(join(parts), 2, s.net.places(s.positions))
}

// cacheDims are the dimensions of the keys, for an even i, or the values of a layer while rows are decoded.
func (s *Sampler) cacheDims(i int) []int { return s.net.keptDims(i, s.sh.GenerateRows, s.positions) }

// decodeInputs declares what all decoding steps read: the prompts' lengths, the uniforms,
// which rows are alive, the tables, and how tokens are sampled.
func (s *Sampler) decodeInputs(in *inputs, loop *loopState) {
	c, rows := s.c, s.sh.GenerateRows
	loop.add("length", in.next(dtypes.Int32, rows))
	loop.add("uniforms", in.next(dtypes.Float32, rows, s.sh.MaxNewTokens))
	loop.add("alive", in.next(dtypes.Int32, rows))
	loop.add("cos", in.next(dtypes.Float32, s.positions, c.HeadDim/2))
	loop.add("sin", in.next(dtypes.Float32, s.positions, c.HeadDim/2))
	loop.add("legal", in.next(dtypes.Float32, c.VocabSize))
	loop.add("inverse", in.next(dtypes.Float32))
	loop.add("greedy", in.next(dtypes.Bool))
	loop.add("stop", in.next(dtypes.Int32, MaxStops))
	loop.add("any", in.next(dtypes.Int32)) // how many rows are alive
}

// decodeLoop runs decoding steps until no row is alive or the step that end gives, and
// returns the loop's final values by name.
func (s *Sampler) decodeLoop(
	g *graph.Graph, loop *loopState, params []*graph.Node, end func(*graph.Graph, map[string]*graph.Node) *graph.Node,
) map[string]*graph.Node {
	for i, w := range params {
		loop.add("weight"+strconv.Itoa(i), w)
	}
	cond := graph.NewClosure(g, func(g *graph.Graph) []*graph.Node {
		v := loop.open(g)
		return []*graph.Node{graph.LogicalAnd(
			graph.LessThan(v["step"], end(g, v)),
			graph.GreaterThan(v["any"], graph.Const(g, int32(0))))}
	})
	body := graph.NewClosure(g, func(g *graph.Graph) []*graph.Node {
		v := loop.open(g)
		s.decodeStep(g, v)
		return loop.close(v)
	})
	final := map[string]*graph.Node{}
	for i, x := range graph.While(cond, body, loop.values...) {
		final[loop.names[i]] = x
	}
	return final
}

func zeros(g *graph.Graph, dtype dtypes.DType, dims ...int) *graph.Node {
	zero := graph.ConvertDType(graph.Const(g, float32(0)), dtype)
	return graph.BroadcastToShape(zero, shapes.Make(dtype, dims...))
}

// decodeStep runs every row's latest token through the layers and samples the next one.
// It changes the map of the loop's values in place.
func (s *Sampler) decodeStep(g *graph.Graph, v map[string]*graph.Node) {
	c := s.c
	rows := s.sh.GenerateRows
	whole := func(n int32) *graph.Node { return graph.Const(g, n) }
	params := make([]*graph.Node, len(c.Frozen())+len(c.Tensors()))
	for i := range params {
		params[i] = v["weight"+strconv.Itoa(i)]
	}
	weights := c.weights(params)
	at := s.stepPlaces(g, v)
	position := graph.Reshape(graph.Add(graph.Sub(v["length"], whole(1)), at.step), rows, 1)
	cos := graph.Reshape(graph.Gather(v["cos"], position), rows, 1, c.HeadDim/2)
	sin := graph.Reshape(graph.Gather(v["sin"], position), rows, 1, c.HeadDim/2)

	span := shapes.Make(dtypes.Int32, rows, s.net.places(s.positions))
	place, own := graph.Iota(g, span, 1), graph.BroadcastToShape(position, span)
	seen := graph.Reshape(graph.LessOrEqual(place, own), rows, 1, 1, 1, span.Dimensions[1])
	here := graph.Reshape(graph.Equal(place, own), rows, 1, span.Dimensions[1], 1)
	store := func(name string, x *graph.Node) *graph.Node {
		dims := v[name].Shape().Dimensions
		v[name] = graph.Where(graph.BroadcastToDims(here, dims...), graph.BroadcastToDims(x, dims...), v[name])
		return v[name]
	}

	x := s.net.embed(weights.embedding, v["token"])
	for i, w := range weights.layers {
		a := activations{x: x}
		q, k, val := s.net.project(w, &a, sequences{rows, 1, cos, sin})
		keys, values := store("cache"+strconv.Itoa(2*i), k), store("cache"+strconv.Itoa(2*i+1), val)
		a.attended = graph.Reshape(s.net.attend(q, keys, values, seen), rows, c.Heads*c.HeadDim)
		x = s.net.finish(w, &a)
	}
	hd := head{t: s.net, weight: weights.head, legal: v["legal"], inverse: v["inverse"]}
	logits := hd.logits(s.net.norm(x, weights.norm))
	token, logProb, entropy := sample(logits, at.take(v["uniforms"]), v["greedy"])

	alive := graph.GreaterThan(v["alive"], whole(0))
	token = graph.Where(alive, token, whole(0))
	none := graph.Const(g, float32(0))
	logProb, entropy = graph.Where(alive, logProb, none), graph.Where(alive, entropy, none)
	v["tokens"], v["logprobs"], v["entropies"] = at.put(v["tokens"], token), at.put(v["logprobs"], logProb), at.put(v["entropies"], entropy)
	v["count"] = graph.Add(v["count"], v["alive"])
	stops := shapes.Make(dtypes.Int32, rows, MaxStops)
	isStop := graph.Equal(
		graph.BroadcastToShape(graph.Reshape(token, rows, 1), stops),
		graph.BroadcastToShape(graph.Reshape(v["stop"], 1, MaxStops), stops))
	ended := graph.ReduceMax(graph.ConvertDType(isStop, dtypes.Int32), -1)
	v["alive"] = at.living(graph.Mul(v["alive"], graph.Sub(whole(1), ended)))
	v["any"] = graph.ReduceSum(v["alive"])
	v["token"] = token
	v["step"] = graph.Add(v["step"], whole(1))
}

// places is where a step of decoding reads and writes.
type places struct {
	step *graph.Node // of the rows: scalar, or [R]
	// take and put read and write the column of the step, [R], of [R, N].
	take func(of *graph.Node) *graph.Node
	put  func(of, values *graph.Node) *graph.Node
	// living selects the rows that continue, among those that have not stopped.
	living func(alive *graph.Node) *graph.Node
}

// stepPlaces are the places of a step: in a pass, all rows are at the same step.
func (s *Sampler) stepPlaces(g *graph.Graph, v map[string]*graph.Node) places {
	if s.sh.BlockRows > 0 {
		return s.blockPlaces(g, v)
	}
	rows, step := s.sh.GenerateRows, v["step"]
	var column []*graph.Node // that both results are put in
	return places{
		step: step,
		take: func(of *graph.Node) *graph.Node {
			return graph.Reshape(graph.DynamicSlice(of, []*graph.Node{graph.Const(g, int32(0)), step}, []int{rows, 1}), rows)
		},
		put: func(of, values *graph.Node) *graph.Node {
			if column == nil {
				column = []*graph.Node{graph.Const(g, int32(0)), step}
			}
			return graph.DynamicUpdateSlice(of, graph.Reshape(values, rows, 1), column)
		},
		living: func(alive *graph.Node) *graph.Node { return alive },
	}
}
