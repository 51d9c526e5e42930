package credit

import "fmt"

// Overlong is DAPO's soft punishment of long answers (arXiv 2503.14476, equation
// 13), to be added to the reward. For an answer of y tokens,
//
//	 0                              y ≤ limit − cache
//	((limit − cache) − y) / cache   in between
//	−1                              y > limit
//
// so that what is cut off at the limit does not come as a surprise. length: y, the
// sampled tokens of a turn (added to the turn's reward) or of a trajectory. limit:
// the most there may be; cache: the stretch below it where the punishment grows, in
// tokens, 0 < cache ≤ limit (paper: 20480 and 4096). The size is DAPO's, for
// rewards of ±1: scale it where rewards are of another size. Errors are of kind
// ErrInput.
func Overlong(length, limit, cache int) (float64, error) {
	if length < 0 || cache <= 0 || cache > limit {
		return 0, fmt.Errorf("%w: overlong shaping of length %d with limit %d and cache %d", ErrInput, length, limit, cache)
	}
	switch expected := limit - cache; {
	case length <= expected:
		return 0, nil
	case length > limit:
		return -1, nil
	default:
		return float64(expected-length) / float64(cache), nil
	}
}
