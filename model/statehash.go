package model

import (
	"fmt"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
)

// lanes is the number of 32-bit sums that form the state fingerprint.
const lanes = 4

// Fingerprint is a 128-bit hash of the parameters, the moments and the step, as 32 hex
// digits. Each 32-bit word is mixed with its place, and the results are summed modulo
// 2^32. The device computes it with integers, whose sums are exact in any order, so it is
// the same on every platform. It differs between a policy, a critic and parameters without
// moments. It is not secure against deliberate collisions.
func (s *State) Fingerprint() (string, error) {
	sum, err := s.lanes()
	if err != nil {
		return "", fmt.Errorf("fingerprint state: %w", err)
	}
	return digits(sum), nil
}

// PairFingerprint is one fingerprint of a policy and its critic: the sum of the lanes of
// both. If critic is nil, it is the policy's fingerprint.
func PairFingerprint(policy, critic *State) (string, error) {
	if critic == nil {
		return policy.Fingerprint()
	}
	if policy.c.ValueHead || !critic.c.ValueHead {
		return "", fmt.Errorf("fingerprint states: %w: not a policy and a critic", ErrInput)
	}
	sum, err := policy.lanes()
	if err != nil {
		return "", fmt.Errorf("fingerprint policy: %w", err)
	}
	more, err := critic.lanes()
	if err != nil {
		return "", fmt.Errorf("fingerprint critic: %w", err)
	}
	for i, w := range more {
		sum[i] += w
	}
	return digits(sum), nil
}

func digits(sum [lanes]uint32) string {
	return fmt.Sprintf("%08x%08x%08x%08x", sum[0], sum[1], sum[2], sum[3])
}

// First seeds of the parts of a state: of a policy's parameters and moments, of a
// critic's parameters and moments, of parameters without moments, and of a base model.
const (
	policyParts = 1
	criticParts = 4
	loneParts   = 7
	baseParts   = 8
)

// lanes computes the sums that form the fingerprint.
func (s *State) lanes() (sum [lanes]uint32, err error) {
	s.device.run.Lock()
	defer s.device.run.Unlock()
	if err := s.usable(); err != nil {
		return sum, err
	}
	if s.sum != nil {
		return *s.sum, nil
	}
	var t tally
	defer t.free()
	for part := range s.parts() {
		for i := range s.params {
			if err := t.add(s, part, i); err != nil {
				return sum, err
			}
		}
	}
	return t.end(s)
}

// parts is the number of parts that the state has.
func (s *State) parts() part {
	if s.m == nil {
		return 1
	}
	return partCount
}

// firstSeed is the seed of the first part of the kind of state.
func (s *State) firstSeed() uint32 {
	switch {
	case s.m == nil:
		return loneParts
	case s.c.ValueHead:
		return criticParts
	}
	return policyParts
}

// lanePrograms add up the lanes of tensors.
type lanePrograms struct {
	device   *Device
	tensors  []TensorShape
	programs group // of the tensors
}

// tally is a fingerprint while the device adds it up, tensor by tensor in any order. The
// caller of its methods holds the device's run.
type tally struct {
	sums compute.Buffer // nil before the first tensor
}

// add adds tensor i of a part of a state.
func (t *tally) add(s *State, p part, i int) error {
	l := lanePrograms{s.device, s.c.Tensors(), s.fingerprint}
	return t.addTensor(l, s.buffers(p)[i], i, s.firstSeed()+uint32(p)) // each part has its own seed
}

// addTensor adds tensor i.
func (t *tally) addTensor(l lanePrograms, x compute.Buffer, i int, seed uint32) error {
	return try("add up", func() (err error) {
		if t.sums == nil {
			if t.sums, err = upload(l.device, make([]uint32, lanes), lanes); err != nil {
				return err
			}
		}
		t.sums, err = l.add(t.sums, x, i, mixWord(seed))
		return err
	})
}

// end adds the step's part of a state to what was added, and reads the sums.
func (t *tally) end(s *State) ([lanes]uint32, error) {
	sum, err := t.read()
	for i, w := range stepLanes(s.step, s.firstSeed()) {
		sum[i] += w
	}
	return sum, err
}

// read reads the sums.
func (t *tally) read() (sum [lanes]uint32, err error) {
	err = try("add up", func() error {
		words, err := download[uint32](t.sums, lanes)
		copy(sum[:], words)
		return err
	})
	return sum, err
}

func (t *tally) free() { free([]compute.Buffer{t.sums}) }

