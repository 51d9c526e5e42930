// Package rae compares each role of a team or a game with what it has returned before (RAE).
package rae

import (
	"slices"

	"github.com/reprise-rl/reprise/model/credit"
	"github.com/reprise-rl/reprise/model/option"
)

var decay = option.Option{
	Section: option.Credit, Name: "baseline_decay", Default: 0.95, Low: 0, High: 1, Above: true, Source: "SPIRAL (arXiv 2506.24119); prime-rl",
	Doc: "How much of a role's baseline stays when a trajectory of that role is seen (%s); the rest is that trajectory's return. With 1 it stays 0.",
}

// Entry is the method in the table.
var Entry = credit.Algorithm{
	Name: "rae", Also: []string{"role_advantage"}, By: "what its role has returned before (RAE: SPIRAL)",
	Formula: "A_k = R − b of its role; then b ← α·b + (1 − α)·R", Paper: "SPIRAL, arXiv 2506.24119", File: "rae/rae.go",
	ByRole: true, ObservesStates: true, Own: []option.Option{decay},
	Compute: func(in credit.Input, o credit.Options) ([][]float64, [][]float64, error) {
		return in.ByTurn(RAE(in.Past, in.Returns, in.Agents, decay.Number(o.Own)))
	},
	Observe: func(past []credit.StateValue, returns []float64, agents [][]string, o credit.Options) ([]credit.StateValue, error) {
		_, after, err := fold(past, returns, agents, decay.Number(o.Own))
		return after, err
	},
}

// RAE compares each trajectory with a baseline of each role that acted in it (SPIRAL, arXiv 2506.24119;
// prime-rl's RAEAlgorithm). Row after row, and role after role in the order of their first turns,
//
//	A = R − b,  then  b ← α·b + (1 − α)·R
//
// A trajectory is compared before it moves the baseline, which is 0 for a role that has not been seen. In a
// game of two the mean over the players is near 0 whatever the policy does; a baseline of its own shows each
// role whether it has become better, and an edge of one role is no credit.
//
// past are the baselines before the update, by role, sorted. returns: [rows], penalties included; agents:
// [rows][turns], who acted. The result, [rows][turns], applies to every sampled token of the turn.
//
// Differences from prime-rl: a role's return is its trajectory's, which the roles of a team share; the order is
// that of the rows, where prime-rl's is that in which episodes end; baselines are kept with the run, where
// prime-rl's are lost with the process; of a mixture of environments a role of one name has one baseline,
// where prime-rl has one an environment. The rows of an update move the baseline that they see, and all
// trajectories of a rollout, selected or not, the one that the next iteration begins with.
//
// Errors are of kind ErrRewards or ErrInput.
func RAE(past []credit.StateValue, returns []float64, agents [][]string, decay float64) ([][]float64, error) {
	out, _, err := fold(past, returns, agents, decay)
	return out, err
}

// fold goes through the rows: the advantages of their turns, and the baselines after them.
func fold(past []credit.StateValue, returns []float64, agents [][]string, decay float64) ([][]float64, []credit.StateValue, error) {
	if err := credit.Check(returns, "rows of agents", len(agents)); err != nil {
		return nil, nil, err
	}
	if err := credit.CheckStates(past, nil, nil); err != nil {
		return nil, nil, err
	}
	if err := credit.CheckUnit("baseline_decay", decay); err != nil {
		return nil, nil, err
	}
	out, after := make([][]float64, len(returns)), slices.Clone(past)
	for row, r := range returns {
		out[row] = make([]float64, len(agents[row]))
		for k, agent := range agents[row] {
			if first := slices.Index(agents[row], agent); first < k {
				out[row][k] = out[row][first]
				continue
			}
			at, known := credit.FindState(after, agent)
			if !known {
				after = slices.Insert(after, at, credit.StateValue{Key: agent})
			}
			b := &after[at]
			out[row][k] = r - b.Value
			b.Count++
			b.Value = float64(decay*b.Value) + float64((1-decay)*r) // rounded, so that no machine fuses it
		}
	}
	return out, after, nil
}
