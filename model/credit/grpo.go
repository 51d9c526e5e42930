package credit

// GRPOOptions are GRPO's knobs.
type GRPOOptions struct {
	// NormalizeByStd divides by the group's standard deviation. Without it the
	// mean alone is subtracted (Dr. GRPO, arXiv 2503.20783), which removes the
	// bias towards groups whose rewards hardly vary.
	NormalizeByStd bool
	// Epsilon is added to the deviation (verl: 1e-6).
	Epsilon float64
}

// GRPO gives each row the advantage of its trajectory within its group
// (arXiv 2402.03300, outcome supervision; verl's compute_grpo_outcome_advantage):
//
//	A_i = (R_i − mean(R_group)) / (std(R_group) + ε)
//
// rewards: [rows], the return of each trajectory, penalties included. groups:
// [rows], the group of each; a group's rows need not be neighbours. The result,
// [rows], holds for every sampled token of the row.
//
// As in verl the deviation is that of a sample (n−1), and a group of one row has
// mean 0 and deviation 1, so that its advantage is its reward (over 1+ε). What
// differs: a group of equal rewards gets exactly 0, where rounding of the mean
// over ε could leave a trace, and sums are in float64 in row order.
//
// Errors are of kind ErrRewards.
func GRPO(rewards []float64, groups []int, o GRPOOptions) ([]float64, error) {
	if err := check(rewards, groups); err != nil {
		return nil, err
	}
	advantages := make([]float64, len(rewards))
	for _, rows := range rowsOf(groups) {
		values := make([]float64, len(rows))
		for i, row := range rows {
			values[i] = rewards[row]
		}
		mean, std := MeanStd(values)
		if len(rows) == 1 {
			mean, std = 0, 1
		}
		for _, row := range rows {
			a := rewards[row] - mean
			if o.NormalizeByStd && a != 0 {
				a /= std + o.Epsilon
			}
			advantages[row] = a
		}
	}
	return advantages, nil
}
