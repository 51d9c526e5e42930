package istar

import (
	"fmt"
	"math"

	"github.com/reprise-rl/reprise/model/credit"
	"github.com/reprise-rl/reprise/model/option"

	"github.com/reprise-rl/reprise/model/loss"
)

// The options of process reward models.
var (
	// beta is the reward for each nat by which the model prefers a token.
	beta = option.Option{
		Section: option.Credit, Name: "beta", Default: 0.05, High: 100, Above: true, Source: "iStar (arXiv 2509.19199)",
		Doc: "The reward for each nat by which the process reward model prefers a token to the policy that sampled it (%s).",
	}
	codeForm = credit.CodeForm("In istar: step rewards over the batch's largest, compared with the first turns alone, and a trajectory's score as the mean over its turns.")
)

// Entry is the method in the table.
var Entry = credit.Algorithm{
	Name: "istar", By: "the other members' mean, and each turn by what a process reward model prefers (iStar)",
	Formula: "A_k = R − mean of the others + α·z(r_k among the turns of G), r_k = β Σ (log π_φ − log π_old)", Paper: "iStar, arXiv 2509.19199", File: "istar/istar.go",
	Compares: true, Preferences: Prefer, Reads: []string{"normalize_by_std", "epsilon", "floor", "step_weight"}, StepWeight: "iStar's α", Own: []option.Option{beta, codeForm},
	Compute: func(in credit.Input, o credit.Options) ([][]float64, [][]float64, error) {
		p, err := Prefer(in, o)
		if err != nil {
			return nil, nil, err
		}
		turns, err := IStar(in.Returns, p.Rewards, in.Groups, o.StepWeight, o)
		if codeForm.On(o.Own) {
			turns, err = IStarCode(in.Returns, overLargest(p.Rewards), in.Groups, o.StepWeight)
		}
		advantages, _, err := in.ByTurn(turns, err)
		return advantages, p.Weights, err
	},
}

// Prefer compares the trajectories of each group by a process reward model (iStar, arXiv
// 2509.19199). With q the sum of a trajectory's step rewards, the loss over the pairs of a success
// and a failure of one group is
//
//	−log σ(q_success − q_failure), as a mean over the pairs
//
// It reads Returns' rows by Groups and Successes, Turns, PRM and Old. With CodeForm q is the mean of
// the step rewards, as in the authors' code. Errors are of kind ErrNotFinite or ErrInput.
//
// The model makes one step over all rows of an iteration, so that the log-probs of the loss are exactly those of
// Score; the authors' code makes several, of batches of 64. A step reward is that before the step, as in their code.
func Prefer(in credit.Input, o credit.Options) (credit.Preferences, error) {
	if len(in.PRM) != len(in.Turns) || len(in.Old) != len(in.Turns) || len(in.Successes) != len(in.Turns) || len(in.Groups) != len(in.Turns) {
		return credit.Preferences{}, fmt.Errorf("%w: turns of %d rows, groups of %d, successes of %d, log-probs of %d by the reward model and of %d by the policy",
			credit.ErrInput, len(in.Turns), len(in.Groups), len(in.Successes), len(in.PRM), len(in.Old))
	}
	var out credit.Preferences
	var err error
	if out.Rewards, err = StepRewards(byTurns(in.PRM, in.Turns), byTurns(in.Old, in.Turns), beta.Number(o.Own)); err != nil {
		return credit.Preferences{}, err
	}
	scores := make([]float64, len(out.Rewards))
	for row, turns := range out.Rewards {
		for _, r := range turns {
			scores[row] += r
		}
		if codeForm.On(o.Own) && len(turns) > 0 {
			scores[row] /= float64(len(turns))
		}
	}
	for _, rows := range credit.RowsOf(in.Groups) {
		won := make([]bool, len(rows))
		for i, row := range rows {
			won[i] = in.Successes[row]
		}
		for _, p := range loss.Pairs(won) {
			out.Pairs = append(out.Pairs, [2]int{rows[p[0]], rows[p[1]]})
		}
	}
	if out.Loss, err = loss.Preference(scores, out.Pairs); err != nil {
		return credit.Preferences{}, fmt.Errorf("%w: %w", credit.ErrInput, err)
	}
	for _, p := range out.Pairs {
		if scores[p[0]] > scores[p[1]] {
			out.Right += 1 / float64(len(out.Pairs))
		}
	}
	for row, g := range loss.PreferenceGradient(scores, out.Pairs) {
		weights := make([]float64, in.Lengths[row])
		w := -float64(g * beta.Number(o.Own))
		if codeForm.On(o.Own) && len(in.Turns[row]) > 0 {
			w /= float64(len(in.Turns[row]))
		}
		for _, s := range in.Turns[row] {
			for t := s.From; t < s.To; t++ {
				weights[t] = w
			}
		}
		out.Weights = append(out.Weights, weights)
	}
	return out, nil
}

