package credit

// DrGRPO computes each row's advantage as its return minus its group's mean (Dr. GRPO,
// arXiv 2503.20783):
//
//	A_i = R_i − mean(R_group)
//
// It does not divide by the standard deviation. So questions that are nearly always or
// nearly never solved do not weigh more than others (the paper's difficulty bias). The
// other half of the method, no division by a response's own length, belongs to the loss:
// aggregation "constant", whose divisor is the maximum number of tokens of a trajectory,
// turns × new tokens per turn.
//
// rewards, groups and the result are as in GRPO. The advantage in a group of one is the
// reward.
// Errors are of kind ErrRewards.
func DrGRPO(rewards []float64, groups []int) ([]float64, error) {
	return GRPO(rewards, groups, Options{})
}
