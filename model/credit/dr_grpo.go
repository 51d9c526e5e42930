package credit

// DrGRPO gives each row the distance of its return from its group's mean (Dr.
// GRPO, arXiv 2503.20783):
//
//	A_i = R_i − mean(R_group)
//
// Without the division by the deviation, questions that are nearly always or
// nearly never solved weigh no more than others (the paper's difficulty bias). The
// other half of the method, no division by a response's own length, belongs to the
// loss: aggregation "constant", whose divisor is the most tokens a trajectory can
// have, turns × new tokens a turn.
//
// rewards, groups and the result are as in GRPO; a group of one keeps its reward.
// Errors are of kind ErrRewards.
func DrGRPO(rewards []float64, groups []int) ([]float64, error) {
	return GRPO(rewards, groups, GRPOOptions{})
}
