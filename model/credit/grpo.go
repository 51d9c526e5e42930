package credit

// GRPO computes the advantage of each row's trajectory within its group
// (arXiv 2402.03300, outcome supervision; verl's compute_grpo_outcome_advantage):
//
//	A_i = (R_i − mean(R_group)) / (max(std(R_group), floor) + ε)
//
// rewards: [rows], the return of each trajectory, penalties included. groups:
// [rows], the group of each; a group's rows need not be adjacent. The result,
// [rows], applies to every sampled token of the row (OverRows).
//
// As in verl, the standard deviation is the sample's (n−1), and a group of one row has
// mean 0 and standard deviation 1, so that its advantage is its reward (over 1+ε).
// Differences from verl: the floor, 0 by default; a group of equal rewards gets exactly
// 0, without a rounding error of the mean divided by ε; and sums are in float64 in row
// order.
//
// Errors are of kind ErrRewards, or ErrInput for a negative option.
func GRPO(rewards []float64, groups []int, o Options) ([]float64, error) {
	if err := Check(rewards, "group indexes", len(groups)); err != nil {
		return nil, err
	}
	if err := o.CheckScaling(); err != nil {
		return nil, err
	}
	return o.ScaleGroups(rewards, groups), nil
}
