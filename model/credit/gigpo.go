package credit

import "fmt"

// GiGPOOptions are GiGPO's knobs.
type GiGPOOptions struct {
	// Gamma discounts from turn to turn, in [0, 1] (paper: 0.95).
	Gamma float64
	// StepWeight is ω, the weight of the step advantage (paper: 1).
	StepWeight float64
	// NormalizeByStd divides both advantages by their group's deviation; without
	// it F = 1, which the paper finds better where deviations are tiny.
	NormalizeByStd bool
	// Epsilon is added to the deviations (verl-agent: 1e-6).
	Epsilon float64
	// Floor is the least deviation that is divided by; 0 is none (GRPOOptions).
	Floor float64
}

// GiGPO gives each turn an advantage from two comparisons: of the trajectory with
// its group, and of the turn with all turns of the group that began in the same
// state, its anchor group (group-in-group policy optimisation, arXiv 2505.10978;
// verl-agent's gigpo):
//
//	A^E_i = (R_i − mean(R_group)) / F
//	G_k   = r_k + γ·G_{k+1}
//	A^S_k = (G_k − mean(G_anchor)) / F, 0 where a turn is alone in its state
//	A_k   = A^E_i + ω·A^S_k
//
// where F is the sample deviation plus ε, or 1. There is no critic.
//
// rewards: [rows][turns], penalties included; R_i is their undiscounted sum.
// groups: [rows]. keys: [rows][turns], the StateKey of the environment when the
// turn began. Rows may have different numbers of turns, or none. The result,
// [rows][turns], holds for every sampled token of the turn (OverTurns).
//
// A state met twice in one trajectory counts twice, as in the paper. What differs:
// anchors are equal states, not equal observation texts, and never merely similar
// ones; the number of turns that are left is no part of a StateKey, so two turns
// of one anchor may have different budgets (with the paper's texts too, where they
// do not print it); the floor; and equal returns give exactly 0. A group of one
// row keeps its return as A^E, as in GRPO.
//
// Errors are of kind ErrRewards or ErrInput.
func GiGPO(rewards [][]float64, groups []int, keys [][]string, o GiGPOOptions) ([][]float64, error) {
	if err := checkUnit("Gamma", o.Gamma); err != nil {
		return nil, err
	}
	if !finite(o.StepWeight) {
		return nil, fmt.Errorf("%w: StepWeight is %v", ErrInput, o.StepWeight)
	}
	if err := checkTurns(rewards); err != nil {
		return nil, err
	}
	if len(keys) != len(rewards) {
		return nil, fmt.Errorf("%w: rewards of %d rows, state keys of %d", ErrInput, len(rewards), len(keys))
	}
	episodes, err := GRPO(Returns(rewards), groups, GRPOOptions{NormalizeByStd: o.NormalizeByStd, Epsilon: o.Epsilon, Floor: o.Floor})
	if err != nil {
		return nil, err
	}

	// All turns in one line: their anchors and their returns.
	type anchor struct {
		group int
		key   string
	}
	var anchors []anchor
	var returns []float64
	for row, turns := range rewards {
		if len(keys[row]) != len(turns) {
			return nil, fmt.Errorf("%w: row %d has %d rewards and %d state keys", ErrInput, row, len(turns), len(keys[row]))
		}
		first, sum := len(returns), 0.0
		returns = append(returns, turns...)
		for k := len(turns) - 1; k >= 0; k-- {
			sum = turns[k] + float64(o.Gamma*sum)
			returns[first+k] = sum
		}
		for _, key := range keys[row] {
			anchors = append(anchors, anchor{groups[row], key})
		}
	}
	s := scaling{byStd: o.NormalizeByStd, epsilon: o.Epsilon, floor: o.Floor}
	steps := make([]float64, len(returns))
	for _, members := range rowsOf(anchors) {
		values := make([]float64, len(members))
		for i, at := range members {
			values[i] = returns[at]
		}
		s.apply(values) // alone: its own mean, hence 0
		for i, at := range members {
			steps[at] = values[i]
		}
	}

	out := make([][]float64, len(rewards))
	for row, turns := range rewards {
		out[row] = make([]float64, len(turns))
		for k := range turns {
			out[row][k] = episodes[row] + float64(o.StepWeight*steps[k])
		}
		steps = steps[len(turns):]
	}
	return out, nil
}
