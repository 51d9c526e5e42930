package credit

import (
	"cmp"
	"fmt"
	"slices"
)

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
	if err := CheckUnit("rate", rate); err != nil {
		return nil, err
	}
	if err := CheckStates(past, rewards, keys); err != nil {
		return nil, err
	}
	out := slices.Clone(past)
	for row, r := range rewards {
		at, ok := FindState(out, keys[row])
		if !ok {
			out = slices.Insert(out, at, StateValue{Key: keys[row]})
		}
		v := &out[at]
		v.Count++
		v.Value += float64(max(1/float64(v.Count), rate) * (r - v.Value))
	}
	return out, nil
}

// FindState is the place of a key in values that are sorted by key, and whether it is there.
func FindState(states []StateValue, key string) (int, bool) {
	return slices.BinarySearchFunc(states, key, func(s StateValue, key string) int { return cmp.Compare(s.Key, key) })
}

// CheckStates returns an error of kind ErrRewards or ErrInput unless there is a key for each reward and
// the values are sorted by key, each of a trajectory at least.
func CheckStates(past []StateValue, rewards []float64, keys []string) error {
	if err := Check(rewards, "state keys", len(keys)); err != nil {
		return err
	}
	for i, s := range past {
		if i > 0 && past[i-1].Key >= s.Key {
			return fmt.Errorf("%w: state values are not sorted by key at %d", ErrInput, i)
		}
		if s.Count < 1 || !Finite(s.Value) {
			return fmt.Errorf("%w: state value %d has value %v of %d trajectories", ErrInput, i, s.Value, s.Count)
		}
	}
	return nil
}
