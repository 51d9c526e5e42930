package credit

import "fmt"

// Overlong is DAPO's soft penalty for long answers (arXiv 2503.14476, equation 13),
// which is added to the reward. For an answer of y tokens it is
//
//	 0                              y ≤ limit − cache
//	((limit − cache) − y) / cache   in between
//	−1                              y > limit
//
// so that the penalty grows gradually before answers are truncated at the limit. length is
// y, the sampled tokens of a turn (added to the turn's reward) or of a trajectory. limit is
// the maximum length, and cache the number of tokens below it over which the penalty
// grows, 0 < cache ≤ limit (paper: 20480 and 4096). The penalty's size is DAPO's, for
// rewards of ±1: scale it for rewards of another size. Errors are of kind ErrInput.
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
