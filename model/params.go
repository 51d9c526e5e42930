package model

import (
	"fmt"
	"math"
	"strings"

	"github.com/reprise-rl/reprise/model/draw"
)

// Params are a policy's or a critic's weights on the host, float32. Values[i] holds the
// elements of Config.Tensors()[i] row by row.
type Params struct {
	Config Config
	Values [][]float32
}

// NewParams draws the weights of a new policy. As in transformers, matrices are drawn from
// N(0, InitializerRange²), biases are 0 and norms 1; a critic's value head is 0. Tensor i
// is drawn from the address with Step i, so the same address gives the same bits. With LoRA
// the adapters are drawn: A uniformly, from a stream of its own for each linear map, and B is
// 0, so that the policy is the base model.
func NewParams(c Config, at draw.Address) Params {
	p := zeroParams(c)
	for i, t := range c.Tensors() {
		drawTensor(c, t, i, at, p.Values[i])
	}
	return p
}

// drawTensor draws the weights of tensor i, t, into v.
func drawTensor(c Config, t TensorShape, i int, at draw.Address, v []float32) {
	switch {
	case strings.HasSuffix(t.Name, "norm.weight"):
		for j := range v {
			v[j] = 1
		}
	case strings.HasSuffix(t.Name, adapterA):
		// As PEFT does, uniform within 1/√in: Kaiming's with a = √5 (arXiv 1502.01852).
		at.Step = c.adapterStep(i)
		r, bound := at.Rand(), 1/math.Sqrt(float64(t.Shape[1]))
		for j := range v {
			v[j] = float32((2*r.Float64() - 1) * bound)
		}
	case len(t.Shape) == 2 && t.Name != valueHeadName && !strings.HasSuffix(t.Name, adapterB):
		at.Step = int64(i)
		r := at.Rand()
		for j := range v {
			v[j] = float32(r.NormFloat64() * c.InitializerRange)
		}
	default:
		clear(v)
	}
}

func zeroParams(c Config) Params {
	p := Params{Config: c}
	for _, t := range c.Tensors() {
		p.Values = append(p.Values, make([]float32, t.Elements()))
	}
	return p
}

// check returns an error unless the values have the configuration's shapes.
func (p Params) check() error {
	ts := p.Config.Tensors()
	if len(p.Values) != len(ts) {
		return fmt.Errorf("%d tensors of parameters, the configuration has %d", len(p.Values), len(ts))
	}
	for i, t := range ts {
		if len(p.Values[i]) != t.Elements() {
			return fmt.Errorf("tensor %q has %d elements, its shape %v has %d", t.Name, len(p.Values[i]), t.Shape, t.Elements())
		}
	}
	return nil
}
