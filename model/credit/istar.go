package credit

import "fmt"

// StepRewards gives each turn the reward that a model of preferences implies (iStar, arXiv
// 2509.19199):
//
//	r_k = β·Σ_{t in turn k} (log π_φ − log π_old)
//
// where π_φ is the reward model, a second network that begins as the policy, and π_old the
// policy that sampled. model and old: [rows][turns][tokens], log-probs of the sampled tokens. The
// result is [rows][turns]. Authors: β 0.05.
//
// Their code then divides by the largest |r| of the batch. Errors are of kind ErrNotFinite or
// ErrInput.
func StepRewards(model, old [][][]float64, beta float64) ([][]float64, error) {
	if !finite(beta) || len(model) != len(old) {
		return nil, fmt.Errorf("%w: beta %v, log-probs of %d rows by the reward model and of %d by the policy", ErrInput, beta, len(model), len(old))
	}
	out := make([][]float64, len(model))
	for row, turns := range model {
		if len(turns) != len(old[row]) {
			return nil, fmt.Errorf("%w: row %d has %d turns by the reward model and %d by the policy", ErrInput, row, len(turns), len(old[row]))
		}
		out[row] = make([]float64, len(turns))
		for k, tokens := range turns {
			if len(tokens) != len(old[row][k]) {
				return nil, fmt.Errorf("%w: row %d, turn %d has %d log-probs by the reward model and %d by the policy", ErrInput, row, k, len(tokens), len(old[row][k]))
			}
			var sum float64
			for t, p := range tokens {
				sum += p - old[row][k][t]
			}
			if out[row][k] = float64(beta * sum); !finite(out[row][k]) {
				return nil, fmt.Errorf("%w: the reward of row %d, turn %d is %v", ErrNotFinite, row, k, out[row][k])
			}
		}
	}
	return out, nil
}

// IStar adds a step advantage to each trajectory's (iStar, arXiv 2509.19199):
//
//	A_k = A^E(R) + α·z(r_k among all turns of the group)
//
// with A^E of LeaveOneOut, and z without its division unless NormalizeByStd is set. returns
// and groups: [rows]; rewards: [rows][turns], of StepRewards. The result, [rows][turns], applies
// to every sampled token of the turn (OverTurns). Authors: α 1. A group of one turn has 0.
//
// Errors are of kind ErrRewards or ErrInput.
func IStar(returns []float64, rewards [][]float64, groups []int, alpha float64, o Options) ([][]float64, error) {
	return istar(returns, rewards, groups, alpha, func(flat []float64, turns [][]int) {
		var places []int
		for _, of := range turns {
			places = append(places, of...)
		}
		o.scaleAt(flat, places)
	})
}

// IStarCode is IStar with the step advantage of the authors' code
// (Tongyi-ConvAI/Qwen-Character, CharacterRL-iStar), whose comment says what IStar does:
//
//	A^S_k = n/(n−1)·(r_k − mean of the n trajectories' first turns)
//
// as if each trajectory had one turn. Of a single trajectory, A^S_k = r_k, as in LeaveOneOut.
// Arguments, result and errors are IStar's.
func IStarCode(returns []float64, rewards [][]float64, groups []int, alpha float64) ([][]float64, error) {
	return istar(returns, rewards, groups, alpha, func(flat []float64, turns [][]int) {
		var first []float64
		for _, of := range turns {
			if len(of) > 0 {
				first = append(first, flat[of[0]])
			}
		}
		if len(first) < 2 {
			return
		}
		mean, _ := MeanStd(first)
		n := float64(len(first))
		for _, of := range turns {
			for _, at := range of {
				flat[at] = float64(n / (n - 1) * (flat[at] - mean))
			}
		}
	})
}

// istar adds α times step advantages to the trajectories'. compare turns the step rewards of a
// group, at turns[member][k] of flat, into step advantages.
func istar(returns []float64, rewards [][]float64, groups []int, alpha float64, compare func(flat []float64, turns [][]int)) ([][]float64, error) {
	if !finite(alpha) || len(rewards) != len(returns) {
		return nil, fmt.Errorf("%w: alpha %v, %d returns, step rewards of %d rows", ErrInput, alpha, len(returns), len(rewards))
	}
	if err := checkTurns(rewards); err != nil {
		return nil, err
	}
	episode, err := LeaveOneOut(returns, groups)
	if err != nil {
		return nil, err
	}
	var flat []float64
	places := make([][]int, len(rewards))
	for row, turns := range rewards {
		for _, r := range turns {
			places[row] = append(places[row], len(flat))
			flat = append(flat, r)
		}
	}
	for _, rows := range rowsOf(groups) {
		turns := make([][]int, len(rows))
		for i, row := range rows {
			turns[i] = places[row]
		}
		compare(flat, turns)
	}
	out := rowsLike(rewards, flat)
	for row, turns := range out {
		for k, step := range turns {
			turns[k] = episode[row] + float64(alpha*step)
		}
	}
	return out, nil
}
