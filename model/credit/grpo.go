package credit

// GRPOOptions are the knobs of GRPO.
type GRPOOptions struct {
	// NormalizeByStd divides by the group's standard deviation. Without it only the
	// mean is subtracted, which is DrGRPO.
	NormalizeByStd bool
	// Epsilon is added to the deviation (verl: 1e-6).
	Epsilon float64
	// Floor is the smallest divisor, in units of the reward; 0 means no floor, as in the
	// paper. Without a floor the advantage depends on how rare a difference is and not
	// on its size: if one of 16 members has another reward, its |A| is 15/√16 = 3.75
	// even if the difference is a penalty of 0.1 or a random payout. The floor has no
	// effect on groups with a larger deviation.
	Floor float64
}

// GRPO computes the advantage of each row's trajectory within its group
// (arXiv 2402.03300, outcome supervision; verl's compute_grpo_outcome_advantage):
//
//	A_i = (R_i − mean(R_group)) / (max(std(R_group), floor) + ε)
//
// rewards: [rows], the return of each trajectory, penalties included. groups:
// [rows], the group of each; a group's rows need not be adjacent. The result,
// [rows], applies to every sampled token of the row (OverRows).
//
// As in verl the deviation is that of a sample (n−1), and a group of one row has
// mean 0 and deviation 1, so that its advantage is its reward (over 1+ε). Differences
// from verl: the floor, 0 by default; a group of equal rewards gets exactly 0, without a
// rounding error of the mean divided by ε; and sums are in float64 in row order.
//
// Errors are of kind ErrRewards, or ErrInput for a negative option.
func GRPO(rewards []float64, groups []int, o GRPOOptions) ([]float64, error) {
	if err := check(rewards, groups); err != nil {
		return nil, err
	}
	s := scaling{byStd: o.NormalizeByStd, epsilon: o.Epsilon, floor: o.Floor}
	if err := s.check(); err != nil {
		return nil, err
	}
	return s.groups(rewards, groups), nil
}
