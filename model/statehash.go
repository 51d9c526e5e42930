package model

import (
	"fmt"
	"slices"
	"sync"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/reprise-rl/reprise/model/cost"
)

// lanes is the number of sums that form the state fingerprint.
const lanes = cost.Lanes

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

// PairFingerprint is one fingerprint of a policy and the second network of its run, a critic or
// a process reward model: the sum of the lanes of both. If second is nil, it is the policy's
// fingerprint.
func PairFingerprint(policy, second *State) (string, error) {
	if second == nil {
		return policy.Fingerprint()
	}
	if policy.c.second() || !second.c.second() {
		return "", fmt.Errorf("fingerprint states: %w: not a policy and a second network", ErrInput)
	}
	sum, err := policy.lanes()
	if err != nil {
		return "", fmt.Errorf("fingerprint policy: %w", err)
	}
	more, err := second.lanes()
	if err != nil {
		return "", fmt.Errorf("fingerprint the second network: %w", err)
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
// second network's parameters and moments, of parameters without moments, and of a base model.
const (
	policyParts = 1
	secondParts = 4
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
	t := newTally(s.device)
	defer t.free()
	for part := range s.parts() {
		if err := s.device.eachOwned(s.owner, "add up", func(_, i int) error { return t.add(s, part, i) }); err != nil {
			return sum, err
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
	case s.c.second():
		return secondParts
	}
	return policyParts
}

// tally is a fingerprint while the devices add it up, each the tensors that it owns, in any
// order. The caller of its methods holds the device's run.
type tally struct {
	mu sync.Mutex
	// sums are the sums of each device to which no tensor is being added: as many as tensors were
	// added at once.
	sums [][]compute.Buffer
}

func newTally(d *Device) *tally { return &tally{sums: make([][]compute.Buffer, d.Count())} }

// take takes a sum of device k, or nil if there is none.
func (t *tally) take(k int) (sum compute.Buffer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if last := len(t.sums[k]) - 1; last >= 0 {
		sum, t.sums[k] = t.sums[k][last], t.sums[k][:last]
	}
	return sum
}

// put gives a sum of device k back.
func (t *tally) put(k int, sum compute.Buffer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sums[k] = append(t.sums[k], sum)
}

// add adds tensor i of a part of a state.
func (t *tally) add(s *State, p part, i int) error {
	return t.addTensor(s.fingerprint[i], s.owner[i], s.buffers(p)[i], i, s.firstSeed()+uint32(p)) // each part has its own seed
}

// addTensor adds tensor i, which is on device k, by its program of buildFingerprint.
func (t *tally) addTensor(p *program, k int, x compute.Buffer, i int, seed uint32) error {
	return try("add up", func() (err error) {
		before := t.take(k)
		if before == nil {
			if before, err = upload(p.device, k, make([]uint32, lanes), lanes); err != nil {
				return err
			}
		}
		defer free([]compute.Buffer{before})
		numbers, err := upload(p.device, k, append(salts(i, mixWord(seed)), 0), 2*lanes+1)
		if err != nil {
			return err
		}
		defer free([]compute.Buffer{numbers})
		out, err := p.on(k, x, numbers, before)
		if err != nil {
			return err
		}
		t.put(k, out[0])
		return nil
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

// read adds the sums of the devices: integers, so their order does not matter.
func (t *tally) read() (sum [lanes]uint32, err error) {
	err = try("add up", func() error {
		for _, of := range slices.Concat(t.sums...) {
			words, err := download[uint32](of, lanes)
			if err != nil {
				return err
			}
			for i, w := range words {
				sum[i] += w
			}
		}
		return nil
	})
	return sum, err
}

func (t *tally) free() {
	for _, of := range t.sums {
		free(of)
	}
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
// salts and a zero, and the sums so far; its output is the sums with the tensor's lanes
// added. The numbers are inputs, so that tensors of one shape share the program; as
// constants they would also cost many seconds of compilation, in which XLA evaluates what
// is mixed of them. The compiler must not know that the zero is one: it separates two sums that would
// become one over a long axis.
func buildFingerprint(t TensorShape, dtype dtypes.DType) builder {
	return func(in *inputs) []*graph.Node {
		const block = cost.LaneRows * cost.LaneRows
		n := t.Elements()
		words := wordsOf(graph.Reshape(in.next(dtype, t.Shape...), n))
		numbers, sums := in.next(dtypes.Uint32, 2*lanes+1), in.next(dtypes.Uint32, lanes)
		if blocks := n / block; blocks > 0 {
			of := graph.ReduceSum(mixed(words, numbers, 0, blocks, cost.LaneRows, cost.LaneRows), 2, 3)
			zero := graph.BroadcastToShape(graph.Reshape(element(numbers, 2*lanes), 1, 1), of.Shape())
			sums = graph.Add(sums, graph.ReduceSum(graph.Add(of, zero), 0))
		}
		if rest := n % block; rest > 0 {
			sums = graph.Add(sums, graph.ReduceSum(mixed(words, numbers, n-rest, 1, rest), 0, 2))
		}
		return []*graph.Node{sums}
	}
}

// mixed are the mixed words from a place on, [blocks, lanes, inner...]. The numbers are those
// of buildFingerprint.
func mixed(words, numbers *graph.Node, from, blocks int, inner ...int) *graph.Node {
	size := blocks
	for _, n := range inner {
		size *= n
	}
	dims := append([]int{blocks, lanes}, inner...)
	wide := shapes.Make(dtypes.Uint32, dims...)
	each := func(x *graph.Node) *graph.Node { // word, for all lanes
		dims := append([]int{blocks, 1}, inner...)
		return graph.BroadcastToShape(graph.Reshape(x, dims...), wide)
	}
	column := func(at int) *graph.Node { // number of each lane, for all words
		ones := slices.Repeat([]int{1}, len(dims))
		ones[1] = lanes
		return graph.BroadcastToShape(graph.Reshape(graph.Slice(numbers, graph.AxisRange(at, at+lanes)), ones...), wide)
	}
	place := graph.Iota(words.Graph(), shapes.Make(dtypes.Uint32, size), 0)
	place = graph.Add(place, graph.Const(words.Graph(), uint32(from)))
	word := graph.Slice(words, graph.AxisRange(from, from+size))
	return mixNodes(graph.BitwiseXor(each(word), graph.Add(graph.Mul(each(place), column(0)), column(lanes))))
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
