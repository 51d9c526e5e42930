package search

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/reprise-rl/reprise/model/credit"
	"github.com/reprise-rl/reprise/model/selection"
)

// Rewards gives the rewards of the candidate turns after a prefix, [candidates]. A prefix is
// the candidate chosen at each of its turns. There are no candidates after a finished one.
type Rewards func(prefix []int) []float64

// Prefix is the beginning of a trajectory in a search.
type Prefix struct {
	// Path is the candidate chosen at each turn.
	Path []int
	// Score is the sum of the rewards of the turns.
	Score float64
}

// Widen is one turn of a beam search (TSR, arXiv 2602.11767): each prefix of the beam is
// continued by each of its candidates, and the width best of all are the next beam,
//
//	𝔅_{k+1} = the best of {τ∘a : τ ∈ 𝔅_k, a a candidate after τ} by Σ r
//
// rewards: [prefixes][candidates]; a prefix without candidates is finished and competes
// with its score as it is. Equal scores keep the order of prefixes, then that of candidates. The
// result is ordered from the best.
//
// The paper does not make clear whether the score is of the turn or of the whole prefix. Here it is
// the sum, because prefixes with unequal pasts compete. The authors' public "beam search" is
// another method: it keeps one trajectory and takes the best turn at each step, which is
// Lookahead with a depth of 1.
//
// Errors are of kind ErrInput.
func Widen(beam []Prefix, rewards [][]float64, width int) ([]Prefix, error) {
	if width < 1 {
		return nil, fmt.Errorf("%w: a beam of width %d, must be at least 1", ErrInput, width)
	}
	if len(rewards) != len(beam) {
		return nil, fmt.Errorf("%w: rewards after %d prefixes, a beam of %d", ErrInput, len(rewards), len(beam))
	}
	var all []Prefix
	for i, prefix := range beam {
		if len(rewards[i]) == 0 {
			all = append(all, prefix)
		}
		for candidate, r := range rewards[i] {
			if !finite(r) {
				return nil, fmt.Errorf("%w: the reward after prefix %v, candidate %d is %v", ErrInput, prefix.Path, candidate, r)
			}
			all = append(all, Prefix{Path: append(slices.Clip(prefix.Path), candidate), Score: prefix.Score + r})
		}
	}
	slices.SortStableFunc(all, func(a, b Prefix) int { return cmp.Compare(b.Score, a.Score) })
	return all[:min(width, len(all))], nil
}

// Beam searches at most the given number of turns with Widen and returns the beam after each
// turn. It stops early when every prefix is finished, so the result can be shorter. The
// first prefix of the last beam is the best. With one candidate a turn it is a plain rollout.
// Errors are of kind ErrInput.
func Beam(after Rewards, width, turns int) ([][]Prefix, error) {
	beam := []Prefix{{}}
	var trace [][]Prefix
	for range turns {
		rewards := make([][]float64, len(beam))
		live := false
		for i, prefix := range beam {
			rewards[i] = after(prefix.Path)
			live = live || len(rewards[i]) > 0
		}
		if !live {
			break
		}
		var err error
		if beam, err = Widen(beam, rewards, width); err != nil {
			return nil, err
		}
		trace = append(trace, beam)
	}
	return trace, nil
}

// Lookahead takes the candidate with the largest value at each turn (TSR, arXiv 2602.11767). A
// candidate's value is its reward and the best sum that can be reached in at most depth−1
// turns after it, and not beyond the last turn. It returns the trajectory and the values
// at each of its turns, [turns][candidates]. The first of equal values is taken.
//
// A depth of 1 is greedy: the best reward of the turn alone, the authors' public "beam search".
// Their public "lookahead" does not look ahead: it is Extremes.
//
// Errors are of kind ErrInput.
func Lookahead(after Rewards, depth, turns int) (Prefix, [][]float64, error) {
	if depth < 1 {
		return Prefix{}, nil, fmt.Errorf("%w: a lookahead of depth %d, must be at least 1", ErrInput, depth)
	}
	var taken Prefix
	var trace [][]float64
	for k := range turns {
		rewards := after(taken.Path)
		if len(rewards) == 0 {
			break
		}
		values := make([]float64, len(rewards))
		best := 0
		for candidate, r := range rewards {
			values[candidate] = r + reachable(after, append(slices.Clip(taken.Path), candidate), min(depth, turns-k)-1)
			if !finite(values[candidate]) {
				return Prefix{}, nil, fmt.Errorf("%w: the value after prefix %v, candidate %d is %v", ErrInput, taken.Path, candidate, values[candidate])
			}
			if values[candidate] > values[best] {
				best = candidate
			}
		}
		trace = append(trace, values)
		taken = Prefix{Path: append(slices.Clip(taken.Path), best), Score: taken.Score + rewards[best]}
	}
	return taken, trace, nil
}

// reachable is the largest sum of rewards in at most depth turns after a prefix; NaN if a
// reward is.
func reachable(after Rewards, prefix []int, depth int) float64 {
	if depth == 0 {
		return 0
	}
	rewards := after(prefix)
	if len(rewards) == 0 {
		return 0
	}
	best := math.Inf(-1)
	for candidate, r := range rewards {
		best = max(best, r+reachable(after, append(slices.Clip(prefix), candidate), depth-1))
	}
	return best
}

// BestOfN is the index of the largest return, the first if several are equal (TSR's best of N
// whole trajectories). Errors are of kind ErrInput.
func BestOfN(returns []float64) (int, error) {
	if len(returns) == 0 {
		return 0, fmt.Errorf("%w: the best of no returns", ErrInput)
	}
	best := 0
	for i, r := range returns {
		if !finite(r) {
			return 0, fmt.Errorf("%w: return %d is %v", ErrInput, i, r)
		}
		if r > returns[best] {
			best = i
		}
	}
	return best, nil
}

// Extremes keeps the ⌈share·n⌉ members of a group whose returns are farthest from their mean, of
// either sign (the public "lookahead" of aladinD/TSR_RAGEN). The result is ascending; equal
// distances rank by index.
//
// The public code also keeps one of the others by an unseeded draw, and ranks a group with a
// deviation below 1e-3 at random. Here nothing is random.
//
// Errors are of kind ErrInput.
func Extremes(returns []float64, share float64) ([]int, error) {
	if !(share >= 0 && share <= 1) {
		return nil, fmt.Errorf("%w: the share of members kept is %v, must be from 0 to 1", ErrInput, share)
	}
	mean, _ := credit.MeanStd(returns)
	distances := make([]float64, len(returns))
	for i, r := range returns {
		if !finite(r) {
			return nil, fmt.Errorf("%w: return %d is %v", ErrInput, i, r)
		}
		distances[i] = math.Abs(r - mean)
	}
	return selection.TopCount(distances, int(math.Ceil(share*float64(len(returns)))), selection.Largest), nil
}
