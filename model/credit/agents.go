package credit

import (
	"fmt"
	"slices"
)

// ReturnsOfTurns gives every turn its trajectory's return: [rows][turns].
func (in Input) ReturnsOfTurns() [][]float64 {
	out := make([][]float64, len(in.Rewards))
	for row, turns := range in.Rewards {
		out[row] = slices.Repeat([]float64{in.Returns[row]}, len(turns))
	}
	return out
}

// AgentAmplification is how much larger the second moment of an agent's gradient is in a
// group if the group's statistics normalise all agents, instead of its own.
type AgentAmplification struct {
	Group int
	Agent string
	// Factor is (σ_a² + (μ_a − μ)²) / σ², with population deviations over turns (the paper's
	// lemma); 1 if the agents' returns are distributed alike.
	Factor float64
}

// Amplifications returns the factor of each agent of each group, in the order of their first
// turns. Groups whose returns are all equal have none. The arguments and errors are DrMAS's.
func Amplifications(returns [][]float64, agents [][]string, groups []int) ([]AgentAmplification, error) {
	flat, members, keys, err := ByAgent(returns, agents, groups)
	if err != nil {
		return nil, err
	}
	whole := map[int][]float64{}
	at := 0
	for row, turns := range returns {
		whole[groups[row]] = append(whole[groups[row]], flat[at:at+len(turns)]...)
		at += len(turns)
	}
	var out []AgentAmplification
	for i, turns := range members {
		mean, variance := populationMoments(whole[keys[i].group])
		if variance == 0 {
			continue
		}
		own := make([]float64, len(turns))
		for n, t := range turns {
			own[n] = flat[t]
		}
		ownMean, ownVariance := populationMoments(own)
		off := ownMean - mean
		out = append(out, AgentAmplification{keys[i].group, keys[i].agent, (ownVariance + float64(off*off)) / variance})
	}
	return out, nil
}

// populationMoments are the mean and the variance (n); exactly 0 for equal values.
func populationMoments(values []float64) (mean, variance float64) {
	mean, std := MeanStd(values)
	n := float64(len(values))
	return mean, float64(std*std) * (n - 1) / n
}

// AgentKey is an agent in a group.
type AgentKey struct {
	group int
	agent string
}

// ByAgent returns the returns of all turns, row after row, the turns of each agent of each
// group, and who that is.
func ByAgent(returns [][]float64, agents [][]string, groups []int) (flat []float64, members [][]int, keys []AgentKey, err error) {
	if err := CheckTurns(returns); err != nil {
		return nil, nil, nil, err
	}
	if len(groups) != len(returns) || len(agents) != len(returns) {
		return nil, nil, nil, fmt.Errorf("%w: returns of %d rows, %d group indexes, agents of %d rows", ErrInput, len(returns), len(groups), len(agents))
	}
	var all []AgentKey
	for row, turns := range returns {
		if len(agents[row]) != len(turns) {
			return nil, nil, nil, fmt.Errorf("%w: row %d has %d returns and %d agents", ErrInput, row, len(turns), len(agents[row]))
		}
		for _, agent := range agents[row] {
			all = append(all, AgentKey{groups[row], agent})
		}
		flat = append(flat, turns...)
	}
	members = RowsOf(all)
	for _, turns := range members {
		keys = append(keys, all[turns[0]])
	}
	return flat, members, keys, nil
}
