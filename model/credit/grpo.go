package credit

// GRPOOptions are GRPO's knobs.
type GRPOOptions struct {
	// NormalizeByStd divides by the group's standard deviation. Without it the
	// mean alone is subtracted, which is DrGRPO.
	NormalizeByStd bool
	// Epsilon is added to the deviation (verl: 1e-6).
	Epsilon float64
	// Floor is the least deviation that is divided by, in units of the reward; 0
	// is none, as in the paper. Without one the size of a difference does not
	// count, only how rare it is: of 16 members of whom one got another reward,
	// that one has |A| = 15/√16 = 3.75 however small the gap, a penalty of 0.1 or
	// a payout that differs by chance. A group whose deviation is above the floor
	// is not touched by it.
	Floor float64
}

// GRPO gives each row the advantage of its trajectory within its group
// (arXiv 2402.03300, outcome supervision; verl's compute_grpo_outcome_advantage):
//
//	A_i = (R_i − mean(R_group)) / (max(std(R_group), floor) + ε)
//
// rewards: [rows], the return of each trajectory, penalties included. groups:
// [rows], the group of each; a group's rows need not be neighbours. The result,
// [rows], holds for every sampled token of the row (OverRows).
//
// As in verl the deviation is that of a sample (n−1), and a group of one row has
// mean 0 and deviation 1, so that its advantage is its reward (over 1+ε). What
// differs: the floor, 0 by default; a group of equal rewards gets exactly 0, where
// rounding of the mean over ε could leave a trace; and sums are in float64 in row
// order.
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
