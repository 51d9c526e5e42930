package cost

import "slices"

// footprint computes what the programs of a model need. Inputs and outputs are exact but for
// some kilobytes. What a program needs besides follows from the tensors that XLA's compiler for
// CPUs holds at once. A GPU's is taken to hold the same, but for bfloat16, which a CPU widens
// to compute with it.
type footprint struct {
	m Network
	// weights are the bytes of the weights that the programs read: matrices in the compute dtype,
	// but adapters and a critic's head in float32, as norms and biases. trained are those of
	// what is trained, in float32.
	weights, trained int64
	width            int64 // bytes of a number in the compute dtype
	cpu              bool
	keep             bool      // activations for the backward pass
	exact            bool      // keys and values are padded to a multiple of lane
	value            bool      // the critic's
	teaches          bool      // the teacher's, which leaves nothing to a backward program
	lora             *Adapters // nil: all weights are trained
	values           int64     // of a token: a critic's, or 1
	hidden, inner, queries, keys,
	layers, vocabulary int64
}

// policy is the footprint of the job's policy.
func (j Job) policy() footprint {
	m := j.Network
	return footprint{
		m: m, width: j.ComputeBytes, cpu: j.CPU, keep: j.Keep, exact: j.Exact, lora: j.Adapters,
		hidden: int64(m.HiddenSize), inner: int64(m.IntermediateSize),
		queries: int64(m.Heads) * m.headDim(), keys: int64(m.KVHeads) * m.headDim(),
		layers: int64(m.Layers), vocabulary: int64(m.VocabSize), values: 1, trained: float32Bytes * m.Trained(j.Adapters),
	}.reading()
}

// reading sets weights.
func (f footprint) reading() footprint {
	f.weights = f.frozen() + f.trained
	if f.lora == nil {
		f.weights -= (float32Bytes - f.width) * f.m.matrices()
	}
	return f
}

// frozen is the bytes of the base model below adapters: matrices in the compute dtype, norms
// and biases in float32.
func (f footprint) frozen() int64 {
	if f.lora == nil {
		return 0
	}
	return f.width*f.m.matrices() + float32Bytes*(f.m.Parameters()-f.m.matrices())
}

// copies is the bytes of the copies in the compute dtype, if that is not float32, of matrices
// that are trained whole. They are held from the first program after an update to the next.
func (f footprint) copies() int64 {
	if f.lora != nil || f.width == float32Bytes {
		return 0
	}
	return f.width * f.m.matrices()
}

// lossColumns are about the numbers of a token that the loss reads.
const lossColumns = 6

// models are the footprints of the networks that are scored and trained: the policy, and the second
// network if there is one. A process reward model is as large as the policy.
func (j Job) models() []footprint {
	policy := j.policy()
	switch {
	case j.Values > 0:
		return []footprint{policy, policy.critic(j.Values)}
	case j.PRM:
		return []footprint{policy, policy}
	}
	return []footprint{policy}
}

// teacher is the footprint of the network that scores rows and is not trained, if there is one: a device has it as the
// programs read it.
func (j Job) teacher() (f footprint, there bool) {
	if j.Teacher == nil {
		return f, false
	}
	f = j.untrained(*j.Teacher)
	f.teaches = true
	return f, true
}

// judge is the footprint of the network that judges episodes and is not trained, if there is one.
func (j Job) judge() (f footprint, there bool) {
	if j.Judge == nil {
		return f, false
	}
	j.Exact = false // nothing else computes the log-probs of its replies
	return j.untrained(j.Judge.Network), true
}

// untrained is the footprint of a network that no program updates.
func (j Job) untrained(m Network) footprint {
	j.Network, j.Adapters, j.Keep = m, nil, false
	return j.policy()
}

// ownTeacher is the footprint of the policy as its own teacher, if it is: its weights are there already.
func (j Job) ownTeacher() (f footprint, there bool) {
	if j.Shown == 0 {
		return f, false
	}
	f = j.policy()
	f.teaches = true
	return f, true
}

