package credit

// LeaveOneOut computes each row's advantage as its return minus the mean return of the
// other rows of its group (RLOO, arXiv 2402.14740; LOOP, arXiv 2502.01600):
//
//	A_i = R_i − 1/(K−1) Σ_{j≠i} R_j = K/(K−1) · (R_i − mean(R_group))
//
// The baseline does not contain the row's own return, so the gradient is unbiased. There
// is no division by a standard deviation. The function computes the second form, so that
// equal returns give exactly 0.
//
// rewards, groups and the result are as in GRPO. A group of one has no other rows, and
// its advantage is the reward, as in verl; validation rejects such groups. LOOP's other
// choices are groups of 6, small advantages left out (WorthAStep) and an early stop on KL.
//
// Errors are of kind ErrRewards.
func LeaveOneOut(rewards []float64, groups []int) ([]float64, error) {
	if err := Check(rewards, "group indexes", len(groups)); err != nil {
		return nil, err
	}
	advantages := Options{}.ScaleGroups(rewards, groups)
	for _, rows := range RowsOf(groups) {
		if len(rows) == 1 {
			continue
		}
		k := float64(len(rows))
		for _, row := range rows {
			advantages[row] *= k / (k - 1)
		}
	}
	return advantages, nil
}
