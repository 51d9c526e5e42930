package credit

var drGRPO = Algorithm{
	Name: "dr_grpo", By: "the group's mean (Dr. GRPO)",
	Formula: "A = R − mean_G", Paper: "Dr. GRPO, arXiv 2503.20783", File: "dr_grpo.go",
	Compares: true, DropsFlat: true,
	Compute: func(in Input, _ Options) ([][]float64, [][]float64, error) {
		return in.byRow(DrGRPO(in.Returns, in.Groups))
	},
}

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
