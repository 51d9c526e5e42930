package loss

import (
	"fmt"
	"math"
	"slices"
)

// Unit names what a mismatch weight is a product over.
type Unit string

const (
	// NoWeight leaves every weight at 1.
	NoWeight Unit = "none"
	// TokenWeight is the token's own w: biased, of small variance.
	TokenWeight Unit = "token"
	// TurnWeight is the product of w over the tokens of a turn: between the two others. It
	// is ours.
	TurnWeight Unit = "turn"
	// SequenceWeight is the product of w over the tokens of a row: unbiased without a cap,
	// with a variance that is exponential in the tokens.
	SequenceWeight Unit = "sequence"
	// Geometric is the geometric mean of w over the tokens of a row; only for masks.
	Geometric Unit = "geometric"
)

// maxLogWeight bounds the logarithm of a weight on both sides, as in verl.
const maxLogWeight = 20

// Mismatch corrects for tokens that another policy sampled than the one that the loss
// compares with. With w = π_old/π_rollout of a token, a token's loss is multiplied by
//
//	min(W, Cap) · [Low ≤ M ≤ High] · [no w of the row < Veto]
//
// where W is the product of w over the token's Weight, and M over its Mask. A weight by token
// is truncated importance sampling; with the same bounds as a mask it is IcePop; a mask
// without weights is MIS (verl's rollout_corr_helper, TRL's vllm_importance_sampling; docs of
// both name the papers). The weights are not differentiated.
//
// A dropped token stays in the divisor of the mean, as in TRL, so that a batch with many of them makes a smaller
// step; verl takes it out of the mask, and so out of entropy and distance too. A row is a row of the update: where
// each turn is one (rollout.context_turns), W by row is W by turn. verl's rejection by k2 and k3, and KPop, are
// not here.
type Mismatch struct {
	// Weight is NoWeight, TokenWeight, TurnWeight or SequenceWeight.
	Weight Unit
	// Cap is the largest weight, above 0; a product is capped as a whole.
	Cap float64
	// Mask is TokenWeight, TurnWeight, SequenceWeight, Geometric, or empty for none.
	Mask Unit
	// Low and High are the bounds of the mask; High is at least Low, which is at least 0.
	Low, High float64
	// Veto is at least 0 and below 1; 0 drops nothing.
	Veto float64
	// Normalize divides the weights by their mean over all tokens.
	Normalize bool
}

// Weighed are the weights of a batch and how far it is from the policy.
type Weighed struct {
	// Weights are what the losses of the tokens are multiplied by, [rows][tokens]; 0 where
	// the mask or the veto drops a token, and where none was sampled.
	Weights [][]float64
	// EffectiveSamples is (Σw)² / (n Σw²) of the weights, those that are dropped included:
	// 1 if all are equal, 0 if all are dropped.
	EffectiveSamples float64
	// K3 is the mean of w − log w − 1 of the tokens, before any cap: an estimate of
	// KL(π_rollout‖π_old), never negative.
	K3 float64
	// Dropped is the share of the tokens that the mask or the veto drops.
	Dropped float64
	// Mean and Max are of the weights before they are normalized.
	Mean, Max float64
}

