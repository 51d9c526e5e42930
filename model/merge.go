package model

import (
	"fmt"
	"strings"
)

// Merge gives the weights of a base model with adapters added to them, W + s·B·A, in float32:
// a whole policy without adapters. The adapters are read into the host's memory; the base is
// read one tensor at a time.
func Merge(base, adapters Source) (Source, error) {
	c := adapters.Config
	switch {
	case !c.Adapted() || c.second():
		return Source{}, fmt.Errorf("merge adapters: %w: not the adapters of a policy", ErrInput)
	case base.Config.shape() != c.Base().shape():
		return Source{}, fmt.Errorf("merge adapters: %w: the base model has another configuration", ErrInput)
	}
	p, err := adapters.Params()
	if err != nil {
		return Source{}, fmt.Errorf("merge adapters: %w", err)
	}
	pairs := map[string]int{} // the place of A by the name of the weight; B comes after it
	for i, t := range c.Tensors() {
		if name, ok := t.ofWeight(); ok {
			pairs[name] = i
		}
	}
	shapes := base.Config.Tensors()
	return Source{Config: base.Config, each: func(_ bool, visit visitor) (int64, error) {
		var sum []float32
		return base.each(false, func(part part, i int, v []float32) error {
			at, ok := pairs[shapes[i].Name]
			if !ok {
				return visit(part, i, v)
			}
			sum = sized(sum, len(v))
			copy(sum, v)
			addProduct(sum, p.Values[at], p.Values[at+1], shapes[i].Shape[1], c.LoRA)
			return visit(part, i, sum)
		})
	}}, nil
}

// ofWeight is the name of the base model's weight that a tensor A belongs to.
func (t TensorShape) ofWeight() (string, bool) {
	name, ok := strings.CutSuffix(t.Name, adapterA)
	return strings.TrimPrefix(name, adapterPrefix) + ".weight", ok
}

// addProduct adds s·B·A to w [out, in], row by row, with a [rank, in] and b [out, rank]. Each
// row of the product is complete before it is scaled and added, as in PEFT.
func addProduct(w, a, b []float32, in int, l LoRA) {
	scale, row := float32(l.Scale()), make([]float32, in)
	for out := range len(w) / in {
		clear(row)
		for r := range l.Rank {
			by := b[out*l.Rank+r]
			for i, x := range a[r*in : (r+1)*in] {
				row[i] += float32(by * x)
			}
		}
		for i, x := range row {
			w[out*in+i] += float32(x * scale)
		}
	}
}