// shownWidth is the tokens of a row with what a policy is shown before it as its own teacher.
func (j Job) shownWidth() int { return j.Update.Width + j.Shown }

// critic is the footprint of the policy's critic, whose head is a vector for each value of a token.
func (f footprint) critic(values int) footprint {
	f.value, f.values = true, int64(values)
	f.m.Tied = true // it has no head for tokens
	f.trained = float32Bytes * (f.m.Trained(f.lora) + f.values*f.hidden)
	return f.reading()
}

func (f footprint) name(kind string) string {
	switch {
	case f.value:
		return "critic-" + kind
	case f.teaches:
		return "teacher-" + kind
	}
	return kind
}

// widens reports whether the compute dtype is not float32 and the programs widen it: a CPU's.
func (f footprint) widens() bool { return f.width < float32Bytes && f.cpu }

// active is the bytes of a number that is computed with.
func (f footprint) active() int64 {
	if f.cpu {
		return float32Bytes
	}
	return f.width
}

// table is the bytes of the embedding, or of the head, in float32.
func (f footprint) table() int64 { return float32Bytes * f.vocabulary * f.hidden }

// tables are the bytes of what all programs read beside weights: rotary tables of so many
// positions, and which ids are legal.
func (f footprint) tables(positions int64) int64 {
	return float32Bytes * (positions*f.m.headDim() + f.vocabulary)
}

// lane is what the places and the values of an exact policy are a multiple of.
const lane = 64

func upToLane(n int64) int64 { return (n + lane - 1) / lane * lane }

// cache is the bytes of the keys and values of rows at so many places.
func (f footprint) cache(rows, places int64) int64 {
	values := f.keys
	if f.exact {
		places, values = upToLane(places), int64(f.m.KVHeads)*upToLane(f.m.headDim())
	}
	return f.width * f.layers * rows * places * (f.keys + values)
}

// saved is the bytes of what the forward program leaves to the backward program for so many
// tokens: what the layers begin with and the last one's output, or the layers' activations, and
// the logits where they are computed at once.
func (f footprint) saved(tokens int64) int64 {
	if f.teaches {
		return 0
	}
	numbers := (f.layers + 1) * f.hidden
	if f.keep {
		numbers += f.layers * (f.hidden + 2*f.queries + 2*f.keys + 2*f.inner)
	}
	n := f.width * tokens * numbers
	if logits, several := f.logits(tokens); f.keep && !f.value && !several {
		n += logits
	}
	return n
}

// scores are the bytes of the attention scores of a block of queries of rows of so many tokens,
// in float32, and how many blocks there are.
func (f footprint) scores(rows, tokens int64) (bytes, blocks int64) {
	return float32Bytes * rows * int64(f.m.Heads) * min(tokens, AttentionQueries) * tokens, (tokens + AttentionQueries - 1) / AttentionQueries
}

// layer is what one layer needs besides its input and output. In the attention these are two
// tensors of scores, of one block of queries, and x, q, k and v; with several blocks, also
// what the blocks have attended to, apart and together. In the SwiGLU they are its two inner
// tensors, x and the norm of x.
func (f footprint) layer(rows, tokens int64) int64 {
	scores, _ := f.scores(rows, tokens)
	wide := f.hidden + f.queries + 2*f.keys
	if tokens > AttentionQueries {
		wide += 2 * f.queries
	}
	n := f.active() * rows * tokens
	return max(2*scores+n*wide, n*(2*f.inner+2*f.hidden))
}

// logits are the bytes of the logits that the head computes at once for so many tokens, and
// whether there are several such chunks.
func (f footprint) logits(tokens int64) (bytes int64, several bool) {
	at := min(tokens, max(1, HeadLogits/f.vocabulary))
	return float32Bytes * at * f.vocabulary, at < tokens
}

