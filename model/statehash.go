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
// critic's parameters and moments, and of parameters without moments.
const (
	policyParts = 1
	criticParts = 4
	loneParts   = 7
)

// lanes computes the sums that form the fingerprint.
func (s *State) lanes() (sum [lanes]uint32, err error) {
	s.device.run.Lock()
	defer s.device.run.Unlock()
	if err := s.usable(); err != nil {
		return sum, err
	}
	from, parts := uint32(policyParts), [][]compute.Buffer{s.params, s.m, s.v}
	switch {
	case s.m == nil:
		from, parts = loneParts, parts[:1]
	case s.c.ValueHead:
		from = criticParts
	}
	sum = stepLanes(s.step, from)
	return sum, try("add up", func() error {
		for i, part := range parts {
			if err := s.addLanes(&sum, part, mixWord(from+uint32(i))); err != nil {
				return err
			}
		}
		return nil
	})
}

// addLanes adds the lanes of one part of the state. Each part has its own seed.
func (s *State) addLanes(sum *[lanes]uint32, part []compute.Buffer, seed uint32) error {
	// The seed is an input, so that all parts use one program. As a constant it would
	// also cost many seconds of compilation, in which XLA evaluates the mixed constants.
	b, err := upload(s.device, []uint32{seed})
	if err != nil {
		return err
	}
	defer free([]compute.Buffer{b})
	out, err := s.fingerprint.call(append(append([]compute.Buffer{}, part...), b)...)
	if err != nil {
		return err
	}
	defer free(out)
	for _, o := range out {
		words, err := download[uint32](o, lanes)
		if err != nil {
			return err
		}
		for i, w := range words {
			sum[i] += w
		}
	}
	return nil
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

// buildFingerprint is the fingerprint program. Its inputs are one part of a state, as the
// configuration's tensors, and a seed; its outputs are each tensor's lanes, [4] uint32.
func (p *Programs) buildFingerprint(in *inputs) []*graph.Node {
	tensors := in.tensors(dtypes.Float32, p.c.Tensors())
	seed := in.next(dtypes.Uint32)
	sums := make([]*graph.Node, len(tensors))
	for i, x := range tensors {
		words := graph.Bitcast(graph.Reshape(x, x.Shape().Size()), dtypes.Uint32)
		sums[i] = hashWords(words, seed, uint32(i))
	}
	return sums
}

// hashWords computes the lanes of one tensor of words [n]. Every lane has its own
// multiplier of the place and its own salt for every tensor.
func hashWords(w, seed *graph.Node, tensor uint32) *graph.Node {
	g, n := w.Graph(), w.Shape().Size()
	factors, salts := make([][]uint32, 1), make([][]uint32, 1)
	for lane := range uint32(lanes) {
		salt := 2 * (tensor*lanes + lane)
		factors[0], salts[0] = append(factors[0], mixWord(salt+1)|1), append(salts[0], mixWord(salt+2))
	}
	wide := shapes.Make(dtypes.Uint32, n, lanes)
	place := graph.Mul(graph.Iota(g, wide, 0), graph.Const(g, factors))
	place = graph.Add(place, graph.Add(graph.Const(g, salts), seed))
	w = graph.BroadcastToShape(graph.Reshape(w, n, 1), wide)
	return graph.ReduceSum(mixNodes(graph.BitwiseXor(w, place)), 0)
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
