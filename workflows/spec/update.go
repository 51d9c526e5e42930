package spec

import "math"

// clipRules are the fields of a turn's bounds.
var clipRules = []*rule{
	{path: "low", typ: typeNumber, required: true, span: span{low: 0, high: 1, openLow: true, openHigh: true}, source: fromOurs, doc: "The ratio is clipped at 1 − low."},
	{path: "high", typ: typeNumber, required: true, span: span{low: 0, high: 10, openLow: true}, source: fromOurs, doc: "The ratio is clipped at 1 + high."},
}

// Values of Update.Recompute.
const (
	RecomputeAuto   = "auto"
	RecomputeAlways = "always"
	RecomputeNever  = "never"
)

// Sized reports whether it is decided if layers are computed again. Decode leaves that to
// [Train.WithSizes] unless a person has written it.
func (u Update) Sized() bool { return u.Recompute != "" && u.Recompute != RecomputeAuto }

// Keeps reports whether the activations of a forward pass are kept for the backward pass. Where
// it is not decided they are not, as in runs from before the field.
func (u Update) Keeps() bool { return u.Recompute == RecomputeNever }

// Rate is the learning rate of an iteration, counted from 0, of a run of so many.
func (u Update) Rate(iteration, iterations int) float64 {
	if iteration < u.WarmupIterations {
		return u.LearningRate * float64(iteration+1) / float64(u.WarmupIterations)
	}
	left := max(iterations-u.WarmupIterations, 1)
	done := min(float64(iteration-u.WarmupIterations)/float64(left), 1)
	switch u.Decay {
	case "linear":
		return u.LearningRate * (1 - done)
	case "cosine":
		return u.LearningRate * (1 + math.Cos(math.Pi*done)) / 2
	}
	return u.LearningRate
}

// Clip gives the bounds of a turn, counted from 1.
func (u Update) Clip(turn int) Clip {
	if n := len(u.ClipTurns); n > 0 {
		return u.ClipTurns[min(max(turn, 1), n)-1]
	}
	return Clip{Low: u.ClipLow, High: u.ClipHigh}
}

// KL is the weight of the distance from the reference in a turn, counted from 1.
func (u Update) KL(turn int) float64 {
	if turn == 1 && u.KLFirstTurn > 0 {
		return u.KLFirstTurn
	}
	return u.KLCoefficient
}
