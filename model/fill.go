package model

import (
	"fmt"
	"math"
	"strings"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
)

// Probe makes a state to test the programs with: norms of 1, noise in the other tensors, zero
// moments and no update applied. It is made on the device and always has the same bits.
func (p *core) Probe() (*State, error) {
	base, err := p.probeBase()
	if base != nil {
		defer base.Free() // the state holds it
	}
	if err != nil {
		return nil, fmt.Errorf("make a probe: %w", err)
	}
	s, err := p.empty(p.c, base, true)
	if err != nil {
		return nil, fmt.Errorf("make a probe: %w", err)
	}
	if err = p.fillProbe(s); err == nil {
		err = p.fillMoments(s)
	}
	if err != nil {
		s.Free()
		return nil, fmt.Errorf("make a probe: %w", err)
	}
	return s, nil
}

func (p *core) fillProbe(s *State) error {
	p.device.run.Lock()
	defer p.device.run.Unlock()
	return try("make weights", func() (err error) {
		s.params, err = p.fill(kindFill, p.c.Tensors(), s.owner, probeTensor)
		return err
	})
}

// probeTensor gives a probe's numbers to fill.
func probeTensor(t TensorShape) (base, spread float32) {
	if strings.HasSuffix(t.Name, "norm.weight") {
		return 1, 0
	}
	return -probeNoise, 2 * probeNoise
}

// probeNoise bounds the noise of a probe's weights: a standard deviation of 0.02, as Qwen2's.
const probeNoise = 0.0346

// fill makes tensors by the programs of a kind, each on its owner; without owners all are made where
// p runs. of gives a tensor's least number
// and the width of the range of its noise. The caller holds run.
func (p *core) fill(k kind, tensors []TensorShape, owner []int,
	of func(TensorShape) (base, spread float32)) (out []compute.Buffer, err error) {
	fills, err := p.group(k)
	if err != nil {
		return nil, err
	}
	out = make([]compute.Buffer, len(tensors))
	if err := p.device.abreast("make tensors", len(tensors), func(i int) (err error) {
		base, spread := of(tensors[i])
		k := p.k
		if owner != nil {
			k = owner[i]
		}
		out[i], err = fills[i].fill(k, base, spread, mixWord(uint32(i)))
		return err
	}); err != nil {
		free(out)
		return nil, err
	}
	return out, nil
}

// fill runs a program of buildFill on device k.
func (p *program) fill(k int, base, spread float32, seed uint32) (compute.Buffer, error) {
	numbers, err := upload(p.device, k, []uint32{math.Float32bits(base), math.Float32bits(spread), seed}, 3)
	if err != nil {
		return nil, err
	}
	defer free([]compute.Buffer{numbers})
	out, err := p.on(k, numbers)
	if err != nil {
		return nil, err
	}
	return out[0], nil
}

// buildFill is the program that makes a tensor: base + spread · u, where u is noise in
// [0, 1) of the place and the seed. Its input are the words of base, spread and seed.
func buildFill(t TensorShape, dtype dtypes.DType) builder {
	return func(in *inputs) []*graph.Node {
		numbers := in.next(dtypes.Uint32, 3)
		number := func(i int) *graph.Node { return graph.Bitcast(element(numbers, i), dtypes.Float32) }
		place := graph.Iota(in.g, shapes.Make(dtypes.Uint32, t.Elements()), 0)
		noise := mixNodes(graph.Add(place, element(numbers, 2)))
		u := graph.ConvertDType(graph.BitwiseShiftRightLogical(noise, graph.Const(in.g, uint32(8))), dtypes.Float32)
		u = graph.Mul(u, scalar(u, 1.0/(1<<24)))
		x := graph.Reshape(graph.Add(number(0), graph.Mul(number(1), u)), t.Shape...)
		if dtype != dtypes.Float32 {
			x = graph.ConvertDType(x, dtype)
		}
		return []*graph.Node{x}
	}
}
