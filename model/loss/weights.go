package loss

import "fmt"

// Aggregation names how the losses of the tokens are combined into one number.
type Aggregation string

const (
	// TokenMean is the mean over all sampled tokens: long trajectories weigh more
	// (DAPO, arXiv 2503.14476, section 3.3; RAGEN's and verl's default, token-mean).
	TokenMean Aggregation = "token_mean"
	// SeqMeanTokenSum is the mean over rows of the sum over their tokens (verl:
	// seq-mean-token-sum; RAGEN v2 uses it for Dr. GRPO).
	SeqMeanTokenSum Aggregation = "seq_mean_token_sum"
	// SeqMeanTokenMean is the mean over rows of the mean over their tokens: every
	// trajectory weighs the same (StarPO's objective, arXiv 2504.20073; GRPO's, arXiv
	// 2402.03300, equation 3; verl: seq-mean-token-mean).
	SeqMeanTokenMean Aggregation = "seq_mean_token_mean"
	// Constant is SeqMeanTokenSum over a constant, the same for every batch (Dr.
	// GRPO, arXiv 2503.20783; verl: seq-mean-token-sum-norm). The divisor is the most
	// tokens a trajectory can have: turns × new tokens a turn.
	Constant Aggregation = "constant"
	// SumConstant is the sum over rows of the sums over their tokens, over a constant: the
	// earlier form of verl's seq-mean-token-sum-norm, whose constant is the width of the
	// responses. It is Constant times the number of rows. Today verl's is Constant.
	SumConstant Aggregation = "sum_constant"
	// TurnMean is the mean over rows of the sum over their turns of the mean over the turn's
	// tokens (blockwise advantages, arXiv 2602.10231). It has weights of its own, BlockWeights,
	// which read turns.
	TurnMean Aggregation = "turn_mean"
)

// Weights returns the weight of each token in the loss, [rows][tokens], so that the
// loss is Σ weight·token loss for every aggregation. Tokens that were not sampled have
// weight 0. mask is the mask of the whole minibatch, [rows][tokens]. rowWeights, [rows]
// and at least 0, multiply a row in the sums and in their divisors; nil means 1 for each
// row. Only Constant and SumConstant read divisor, which must be above 0. With ω_r a row's weight and
// n_r the number of its sampled tokens, a token's weight is
//
//	token_mean           ω_r / Σ ω·n
//	seq_mean_token_sum   ω_r / Σ ω
//	seq_mean_token_mean  ω_r / (n_r · Σ ω)
//	constant             ω_r / (divisor · Σ ω)
//	sum_constant         ω_r / divisor
//
// where rows without a sampled token do not count. If no row counts, all weights are 0.
// Errors are of kind ErrInput.
func Weights(mask [][]bool, rowWeights []float64, a Aggregation, divisor float64) ([][]float64, error) {
	switch a {
	case TokenMean, SeqMeanTokenSum, SeqMeanTokenMean:
		divisor = 1
	case Constant, SumConstant:
		if !(divisor > 0) || !finite(divisor) {
			return nil, fmt.Errorf("%w: the divisor is %v, must be above 0", ErrInput, divisor)
		}
	default:
		return nil, fmt.Errorf("%w: aggregation %q", ErrInput, a)
	}
	if rowWeights != nil && len(rowWeights) != len(mask) {
		return nil, fmt.Errorf("%w: %d row weights for %d rows", ErrInput, len(rowWeights), len(mask))
	}
	weight := func(row int) float64 {
		if rowWeights == nil {
			return 1
		}
		return rowWeights[row]
	}
	counts := make([]float64, len(mask))
	var rows, tokens float64
	for row, sampled := range mask {
		if err := CheckAtLeast(fmt.Sprintf("the weight of row %d", row), weight(row), 0); err != nil {
			return nil, err
		}
		for _, yes := range sampled {
			if yes {
				counts[row]++
			}
		}
		if counts[row] > 0 {
			rows += weight(row)
			tokens += float64(weight(row) * counts[row])
		}
	}
	out := Zeros(mask)
	for row, sampled := range mask {
		if counts[row] == 0 || weight(row) == 0 {
			continue
		}
		w := weight(row) / (rows * divisor)
		switch a {
		case TokenMean:
			w = weight(row) / tokens
		case SeqMeanTokenMean:
			w = weight(row) / (counts[row] * rows)
		case SumConstant:
			w = weight(row) / divisor
		}
		for t, yes := range sampled {
			if yes {
				out[row][t] = w
			}
		}
	}
	return out, nil
}
