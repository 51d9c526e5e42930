package cost

import "slices"

// ownedBy is how many bytes of a model's float32 weights each of n devices owns. Whole matrices are
// dealt by Owners. Norms and biases, which even it out, count as equal parts.
func (f footprint) ownedBy(n int) []int64 {
	var matrices []int64
	if f.lora != nil {
		matrices = slices.Repeat(f.m.adapted(*f.lora), f.m.Layers)
	} else {
		matrices = append(f.m.tables(), slices.Repeat(f.m.layer(), f.m.Layers)...)
	}
	has, rest := make([]int64, n), f.trained
	for i, owner := range Owners(matrices, n) {
		has[owner] += float32Bytes * matrices[i]
		rest -= float32Bytes * matrices[i]
	}
	for k := range has {
		has[k] += rest / int64(n)
	}
	has[0] += rest % int64(n)
	return has
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