// prefill computes the keys and values of rows of prompts; the tables are for so many positions.
func (f footprint) prefill(rows, prompt, positions int64) Program {
	return Program{
		Name: "prefill", Inputs: f.weights + f.tables(positions) - float32Bytes*f.vocabulary + float32Bytes*rows*prompt,
		Outputs: f.cache(rows, prompt), Temporary: f.layer(rows, prompt),
	}
}

// Pass is the sizes of a pass of generation: rows, and tokens of a prompt and of what is sampled after it.
type Pass struct{ Rows, Prompt, Fresh int64 }

// step is what a step of decoding needs: three tensors of logits, two of scores, and on a CPU
// that widens them one layer's keys or values.
func (f footprint) step(s Pass) int64 {
	n := 3*float32Bytes*s.Rows*f.vocabulary + 2*float32Bytes*s.Rows*int64(f.m.Heads)*(s.Prompt+s.Fresh)
	if f.widens() {
		n += float32Bytes * s.Rows * (s.Prompt + s.Fresh) * f.keys
	}
	return n
}

// sampledBytes are those of a number for each token that is sampled.
func (s Pass) sampledBytes() int64 { return float32Bytes * s.Rows * s.Fresh }

// decode samples all tokens of a pass: it puts the prefills' keys and values together, with
// room for the new ones.
func (f footprint) decode(s Pass) Program {
	return Program{
		Name: "decode", Inputs: f.weights + f.cache(s.Rows, s.Prompt) + f.tables(s.Prompt+s.Fresh) + s.sampledBytes(),
		Outputs: 3 * s.sampledBytes(), Temporary: f.cache(s.Rows, s.Prompt+s.Fresh) + f.step(s),
	}
}

// room puts keys and values of rows at so many places together, with room for more.
func (f footprint) room(name string, rows, from, to int64) Program {
	return Program{Name: name, Inputs: f.cache(rows, from), Outputs: f.cache(rows, to)}
}

// decodeChunk samples some tokens of a pass, or of the slots of a block, and writes keys and values in place.
func (f footprint) decodeChunk(name string, s Pass) Program {
	cache := f.cache(s.Rows, s.Prompt+s.Fresh)
	return Program{
		Name: name, Inputs: f.weights + cache + f.tables(s.Prompt+s.Fresh) + 4*s.sampledBytes(),
		Outputs: cache + 3*s.sampledBytes(), Aliases: cache, Temporary: f.step(s),
	}
}

// seat puts keys and values of a prefill in slots, in place.
func (f footprint) seat(s Pass, rows int64) Program {
	cache := f.cache(s.Rows, s.Prompt+s.Fresh)
	return Program{Name: "block-seat", Inputs: cache + f.cache(rows, s.Prompt), Outputs: cache, Aliases: cache}
}

// appending is the sizes of the last turn's append: the rows of a pass, the places before and
// after, and the tokens of an execution.
type appending struct{ rows, before, width, tokens int64 }

// appended is the last turn's append of a rollout that keeps values.
func (r Rollout) appended() appending {
	n := len(r.Turns)
	last := r.Turns[n-1]
	return appending{int64(r.PassRows), int64(r.Turns[n-2].Width), int64(last.Width), int64(last.Read)}
}

// kept is the bytes of the keys and values that a rollout keeps at the last turn, of the rows whose passes a
// device has.
func (r Rollout) kept(f footprint, on seat) int64 {
	if !r.KeepValues || len(r.Turns) < 2 {
		return 0
	}
	a := r.appended()
	return f.cache(int64(partsOn(on.number, r.Parts, r.Each, on.devices))*a.rows, a.width)
}

// append continues the keys and values of a chunk of rows in place. It needs what a layer needs,
// with scores over all places, and a layer's keys and values once more.
func (f footprint) append(rows int64, a appending) Program {
	cache, n := f.cache(rows, a.width), f.active()*rows*a.tokens
	scores := float32Bytes * rows * int64(f.m.Heads) * min(a.tokens, AttentionQueries) * a.width
	attention := 2*scores + n*(f.hidden+f.queries+2*f.keys) + 2*f.active()*rows*a.width*f.keys
	return Program{
		Name: "append", Inputs: f.weights + cache + f.tables(a.width) - float32Bytes*f.vocabulary + float32Bytes*rows*(a.tokens+2),
		Outputs: cache, Aliases: cache, Temporary: max(attention, n*(2*f.inner+2*f.hidden)),
	}
}