// Weigh computes the weights of a batch. old and rollout are log-probs, [rows][tokens];
// turns are the turns of the tokens, any numbers, and may be nil unless Weight or Mask is
// TurnWeight. Log-probs that are not finite give weights that are not. Errors are of kind
// ErrInput.
func (m Mismatch) Weigh(old, rollout [][]float64, turns [][]int, mask [][]bool) (Weighed, error) {
	if err := m.check(); err != nil {
		return Weighed{}, err
	}
	if err := CheckShape("old log-probs", old, mask); err != nil {
		return Weighed{}, err
	}
	if err := CheckShape("rollout log-probs", rollout, mask); err != nil {
		return Weighed{}, err
	}
	if turns == nil && (m.Weight == TurnWeight || m.Mask == TurnWeight) {
		return Weighed{}, fmt.Errorf("%w: weights by turn, but no turns", ErrInput)
	}
	out := Weighed{Weights: Zeros(mask)}
	var tokens, dropped, k3 float64
	for row, sampled := range mask {
		logs, of, err := rowLogs(old[row], rollout[row], turns, row, sampled)
		if err != nil {
			return Weighed{}, err
		}
		vetoed := slices.ContainsFunc(logs, func(l float64) bool { return l < math.Log(m.Veto) })
		weights, masked := products(m.Weight, logs, of), products(m.Mask, logs, of)
		n := 0 // sampled tokens before t
		for t, yes := range sampled {
			if !yes {
				continue
			}
			tokens++
			l := limited(logs[n])
			k3 += math.Exp(l) - l - 1
			// One that is not a number is kept: its weight is none either.
			if vetoed || m.Mask != "" && (masked[n] < m.Low || masked[n] > m.High) {
				dropped++
			} else if out.Weights[row][t] = 1; m.Weight != NoWeight {
				out.Weights[row][t] = min(weights[n], m.Cap)
			}
			n++
		}
	}
	if tokens == 0 {
		return out, nil
	}
	out.K3, out.Dropped = k3/tokens, dropped/tokens
	var sum, squares float64
	for _, row := range out.Weights {
		for _, w := range row {
			sum += w
			squares += float64(w * w)
			out.Max = math.Max(out.Max, w)
		}
	}
	out.Mean = sum / tokens
	if squares != 0 {
		out.EffectiveSamples = sum / tokens * (sum / squares)
	}
	if m.Normalize && sum != 0 {
		for _, row := range out.Weights {
			for t := range row {
				row[t] /= out.Mean
			}
		}
	}
	return out, nil
}

// rowLogs are the logarithms of the w of a row's sampled tokens, and the tokens' turns.
func rowLogs(old, rollout []float64, turns [][]int, row int, sampled []bool) (logs []float64, of []int, err error) {
	if turns != nil && (row >= len(turns) || len(turns[row]) != len(sampled)) {
		return nil, nil, fmt.Errorf("%w: the turns of row %d do not fit its %d tokens", ErrInput, row, len(sampled))
	}
	for t, yes := range sampled {
		if !yes {
			continue
		}
		logs = append(logs, old[t]-rollout[t])
		if turns != nil {
			of = append(of, turns[row][t])
		}
	}
	return logs, of, nil
}

// products are the w of the tokens of a row over a unit, from their logarithms; of are the
// tokens' turns.
func products(u Unit, logs []float64, of []int) []float64 {
	out := make([]float64, len(logs))
	var sum float64
	turns := map[int]float64{}
	for t, l := range logs {
		sum += l
		if u == TurnWeight {
			turns[of[t]] += l
		}
	}
	if u == Geometric {
		sum /= float64(len(logs))
	}
	for t, l := range logs {
		switch u {
		case TokenWeight:
			out[t] = math.Exp(limited(l))
		case TurnWeight:
			out[t] = math.Exp(limited(turns[of[t]]))
		default:
			out[t] = math.Exp(limited(sum))
		}
	}
	return out
}

// limited is x between −maxLogWeight and maxLogWeight, or NaN.
func limited(x float64) float64 { return math.Min(math.Max(x, -maxLogWeight), maxLogWeight) }

func (m Mismatch) check() error {
	switch m.Weight {
	case TokenWeight, TurnWeight, SequenceWeight:
		if !(m.Cap > 0) {
			return fmt.Errorf("%w: the cap of the weights is %v, must be above 0", ErrInput, m.Cap)
		}
	case NoWeight:
	default:
		return fmt.Errorf("%w: weights by %q", ErrInput, m.Weight)
	}
	switch m.Mask {
	case "":
	case TokenWeight, TurnWeight, SequenceWeight, Geometric:
		if !(m.Low >= 0 && m.High >= m.Low) {
			return fmt.Errorf("%w: a mask from %v to %v", ErrInput, m.Low, m.High)
		}
	default:
		return fmt.Errorf("%w: a mask by %q", ErrInput, m.Mask)
	}
	if !(m.Veto >= 0 && m.Veto < 1) {
		return fmt.Errorf("%w: the veto is %v, must be at least 0 and below 1", ErrInput, m.Veto)
	}
	return nil
}