// byTurns cuts the tokens of rows into turns, [rows][turns][tokens].
func byTurns(tokens [][]float64, turns [][]credit.Span) [][][]float64 {
	out := make([][][]float64, len(tokens))
	for row, of := range tokens {
		for _, s := range turns[row] {
			out[row] = append(out[row], of[s.From:s.To])
		}
	}
	return out
}

// overLargest divides rewards by the largest |r| of the batch, as the authors' code does; rewards
// that are all 0 stay.
func overLargest(rewards [][]float64) [][]float64 {
	largest := 0.0
	for _, turns := range rewards {
		for _, r := range turns {
			largest = max(largest, math.Abs(r))
		}
	}
	if largest == 0 {
		return rewards
	}
	out := make([][]float64, len(rewards))
	for row, turns := range rewards {
		for _, r := range turns {
			out[row] = append(out[row], r/largest)
		}
	}
	return out
}

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
	if !credit.Finite(beta) || len(model) != len(old) {
		return nil, fmt.Errorf("%w: beta %v, log-probs of %d rows by the reward model and of %d by the policy", credit.ErrInput, beta, len(model), len(old))
	}
	out := make([][]float64, len(model))
	for row, turns := range model {
		if len(turns) != len(old[row]) {
			return nil, fmt.Errorf("%w: row %d has %d turns by the reward model and %d by the policy", credit.ErrInput, row, len(turns), len(old[row]))
		}
		out[row] = make([]float64, len(turns))
		for k, tokens := range turns {
			if len(tokens) != len(old[row][k]) {
				return nil, fmt.Errorf("%w: row %d, turn %d has %d log-probs by the reward model and %d by the policy", credit.ErrInput, row, k, len(tokens), len(old[row][k]))
			}
			var sum float64
			for t, p := range tokens {
				sum += p - old[row][k][t]
			}
			if out[row][k] = float64(beta * sum); !credit.Finite(out[row][k]) {
				return nil, fmt.Errorf("%w: the reward of row %d, turn %d is %v", credit.ErrNotFinite, row, k, out[row][k])
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
func IStar(returns []float64, rewards [][]float64, groups []int, alpha float64, o credit.Options) ([][]float64, error) {
	return istar(returns, rewards, groups, alpha, func(flat []float64, turns [][]int) {
		var places []int
		for _, of := range turns {
			places = append(places, of...)
		}
		o.ScaleAt(flat, places)
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
		mean, _ := credit.MeanStd(first)
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
func istar(returns []float64, rewards [][]float64, groups []int, alpha float64,
	compare func(flat []float64, turns [][]int)) ([][]float64, error) {
	if !credit.Finite(alpha) || len(rewards) != len(returns) {
		return nil, fmt.Errorf("%w: alpha %v, %d returns, step rewards of %d rows", credit.ErrInput, alpha, len(returns), len(rewards))
	}
	if err := credit.CheckTurns(rewards); err != nil {
		return nil, err
	}
	episode, err := credit.LeaveOneOut(returns, groups)
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
	for _, rows := range credit.RowsOf(groups) {
		turns := make([][]int, len(rows))
		for i, row := range rows {
			turns[i] = places[row]
		}
		compare(flat, turns)
	}
	out := credit.RowsLike(rewards, flat)
	for row, turns := range out {
		for k, step := range turns {
			turns[k] = episode[row] + float64(alpha*step)
		}
	}
	return out, nil
}
