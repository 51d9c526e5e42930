package drmas

import (
	"github.com/reprise-rl/reprise/model/credit"
)

// Entry is the method in the table.
var Entry = credit.Algorithm{
	Name: "dr_mas", By: "each role's turns in the group (Dr. MAS)",
	Formula: "A_k = (R − mean(R of its role's turns in G)) / (std + ε)", Paper: "Dr. MAS, arXiv 2602.08847", File: "drmas/dr_mas.go",
	Compares: true, ByRole: true, Reads: []string{"normalize_by_std", "epsilon", "floor"},
	Compute: func(in credit.Input, o credit.Options) ([][]float64, [][]float64, error) {
		return in.ByTurn(DrMAS(in.ReturnsOfTurns(), in.Agents, in.Groups, o))
	},
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
func DrMAS(returns [][]float64, agents [][]string, groups []int, o credit.Options) ([][]float64, error) {
	if err := o.CheckScaling(); err != nil {
		return nil, err
	}
	flat, members, _, err := credit.ByAgent(returns, agents, groups)
	if err != nil {
		return nil, err
	}
	for _, turns := range members {
		if len(turns) == 1 {
			own := flat[turns[0] : turns[0]+1]
			o.ScaleBy(own, 0, 1)
		} else {
			o.ScaleAt(flat, turns)
		}
	}
	return credit.RowsLike(returns, flat), nil
}
