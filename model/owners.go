package model

import "github.com/reprise-rl/reprise/model/cost"

// owners deals tensors to n devices in bundles, and gives each tensor's device. A tensor's owner has its weights, its moments
// and the total of its gradient, makes AdamW's step and
// fingerprints the tensor. The other devices have its weights while they need them: see spread.
func owners(tensors []TensorShape, of []bundle, n int) []int {
	sizes := make([]int, len(of))
	for i, b := range of {
		sizes[i] = len(b) * tensors[b[0]].Elements()
	}
	out := make([]int, len(tensors))
	for i, owner := range cost.Owners(sizes, n) {
		for _, tensor := range of[i] {
			out[tensor] = owner
		}
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
