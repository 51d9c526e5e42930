package statebaseline

import (
	"github.com/reprise-rl/reprise/model/credit"
)

// Entry is the method in the table.
var Entry = credit.Algorithm{
	Name: "state_baseline", By: "what the initial state has returned before (state_baseline)",
	Formula: "A = R − V(s₀), V the fading mean of what s₀ has returned before",
	Paper:   "REINFORCE with a baseline (Sutton and Barto, 13.4)", File: "statebaseline/state_values.go",
	ObservesStates: true, Reads: []string{"baseline_rate"},
	Compute: func(in credit.Input, _ credit.Options) ([][]float64, [][]float64, error) {
		return in.ByRow(StateBaseline(in.Past, in.Returns, in.Starts))
	},
}

// StateBaseline computes each row's advantage as its return minus the value of its initial
// state, a critic with one number per state:
//
//	A_i = R_i − V(s₀)
//
// V is the state's value in past (Observe of earlier iterations only). For a state that is
// not in past, V is the mean of the other rows of this batch that began in it, as in
// LeaveOneOut; if there are none, the mean of all other rows; and if the batch has no
// other rows, 0. No baseline contains the row's own return, so the
// gradient is unbiased, and groups of one are allowed. The method is meant for training
// instances that come from a pool and are used repeatedly.
//
// It is REINFORCE with a tabular baseline (Williams 1992; Sutton and Barto, second
// edition, section 13.4), not from RAGEN. rewards and keys: [rows]; past is sorted
// by key. The result, [rows], applies to every sampled token of the row. Errors are of
// kind ErrRewards or ErrInput.
func StateBaseline(past []credit.StateValue, rewards []float64, keys []string) ([]float64, error) {
	if err := credit.CheckStates(past, rewards, keys); err != nil {
		return nil, err
	}
	out, everyRow := make([]float64, len(rewards)), make([]int, len(rewards))
	for row := range everyRow {
		everyRow[row] = row
	}
	for _, rows := range credit.RowsOf(keys) {
		at, known := credit.FindState(past, keys[rows[0]])
		for _, row := range rows {
			switch {
			case known:
				out[row] = rewards[row] - past[at].Value
			case len(rows) > 1:
				out[row] = rewards[row] - meanOfOthers(rewards, rows, row)
			case len(rewards) > 1:
				out[row] = rewards[row] - meanOfOthers(rewards, everyRow, row)
			default:
				out[row] = rewards[row]
			}
		}
	}
	return out, nil
}

// meanOfOthers is the mean reward of rows except one of them.
func meanOfOthers(rewards []float64, rows []int, without int) float64 {
	var sum float64
	for _, row := range rows {
		if row != without {
			sum += rewards[row]
		}
	}
	return sum / float64(len(rows)-1)
}
