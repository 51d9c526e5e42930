package credit

import "fmt"

// Promise is what trajectories through an action at a state have achieved.
type Promise struct {
	// Key names the state and the action.
	Key string
	// Visits is how often the action was taken there. A trajectory counts each time.
	Visits int
	// Value is the mean of what followed, from 0 to 1.
	Value float64
}

// Promises estimates how likely each action at each state leads to success, by Monte Carlo
// (AgentPRM, arXiv 2502.10325):
//
//	Q(s, a) = mean over the visits of γ^{K−1−k}·R
//
// where k is the turn of the visit and K the trajectory's number of turns, so that a success
// counts less the more turns it is away. keys: [rows][turns], the state and the action of
// each turn: the task, the history and the action without the reasoning. outcomes: [rows], R
// from 0 to 1. Authors: γ 0.95. The results are in the order of the first visits. They are the
// targets of a process reward model (loss.SoftCrossEntropy).
//
// Errors are of kind ErrRewards or ErrInput.
func Promises(keys [][]string, outcomes []float64, gamma float64) ([]Promise, error) {
	return promises(keys, outcomes, gamma, func(outcome float64, k, turns int) float64 {
		return float64(power(gamma, turns-1-k) * outcome)
	})
}

// PromisesCode is Promises as the authors' code has it (sanjibanc/agent_prm,
// compute_prm_target.py):
//
//	Q(s, a) = (1 + mean over the visits of γ^k·(2R − 1)) / 2
//
// It discounts from the start, so that the first turns count in full and the last ones least, and
// moves late failures up towards ½. Arguments, results and errors are Promises'.
func PromisesCode(keys [][]string, outcomes []float64, gamma float64) ([]Promise, error) {
	out, err := promises(keys, outcomes, gamma, func(outcome float64, k, _ int) float64 {
		return float64(power(gamma, k) * (float64(2*outcome) - 1))
	})
	for i := range out {
		out[i].Value = (1 + out[i].Value) / 2
	}
	return out, err
}

// promises is the mean of a number of each visit, by key.
func promises(keys [][]string, outcomes []float64, gamma float64, of func(outcome float64, k, turns int) float64) ([]Promise, error) {
	if err := checkUnit("Gamma", gamma); err != nil {
		return nil, err
	}
	if err := check(outcomes, "rows of keys", len(keys)); err != nil {
		return nil, err
	}
	at := map[string]int{}
	var out []Promise
	for row, turns := range keys {
		if outcomes[row] < 0 || outcomes[row] > 1 {
			return nil, fmt.Errorf("%w: the outcome of row %d is %v, must be from 0 to 1", ErrRewards, row, outcomes[row])
		}
		for k, key := range turns {
			i, seen := at[key]
			if !seen {
				i = len(out)
				at[key] = i
				out = append(out, Promise{Key: key})
			}
			out[i].Visits++
			out[i].Value += of(outcomes[row], k, len(turns))
		}
	}
	for i := range out {
		out[i].Value /= float64(out[i].Visits)
	}
	return out, nil
}

// power is x to a whole number, by multiplication: math.Pow's last bits may differ between
// machines.
func power(x float64, n int) float64 {
	out := 1.0
	for range n {
		out = float64(out * x)
	}
	return out
}
