package credit

import (
	"cmp"
	"fmt"
	"slices"
)

var stateBaseline = Algorithm{
	Name: "state_baseline", By: "what the initial state has returned before (state_baseline)",
	Formula: "A = R − V(s₀), V the fading mean of what s₀ has returned before",
	Paper:   "REINFORCE with a baseline (Sutton and Barto, 13.4)", File: "state_values.go",
	ObservesStates: true, Reads: []string{"baseline_rate"},
	Compute: func(in Input, _ Options) ([][]float64, [][]float64, error) {
		return in.byRow(StateBaseline(in.Past, in.Returns, in.Starts))
	},
}

// StateValue is the mean return so far of the trajectories that began in one state.
type StateValue struct {
	Key   string  // the initial state's StateKey
	Count int     // trajectories seen
	Value float64 // their weighted mean return
}

// Observe updates the values of initial states with trajectories, in row order:
//
//	n ← n + 1,  V ← V + max(1/n, rate)·(R − V)
//
// With rate 0 a value is the mean of all its returns. With a rate above 0 older returns
// lose weight as soon as 1/n is below the rate, so that the value follows an improving
// policy. past is sorted by key, and so is the result, a new slice. rewards and keys:
// [rows]. rate is in [0, 1].
//
// The values after an iteration are a pure function of the rewards recorded so far, in
// order. They can be stored with the iteration or computed again from earlier ones.
// Errors are of kind ErrRewards or ErrInput.
func Observe(past []StateValue, rewards []float64, keys []string, rate float64) ([]StateValue, error) {
	if err := checkUnit("rate", rate); err != nil {
		return nil, err
	}
	if err := checkStates(past, rewards, keys); err != nil {
		return nil, err
	}
	out := slices.Clone(past)
	for row, r := range rewards {
		at, ok := find(out, keys[row])
		if !ok {
			out = slices.Insert(out, at, StateValue{Key: keys[row]})
		}
		v := &out[at]
		v.Count++
		v.Value += float64(max(1/float64(v.Count), rate) * (r - v.Value))
	}
	return out, nil
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
func StateBaseline(past []StateValue, rewards []float64, keys []string) ([]float64, error) {
	if err := checkStates(past, rewards, keys); err != nil {
		return nil, err
	}
	out, everyRow := make([]float64, len(rewards)), make([]int, len(rewards))
	for row := range everyRow {
		everyRow[row] = row
	}
	for _, rows := range rowsOf(keys) {
		at, known := find(past, keys[rows[0]])
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

func find(states []StateValue, key string) (int, bool) {
	return slices.BinarySearchFunc(states, key, func(s StateValue, key string) int { return cmp.Compare(s.Key, key) })
}

func checkStates(past []StateValue, rewards []float64, keys []string) error {
	if err := check(rewards, "state keys", len(keys)); err != nil {
		return err
	}
	for i, s := range past {
		if i > 0 && past[i-1].Key >= s.Key {
			return fmt.Errorf("%w: state values are not sorted by key at %d", ErrInput, i)
		}
		if s.Count < 1 || !finite(s.Value) {
			return fmt.Errorf("%w: state value %d has value %v of %d trajectories", ErrInput, i, s.Value, s.Count)
		}
	}
	return nil
}
