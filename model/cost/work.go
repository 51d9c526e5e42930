package cost

// Work is what a part of an iteration asks of the device that has the most of it, at most: every
// episode has all turns, and every reply all its tokens.
type Work struct {
	Part string `json:"part"`
	// Operations are those of matrix products: a multiplication and an addition are two.
	Operations float64 `json:"operations"`
	// Bytes are read and written in the device's memory: the weights and caches of decoding, and what
	// AdamW needs. Those of products of many tokens are left out: their operations take longer.
	Bytes float64 `json:"bytes"`
	// Steps are those of decoding, one after the other: one token of each row of a pass.
	Steps float64 `json:"steps,omitempty"`
	// Copied is the bytes that come from other devices or go there, whichever are more: links work
	// both ways at once.
	Copied float64 `json:"copied_bytes,omitempty"`
	// Activities is the number of activities that the part is made in, one after the other; 0 where
	// those of another part make it too: those of decoding prefill, and an update's make the step and
	// the copies. A worker that is lost loses the running one; an update's pieces count as one.
	Activities int `json:"activities,omitempty"`
}

// The parts of an iteration that a device computes, in their order.
const (
	WorkPrefill = "prefill"
	WorkDecode  = "decode"
	WorkScore   = "score"
	WorkUpdate  = "update"
	WorkStep    = "optimizer step"
	WorkCopies  = "copies between devices"
)

// Work is the work of an iteration on n devices, without numbers of activities. The widths of rows are known.
//
// A weight of a matrix takes two operations a token, and attention 4 · width · heads · head width
// a token and layer: products with what the causal mask hides are made. An update takes three times
// the operations of a forward pass, four where layers are computed again; with adapters, whose frozen
// matrices have no gradient, two and three.
func (j Job) Work(n int) []Work {
	of, models, u := j.Devices(n), j.models(), j.Update
	prefill, decode := j.Rollout.work(models[0], of.Rollout)
	score, update := Work{Part: WorkScore}, Work{Part: WorkUpdate}
	step, copies := Work{Part: WorkStep}, Work{Part: WorkCopies}
	epochs := float64(u.Epochs)
	steps := epochs * float64(ceil(u.Batches, u.StepBatches))
	width, tokens := float64(u.Width), float64(u.Tokens())
	for _, model := range models {
		forward := model.operations(width, true) * tokens
		score.Operations += forward / of.Score.Gain
		update.Operations += epochs * forward * model.passes() / of.Update.Gain
		// The norm reads the gradient; AdamW reads it with weights and moments, and writes those; the
		// next step reads weights and writes copies. Once an iteration the fingerprint reads the state.
		// Each owner does so for its tensors.
		owned := float64(seat{0, n}.owned(model))
		copied := float64(model.copies()) * owned / float64(max(model.trained, 1))
		step.Bytes += steps*(owned+owned*7+3*copied) + 3*owned
		_, most := model.copiedAStep(of.Update, n)
		copies.Copied += steps * float64(most)
	}
	if j.Reference {
		score.Operations += models[0].operations(width, true) * tokens / of.Score.Gain
	}
	if teacher, there := j.teacher(); there {
		score.Operations += teacher.operations(width, true) * tokens / of.Score.Gain
	}
	if own, there := j.ownTeacher(); there {
		longer := float64(j.shownWidth())
		score.Operations += own.operations(longer, true) * tokens * longer / max(width, 1) / of.Score.Gain
	}
	return []Work{prefill, decode, score, update, step, copies}
}

// work is the work of prefills or appends, and of decoding.
func (r Rollout) work(f footprint, dealt Dealt) (prefill, decode Work) {
	prefill, decode = Work{Part: WorkPrefill}, Work{Part: WorkDecode}
	rows, fresh := float64(r.Rows*r.Waves), float64(r.Fresh)
	passes := float64(dealt.Rounds * r.Passes * r.Waves) // of the first device
	for turn, t := range r.Turns {
		prefilled := rows
		if turn == 0 {
			prefilled *= float64(r.FirstPrompts) / float64(r.Rows)
		}
		all := float64(t.Width) + fresh
		prefill.Operations += prefilled * float64(t.Read) * f.operations(float64(t.Width), false) / dealt.Gain
		decode.Operations += rows * fresh * f.operations(all, true) / dealt.Gain
		decode.Steps += passes * fresh
		decode.Bytes += passes * fresh * float64(f.weights+f.cache(int64(r.PassRows), int64(all)))
	}
	return prefill, decode
}

// operations are those of a token of a forward pass that attends to so many places, with the head
// or without.
func (f footprint) operations(places float64, head bool) float64 {
	weights := float64(f.layers * sum(f.m.layer()))
	if f.lora != nil {
		weights += float64(f.trained) / float32Bytes
	}
	if head && !f.value {
		weights += float64(f.vocabulary * f.hidden)
	}
	return 2*weights + 4*float64(f.layers*f.queries)*places
}

// passes is how many forward passes an update is worth.
func (f footprint) passes() float64 {
	n := TrainWork(f.keep)
	if f.lora != nil {
		n--
	}
	return n
}