// add adds the lanes of a tensor to the sums, block by block, and returns the new
// sums. It frees the old ones, unless there is an error.
func (l lanePrograms) add(sums, x compute.Buffer, tensor int, seed uint32) (compute.Buffer, error) {
	n, size := l.tensors[tensor].Elements(), l.programs[tensor].key.limits.words
	for from := 0; from < n; from += size {
		numbers, err := upload(l.device, append(salts(tensor, seed), uint32(from)), 2*lanes+1)
		if err != nil {
			return sums, err
		}
		out, err := l.programs[tensor].call(x, numbers, sums)
		free([]compute.Buffer{numbers})
		if err != nil {
			return sums, err
		}
		free([]compute.Buffer{sums})
		sums = out[0]
	}
	return sums, nil
}

// salts are the multipliers of the place, one for each lane, and what is added to the
// product. The seed is that of the part of the state.
func salts(tensor int, seed uint32) []uint32 {
	out := make([]uint32, 2*lanes)
	for lane := range lanes {
		salt := 2 * uint32(tensor*lanes+lane)
		out[lane], out[lanes+lane] = mixWord(salt+1)|1, mixWord(salt+2)+seed
	}
	return out
}

// stepLanes is the step's part of the fingerprint. It depends on from, the first seed of
// the kind of state.
func stepLanes(step int64, from uint32) (sum [lanes]uint32) {
	for i := range sum {
		salt := mixWord(^(uint32(i) + lanes*(from-policyParts)))
		sum[i] = mixWord(uint32(step)^salt) + mixWord(uint32(step>>32)+salt)
	}
	return sum
}

// buildFingerprint is the fingerprint program of a tensor. Its inputs are the tensor, the
// numbers of lanePrograms.add (salts and the place of a block's first word) and the sums so far; its
// output is the sums with the lanes of the block added. A block has at most the given number
// of words: the mixed words of a whole tensor would need four times its memory. The numbers
// are inputs, so that tensors of one shape share the program; as constants they would also
// cost many seconds of compilation, in which XLA evaluates what is mixed of them.
func buildFingerprint(t TensorShape, dtype dtypes.DType, words int) builder {
	return func(in *inputs) []*graph.Node {
		n := t.Elements()
		size := min(n, words)
		x := graph.Reshape(in.next(dtype, t.Shape...), n)
		numbers, sums := in.next(dtypes.Uint32, 2*lanes+1), in.next(dtypes.Uint32, lanes)
		wide := shapes.Make(dtypes.Uint32, lanes, size)
		place := graph.Iota(in.g, wide, 1)
		from := element(numbers, 2*lanes)
		if size < n {
			// The last block ends where the tensor does, and so begins in the block before it.
			start := graph.Min(from, graph.Const(in.g, uint32(n-size)))
			x = graph.DynamicSlice(x, []*graph.Node{start}, []int{size})
			place = graph.Add(place, start)
		}
		column := func(at int) *graph.Node {
			v := graph.Slice(numbers, graph.AxisRange(at, at+lanes))
			return graph.BroadcastToShape(graph.Reshape(v, lanes, 1), wide)
		}
		word := graph.BroadcastToShape(graph.Reshape(wordsOf(x), 1, size), wide)
		mixed := mixNodes(graph.BitwiseXor(word, graph.Add(graph.Mul(place, column(0)), column(lanes))))
		if n%size != 0 {
			mixed = graph.Where(graph.GreaterOrEqual(place, from), mixed, graph.ZerosLike(mixed))
		}
		return []*graph.Node{graph.Add(sums, graph.ReduceSum(mixed, 1))}
	}
}

// wordsOf are the bits of x as words.
func wordsOf(x *graph.Node) *graph.Node {
	if x.DType() == dtypes.BFloat16 {
		return graph.ConvertDType(graph.Bitcast(x, dtypes.Uint16), dtypes.Uint32)
	}
	return graph.Bitcast(x, dtypes.Uint32)
}

// mixWord is MurmurHash3's finalizer: every bit of x changes about half of the
// bits of the result.
func mixWord(x uint32) uint32 {
	x ^= x >> 16
	x *= 0x85ebca6b
	x ^= x >> 13
	x *= 0xc2b2ae35
	return x ^ x>>16
}

// mixNodes is mixWord on the device.
func mixNodes(x *graph.Node) *graph.Node {
	g := x.Graph()
	shift := func(x *graph.Node, n uint32) *graph.Node {
		return graph.BitwiseXor(x, graph.BitwiseShiftRightLogical(x, graph.Const(g, n)))
	}
	x = graph.Mul(shift(x, 16), graph.Const(g, uint32(0x85ebca6b)))
	x = graph.Mul(shift(x, 13), graph.Const(g, uint32(0xc2b2ae35)))
	return shift(x, 16)
}
