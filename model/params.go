package model

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/reprise-rl/reprise/model/draw"
	"github.com/reprise-rl/reprise/model/safetensors"
)

// Params are a policy's or a critic's weights on the host, float32. Values[i] holds the
// elements of Config.Tensors()[i] row by row.
type Params struct {
	Config Config
	Values [][]float32
}

// NewParams draws the weights of a new policy. As in transformers, matrices are drawn from
// N(0, InitializerRange²), biases are 0 and norms 1; a critic's value head is 0. Tensor i
// is drawn from the address with Step i, so the same address gives the same bits.
func NewParams(c Config, at draw.Address) Params {
	p := zeroParams(c)
	for i, t := range c.Tensors() {
		v := p.Values[i]
		switch {
		case strings.HasSuffix(t.Name, "norm.weight"):
			for j := range v {
				v[j] = 1
			}
		case len(t.Shape) == 2 && t.Name != valueHeadName:
			at.Step = int64(i)
			r := at.Rand()
			for j := range v {
				v[j] = float32(r.NormFloat64() * c.InitializerRange)
			}
		}
	}
	return p
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

// tensors returns the values with their names, after a prefix, for a safetensors file.
func (p Params) tensors(prefix string) []safetensors.Tensor {
	shapes := p.Config.Tensors()
	out := make([]safetensors.Tensor, len(shapes))
	for i, t := range shapes {
		out[i] = safetensors.F32(prefix+t.Name, t.Shape, p.Values[i])
	}
	return out
}

// tensorSource finds a tensor by name; nil data means that it is absent.
type tensorSource interface {
	names() []string
	tensor(name string) (safetensors.Tensor, error)
	shape(name string) ([]int, safetensors.DType)
}

// readParams reads the configuration's tensors from a source. One error names all
// missing, extra and misshapen tensors.
func readParams(c Config, src tensorSource, prefix string) (Params, error) {
	have := map[string]bool{}
	for _, name := range src.names() {
		if strings.HasPrefix(name, prefix) {
			have[strings.TrimPrefix(name, prefix)] = true
		}
	}
	var bad []string
	want := c.Tensors()
	for _, t := range want {
		if !have[t.Name] {
			bad = append(bad, fmt.Sprintf("missing %q of shape %v", prefix+t.Name, t.Shape))
			continue
		}
		delete(have, t.Name)
		shape, dtype := src.shape(prefix + t.Name)
		if !equalInts(shape, t.Shape) {
			bad = append(bad, fmt.Sprintf("%q has shape %v, should be %v", prefix+t.Name, shape, t.Shape))
		}
		if dtype != safetensors.Float32 && dtype != safetensors.BFloat16 && dtype != safetensors.Float16 {
			bad = append(bad, fmt.Sprintf("%q has dtype %s, should be F32, BF16 or F16", prefix+t.Name, dtype))
		}
	}
	if c.TieEmbeddings { // some checkpoints store the tied head as a copy
		delete(have, headName)
	}
	for _, name := range src.names() {
		if strings.HasPrefix(name, prefix) && have[strings.TrimPrefix(name, prefix)] {
			bad = append(bad, fmt.Sprintf("extra %q", name))
		}
	}
	if len(bad) > 0 {
		return Params{}, fmt.Errorf("%w: %s", ErrTensors, strings.Join(bad, "; "))
	}
	p := Params{Config: c, Values: make([][]float32, len(want))}
	for i, t := range want {
		x, err := src.tensor(prefix + t.Name)
		if err != nil {
			return Params{}, err
		}
		if p.Values[i], err = x.Float32s(); err != nil {
			return Params{}, err
		}
	}
	if c.TieEmbeddings {
		if err := checkTiedCopy(src, prefix, p.Values[0]); err != nil {
			return Params{}, err
		}
	}
	return p, nil
}

// checkTiedCopy returns an error if the source stores a tied head that differs from the
// embedding: ignoring that head would change the policy.
func checkTiedCopy(src tensorSource, prefix string, embedding []float32) error {
	if shape, _ := src.shape(prefix + headName); shape == nil {
		return nil
	}
	x, err := src.tensor(prefix + headName)
	if err != nil {
		return err
	}
	head, err := x.Float32s()
	if err != nil {
		return err
	}
	same := len(head) == len(embedding)
	for i := 0; same && i < len(head); i++ {
		same = head[i] == embedding[i]
	}
	if !same {
		return fmt.Errorf("%w: %q differs from the embedding though tie_word_embeddings is true", ErrTensors, prefix+headName)
	}
	return nil
}

func equalInts(a, b []int) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// stepTensor and stepOf write and read the optimizer's step count as a tensor.
func stepTensor(step int64) safetensors.Tensor {
	return safetensors.I64("step", []int{}, []int64{step})
}

func stepOf(f *safetensors.File) (int64, error) {
	t, ok := f.Get("step")
	if !ok || t.DType != safetensors.Int64 || len(t.Data) != 8 {
		return 0, fmt.Errorf("%w: optimizer's %q must be one I64", ErrTensors, "step")
	}
	step := int64(binary.LittleEndian.Uint64(t.Data))
	if step < 0 {
		return 0, fmt.Errorf("%w: optimizer's step is %d", ErrTensors, step)
	}
	return step, nil
}
