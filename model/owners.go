package model

import (
	"cmp"
	"slices"
)

// owners deals tensors to n devices in bundles, and gives each tensor's device: the largest bundle first, of equals
// the first, each to the device that has the fewest numbers so far, of equals the first. A tensor's
// owner has its weights, its moments and the total of its gradient, makes AdamW's step and
// fingerprints the tensor. The other devices have its weights while they need them: see spread.
func owners(tensors []TensorShape, of []bundle, n int) []int {
	elements := func(b bundle) int { return len(b) * tensors[b[0]].Elements() }
	order := slices.Clone(of)
	slices.SortStableFunc(order, func(a, b bundle) int { return cmp.Compare(elements(b), elements(a)) })
	out, has := make([]int, len(tensors)), make([]int, n)
	for _, b := range order {
		least := 0
		for k := range has {
			if has[k] < has[least] {
				least = k
			}
		}
		for _, i := range b {
			out[i] = least
		}
		has[least] += elements(b)
	}
	return out
}

// eachOwned calls f with each tensor, or bundle, and the device that owns it: all devices work at the same time, each
// on its own as abreast has it. Once one has failed, no other of its device begins. The
// caller holds run.
func (d *Device) eachOwned(owner []int, op string, f func(k, i int) error) error {
	return d.deal(d.Count(), func(k, _ int) error {
		var own []int
		for i, of := range owner {
			if of == k {
				own = append(own, i)
			}
		}
		return d.abreast(op, len(own), func(at int) error { return f(k, own[at]) })
	})
}