// forward scores a micro-batch. It needs what a layer needs, or the head: three tensors of
// logits, four where the positions are in several chunks.
func (f footprint) forward(rows, width int64) Program {
	n := rows * width
	p := Program{
		Name: f.name("forward"), Inputs: f.weights + f.tables(width) + float32Bytes*n,
		Outputs: f.saved(n) + 3*float32Bytes*n*f.values, Temporary: f.layer(rows, width),
	}
	if f.value {
		return p
	}
	logits, several := f.logits(n)
	head := 3 * logits
	if several {
		head = 4 * logits
	}
	p.Temporary = max(p.Temporary, head)
	return p
}

// backward adds a micro-batch's gradients to the sums, in the memory of the sums. It goes
// through the layers one after the other. In a SwiGLU it needs six inner tensors, five as wide as
// x and two as wide as q, or its gradients, or those of a layer's adapters; in the attention two
// tensors of scores, of one block of queries, in place of the inner tensors, and the derivatives by
// keys and values of each block; and two inner tensors more where it computes the layer again.
// Besides there is the gradient of the embedding where it is trained. Or it needs the head's: its
// gradient and two tensors of logits, where the positions are in several chunks two of both. A
// CPU that widens what it computes with has the head widened where the logits were kept.
func (f footprint) backward(rows, width int64) Program {
	n := rows * width
	scores, blocks := f.scores(rows, width)
	p := Program{
		Name:    f.name("backward"),
		Inputs:  f.weights + f.trained + f.tables(width) + f.saved(n) + float32Bytes*n*(3+(1+lossColumns)*f.values),
		Outputs: f.trained, Aliases: f.trained,
	}
	table, gradients := f.table(), 3*float32Bytes*f.hidden*f.inner
	if f.lora != nil {
		table, gradients = 0, f.trained/max(f.layers, 1)
	}
	number := f.active() * n
	layer := max(2*scores+number*2*blocks*f.keys, number*6*f.inner) + number*(5*f.hidden+2*f.queries)
	if !f.keep {
		layer += number * 2 * f.inner
	}
	p.Temporary = table + max(layer, gradients)
	if !f.value {
		logits, several := f.logits(n)
		head := table + 2*logits
		if several {
			head = 2 * (table + logits)
		}
		if f.widens() && f.keep {
			head += f.table()
		}
		p.Temporary = max(p.Temporary, head)
	}
	return p
}

// largest is the bytes of the largest tensor that is trained.
func (f footprint) largest() int64 {
	n := f.m.LargestTensor()
	if f.lora != nil {
		n = slices.Max(append(f.m.adapted(*f.lora), 0))
	}
	return float32Bytes * n
}

// inPlace is a program that reads so many tensors and writes some of them in their memory: the sum of the squares of
// a gradient, a shard's gradient added to the total, and AdamW's step of weights and moments.
func (f footprint) inPlace(kind string, reads, writes int64) Program {
	n := f.largest()
	return Program{Name: f.name(kind), Inputs: reads * n, Outputs: writes * n, Aliases: writes * n}
}

// fingerprint adds up a tensor by blocks. It keeps the sums of their lanes, the sums of LaneRows
// of those, and the mixed words of what is less than a block.
func (f footprint) fingerprint() Program {
	words := f.largest() / float32Bytes
	const block = LaneRows * LaneRows
	kept := words/block*(LaneRows+1)/LaneRows + words%block
	return Program{Name: f.name("fingerprint"), Inputs: f.largest(), Temporary: Lanes * float32Bytes * kept}
}
