package credit

import (
	"fmt"
	"slices"
)

var drMAS = Algorithm{
	Name: "dr_mas", By: "each role's turns in the group (Dr. MAS)",
	Formula: "A_k = (R − mean(R of its role's turns in G)) / (std + ε)", Paper: "Dr. MAS, arXiv 2602.08847", File: "dr_mas.go",
	Compares: true, ByRole: true, Reads: []string{"normalize_by_std", "epsilon", "floor"},
	Compute: func(in Input, o Options) ([][]float64, [][]float64, error) {
		return in.byTurn(DrMAS(in.ReturnsOfTurns(), in.Agents, in.Groups, o))
	},
}

// ReturnsOfTurns gives every turn its trajectory's return: [rows][turns].
func (in Input) ReturnsOfTurns() [][]float64 {
	out := make([][]float64, len(in.Rewards))
	for row, turns := range in.Rewards {
		out[row] = slices.Repeat([]float64{in.Returns[row]}, len(turns))
	}
	return out
}

// DrMAS normalises the turns of each agent of a team apart (arXiv 2602.08847; the
// authors' compute_grpo_outcome_advantage with group_by_agent_id):
//
//	A_k = (R_k − mean(R of the agent's turns in the group)) / (max(std, floor) + ε)
//
// With the group's mean and deviation for all, the second moment of an agent's gradient is
// scaled by its Amplification, and an agent whose turns differ from the others' is
// the one whose gradient spikes.
//
// returns: [rows][turns], what each turn is credited with: the team's return of the trajectory.
// groups: [rows]. agents: [rows][turns], who sampled the turn. The statistics are over turns: an
// agent that speaks more often in one trajectory weighs it more. A turn alone among its
// group's and agent's keeps its return (over 1+ε), as in GRPO. The result, [rows][turns], applies
// to every sampled token of the turn (OverTurns). With one agent that speaks once a row it is
// GRPO.
//
// The authors' code without the method averages the turns of a trajectory and compares
// trajectories: to switch it on and off there changes two things at once.
//
// Errors are of kind ErrRewards or ErrInput.
func DrMAS(returns [][]float64, agents [][]string, groups []int, o Options) ([][]float64, error) {
	if err := o.checkScaling(); err != nil {
		return nil, err
	}
	flat, members, _, err := byAgent(returns, agents, groups)
	if err != nil {
		return nil, err
	}
	for _, turns := range members {
		if len(turns) == 1 {
			own := flat[turns[0] : turns[0]+1]
			o.scaleBy(own, 0, 1)
		} else {
			o.scaleAt(flat, turns)
		}
	}
	return rowsLike(returns, flat), nil
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
	flat, members, keys, err := byAgent(returns, agents, groups)
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

// agentKey is an agent in a group.
type agentKey struct {
	group int
	agent string
}

// byAgent returns the returns of all turns, row after row, the turns of each agent of each
// group, and who that is.
func byAgent(returns [][]float64, agents [][]string, groups []int) (flat []float64, members [][]int, keys []agentKey, err error) {
	if err := checkTurns(returns); err != nil {
		return nil, nil, nil, err
	}
	if len(groups) != len(returns) || len(agents) != len(returns) {
		return nil, nil, nil, fmt.Errorf("%w: returns of %d rows, %d group indexes, agents of %d rows", ErrInput, len(returns), len(groups), len(agents))
	}
	var all []agentKey
	for row, turns := range returns {
		if len(agents[row]) != len(turns) {
			return nil, nil, nil, fmt.Errorf("%w: row %d has %d returns and %d agents", ErrInput, row, len(turns), len(agents[row]))
		}
		for _, agent := range agents[row] {
			all = append(all, agentKey{groups[row], agent})
		}
		flat = append(flat, turns...)
	}
	members = rowsOf(all)
	for _, turns := range members {
		keys = append(keys, all[turns[0]])
	}
	return flat, members, keys, nil
}
