package cost

import "slices"

// ownedBy is how many bytes of a model's float32 weights each of n devices owns. Whole matrices are
// dealt by Owners. Norms and biases, which even it out, count as equal parts.
func (f footprint) ownedBy(n int) []int64 {
	tensors := f.tensors()
	has, rest := make([]int64, n), f.trained
	for i, owner := range Owners(tensors, n) {
		has[owner] += tensors[i]
		rest -= tensors[i]
	}
	for k := range has {
		has[k] += rest / int64(n)
	}
	has[0] += rest % int64(n)
	return has
}

// tensors are the bytes of the matrices that are trained, in float32.
func (f footprint) tensors() (out []int64) {
	if f.lora != nil {
		for _, w := range f.m.adapted(*f.lora) {
			for range f.layers {
				out = append(out, float32Bytes*int64(f.lora.Rank)*w[0], float32Bytes*int64(f.lora.Rank)*w[1])
			}
		}
		return out
	}
	out = append(out, f.table())
	if !f.m.Tied {
		out = append(out, f.table())
	}
	for range f.layers {
		for _, n := range []int64{f.queries, f.keys, f.keys, f.queries, f.inner, f.inner, f.inner} {
			out = append(out, float32Bytes*f.hidden*n)
		}
	}
	return out
}

// owned is what the device owns: of the others, the most.
func (s seat) owned(f footprint) int64 {
	has := f.ownedBy(s.devices)
	if s.first() || s.devices == 1 {
		return has[0]
	}
	return slices.Max(has[1:])
}

// copiedAStep is the bytes that go from device to device in an optimizer step: gradients to the
// owners of their tensors, and weights from there to those that compute the next step. most is
// what the first device gets or sends, whichever is more.
func (f footprint) copiedAStep(update Dealt, n int) (all, most int64) {
	if n == 1 {
		return 0, 0
	}
	has, read := f.ownedBy(n), f.copied()
	weights := func(k int) int64 { return int64(float64(read) * float64(has[k]) / float64(max(f.trained, 1))) }
	for k := range update.Busy {
		shards := int64(partsOn(k, update.Parts, 0, n))
		all += shards*(f.trained-has[k]) + read - weights(k)
	}
	first, parts := int64(update.Rounds), int64(update.Parts)
	in := (parts-first)*has[0] + read - weights(0)
	out := first*(f.trained-has[0]) + int64(update.Busy-1)*weights(0)
	return all, max(in, out)
}
