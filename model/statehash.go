package model

import (
	"fmt"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
)

// lanes of 32 bits make the state fingerprint.
const lanes = 4

// Fingerprint is 128 bits over every bit of the parameters, the moments and the
// step, as 32 hex digits. It is computed on the device with integer arithmetic,
// which is exact and has no order, so it is the same on every platform: each
// 32-bit word is mixed with its place, and the sums are taken modulo 2^32. It
// tells states apart; it is no defence against somebody who forges one.
func (s *State) Fingerprint() (string, error) {
	s.device.run.Lock()
	defer s.device.run.Unlock()
	if err := s.usable(); err != nil {
		return "", fmt.Errorf("fingerprint state: %w", err)
	}
	step, err := upload(s.device, []uint32{uint32(s.step), uint32(s.step >> 32)}, 2)
	if err != nil {
		return "", fmt.Errorf("fingerprint state: %w", err)
	}
	defer free([]compute.Buffer{step})
	args := append(append(append([]compute.Buffer{}, s.params...), s.m...), s.v...)
	out, err := s.fingerprint.call(append(args, step)...)
	if err != nil {
		return "", fmt.Errorf("fingerprint state: %w", err)
	}
	defer free(out)
	words, err := download[uint32](out[0], lanes)
	if err != nil {
		return "", fmt.Errorf("fingerprint state: %w", err)
	}
	return fmt.Sprintf("%08x%08x%08x%08x", words[0], words[1], words[2], words[3]), nil
}

// buildFingerprint takes parameters, m, v and the step as two words, and gives
// the lanes, [4] uint32.
func (p *Programs) buildFingerprint(in *inputs) []*graph.Node {
	var words []*graph.Node
	ts := p.c.Tensors()
	for range 3 {
		for _, x := range in.tensors(ts) {
			words = append(words, graph.Bitcast(graph.Reshape(x, x.Shape().Size()), dtypes.Uint32))
		}
	}
	words = append(words, in.next(dtypes.Uint32, 2))
	sums := make([]*graph.Node, lanes)
	for i, w := range words {
		place := graph.Iota(in.g, shapes.Make(dtypes.Uint32, w.Shape().Size()), 0)
		place = graph.Mul(place, graph.Const(in.g, uint32(0x9e3779b9)))
		for lane := range lanes {
			// A different salt for every tensor and lane, itself well mixed.
			salt := mixWord(uint32(i)*lanes + uint32(lane) + 1)
			h := mixNodes(graph.BitwiseXor(w, mixNodes(graph.Add(place, graph.Const(in.g, salt)))))
			sum := graph.ReduceSum(h)
			if sums[lane] != nil {
				sum = graph.Add(sums[lane], sum)
			}
			sums[lane] = sum
		}
	}
	for i := range sums {
		sums[i] = graph.Reshape(sums[i], 1)
	}
	return []*graph.Node{graph.Concatenate(sums, 0)}
}

// mixWord is MurmurHash3's finalizer: every bit of x changes about half of the
// result's.
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
