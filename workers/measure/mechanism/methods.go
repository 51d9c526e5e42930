package mechanism

import (
	"fmt"
	"slices"

	"github.com/reprise-rl/reprise/model/credit"
	"github.com/reprise-rl/reprise/model/selection"
)

// Method is a way to give credit.
type Method struct {
	// Name is the value of credit.algorithm, or of what differs from GRPO.
	Name string
	// Setting says with which settings, where it is not with the defaults.
	Setting string
	// estimate returns the advantages, [rows][tokens]; rows that the update does not learn
	// from have zeros.
	estimate func(Batch) ([][]float64, error)
	// play rolls a batch out; nil stands for Play.
	play func(lakes []*Lake, batch int) (Batch, error)
}

// Methods are all ways to give credit, in the order of the table.
func Methods() []Method {
	grpo := credit.Options{NormalizeByStd: true, Epsilon: 1e-6}
	discounted := credit.Options{Gamma: 1, Lambda: 1, TurnGamma: 0.95, TurnLambda: 1}
	with := func(o credit.Options, change func(*credit.Options)) credit.Options {
		change(&o)
		return o
	}
	methods := []Method{
		{Name: "grpo", Setting: "", estimate: algorithm("grpo", grpo)},
		{Name: "dr_grpo", Setting: "", estimate: algorithm("dr_grpo", credit.Options{})},
		{Name: "leave_one_out", Setting: "", estimate: algorithm("leave_one_out", credit.Options{})},
		{Name: "leave_one_out", Setting: "LOOP: \\|A\\| < 0.01 left out", estimate: func(b Batch) ([][]float64, error) {
			advantages, _, err := credit.Compute(b.Input, credit.Options{Algorithm: "leave_one_out"})
			if err != nil {
				return nil, err
			}
			worth, err := credit.WorthAStep(advantages, 0.01)
			for row, yes := range worth {
				if !yes {
					clear(advantages[row])
				}
			}
			return advantages, err
		}},
		{Name: "reinforce_pp", Setting: "", estimate: algorithm("reinforce_pp", credit.Options{Gamma: 1})},
		{Name: "reinforce_pp_baseline", Setting: "", estimate: algorithm("reinforce_pp_baseline", credit.Options{})},
		{Name: "reinforce_pp_verl", Setting: "", estimate: algorithm("reinforce_pp_verl", credit.Options{Gamma: 1})},
		{Name: "state_baseline", Setting: "true values", estimate: algorithm("state_baseline", credit.Options{})},
		{Name: "gigpo", Setting: "γ 0.95", estimate: algorithm("gigpo", with(grpo, func(o *credit.Options) { o.Gamma, o.StepWeight = 0.95, 1 }))},
		{Name: "gigpo", Setting: "γ 0.95, F = 1", estimate: algorithm("gigpo", credit.Options{Gamma: 0.95, StepWeight: 1})},
		{Name: "gigpo", Setting: "γ 0.95, over_turns: verl-agent", estimate: algorithm("gigpo", with(grpo, func(o *credit.Options) { o.Gamma, o.StepWeight, o.Own = 0.95, 1, credit.Own{"over_turns": true} }))},
		{Name: "dr_mas", Setting: "an agent a turn", estimate: algorithm("dr_mas", grpo)},
		{Name: "blockwise", Setting: "outcome: steps left", estimate: func(b Batch) ([][]float64, error) {
			turns, _, err := credit.Blockwise(b.Rewards, b.Groups, b.Outcomes)
			return b.byTurn(turns, err)
		}},
		{Name: "gdpo", Setting: "task, penalty", estimate: func(b Batch) ([][]float64, error) {
			return credit.GDPO(b.Components, []float64{1, 1}, b.Groups, b.Mask, grpo)
		}},
		{Name: "empg", Setting: "", estimate: func(b Batch) ([][]float64, error) {
			rows, err := credit.GRPO(b.Returns, b.Groups, grpo)
			if err != nil {
				return nil, err
			}
			return b.byTurn(credit.EMPG(rows, b.Entropies, credit.Modulation{Gain: 1, FutureGain: 1, Clarity: 0.1}))
		}},
		{Name: "gae", Setting: "values of 0: the first iteration", estimate: func(b Batch) ([][]float64, error) {
			advantages, _, err := credit.GAE(b.Tokens, b.zeros(), b.Mask, discounted)
			return advantages, err
		}},
		{Name: "gae", Setting: "true values, λ 1", estimate: algorithm("gae", discounted)},
		{Name: "gae", Setting: "true values, λ 0", estimate: algorithm("gae", with(discounted, func(o *credit.Options) { o.Lambda = 0 }))},
		{Name: "turn_gae", Setting: "true values", estimate: algorithm("turn_gae", discounted)},
		{Name: "turn_returns", Setting: "true values", estimate: turnReturns(discounted)},
		{Name: "turn_returns", Setting: "true values at final_token", estimate: turnReturns(with(discounted, func(o *credit.Options) { o.ValueAt = credit.FinalToken }))},
	}
	dr := methods[1].estimate
	return append(methods,
		Method{Name: "dr_grpo", Setting: "StarPO-S: top_fraction 0.25", estimate: selected(dr, selection.Options{Method: "top_fraction", Value: 0.25})},
		Method{Name: "dr_grpo", Setting: "PyVision: top_count 4, flat groups dropped", estimate: selected(dr, selection.Options{Method: "top_count", Value: 4, DropFlat: true})},
		Method{Name: "grpo", Setting: "GFPO: the 8 shortest of 16", estimate: members(methods[0].estimate, "shortest", 8)},
		Method{Name: "grpo", Setting: "GFPO: 8 of 16 by reward_per_token", estimate: members(methods[0].estimate, "reward_per_token", 8)},
		Method{Name: "dr_grpo", Setting: "8 of 16 by deviation", estimate: members(dr, "deviation", 8)},
		Method{Name: "dr_grpo", Setting: "TSR: the best 8 of 16", estimate: members(dr, "return", 8)},
		Method{Name: "seeupo", Setting: "before its corrections", estimate: func(b Batch) ([][]float64, error) {
			rows, err := credit.SeeUPO(b.Returns, b.Groups)
			if err != nil {
				return nil, err
			}
			return credit.OverRows(rows, b.Mask)
		}},
		Method{Name: "hiper", Setting: "true values, one subgoal", estimate: hiper(false)},
		Method{Name: "hiper", Setting: "true values, a subgoal a turn", estimate: hiper(true)},
		Method{Name: "agent_prm", Setting: "targets of the batch, γ 0.95", estimate: promises(credit.Promises, 0.95)},
		Method{Name: "agent_prm", Setting: "its code's targets", estimate: promises(credit.PromisesCode, 0.95)},
		Method{Name: "tree_grpo", Setting: "4 trees of 4 leaves", estimate: treeGRPO(credit.TreeGRPO, grpo), play: PlayTrees},
		Method{Name: "tree_grpo", Setting: "the same, shared turns learned once a leaf", estimate: treeGRPO(credit.TreeGRPO, grpo), play: everyLeaf},
		Method{Name: "tree_grpo", Setting: "its code", estimate: treeGRPO(credit.TreeGRPOCode, grpo), play: everyLeaf},
		Method{Name: "deep_grpo", Setting: "8 and 8 a failure, λ 1", estimate: deepGRPO(grpo, 1), play: new(pivots).Play},
		Method{Name: "deep_grpo", Setting: "the branches alone", estimate: deepGRPO(grpo, 1), play: new(pivots).branches},
	)
}

func turnReturns(o credit.Options) func(Batch) ([][]float64, error) {
	return func(b Batch) ([][]float64, error) {
		advantages, _, _, err := credit.TurnReturns(b.Rewards, b.Values, b.Turns, o)
		return advantages, err
	}
}

// algorithm is an entry of the table.
func algorithm(name string, o credit.Options) func(Batch) ([][]float64, error) {
	o.Algorithm = name
	return func(b Batch) ([][]float64, error) {
		advantages, _, err := credit.Compute(b.Input, o)
		return advantages, err
	}
}

// byTurn gives the sampled tokens of a turn its advantage.
func (b Batch) byTurn(turns [][]float64, err error) ([][]float64, error) {
	if err != nil {
		return nil, err
	}
	return credit.OverTurns(turns, b.Turns, b.Lengths)
}

// selected learns from the groups that a selection keeps.
func selected(estimate func(Batch) ([][]float64, error), o selection.Options) func(Batch) ([][]float64, error) {
	return func(b Batch) ([][]float64, error) {
		chosen, err := selection.Select(b.groups(), o)
		if err != nil {
			return nil, err
		}
		return b.among(estimate, func(group, _ int) bool { return slices.Contains(chosen.Kept, group) })
	}
}

// members learns from the members of a group with the highest metric.
func members(estimate func(Batch) ([][]float64, error), metric string, n int) func(Batch) ([][]float64, error) {
	return func(b Batch) ([][]float64, error) {
		kept, err := selection.Members(b.groups(), metric, n)
		if err != nil {
			return nil, err
		}
		return b.among(estimate, func(group, member int) bool { return slices.Contains(kept[group], member) })
	}
}

// groups is the batch as selections read it.
func (b Batch) groups() selection.Groups {
	var g selection.Groups
	for group := range GroupsABatch {
		rows := b.Returns[group*Members : (group+1)*Members]
		var lengths []float64
		for _, spans := range b.Turns[group*Members : (group+1)*Members] {
			n := 0
			for _, s := range spans {
				n += s.To - s.From
			}
			lengths = append(lengths, float64(n))
		}
		g.Rewards, g.Lengths = append(g.Rewards, rows), append(g.Lengths, lengths)
	}
	return g
}

// among estimates the advantages of the kept rows among themselves; the others get 0.
func (b Batch) among(estimate func(Batch) ([][]float64, error), keep func(group, member int) bool) ([][]float64, error) {
	var part Batch
	var rows []int
	for row := range b.Returns {
		if !keep(row/Members, row%Members) {
			continue
		}
		rows = append(rows, row)
		part.Returns, part.Rewards = append(part.Returns, b.Returns[row]), append(part.Rewards, b.Rewards[row])
		part.Groups, part.Mask = append(part.Groups, b.Groups[row]), append(part.Mask, b.Mask[row])
	}
	advantages, err := estimate(part)
	if err != nil {
		return nil, fmt.Errorf("%d of %d rows: %w", len(rows), len(b.Returns), err)
	}
	out := b.zeros()
	for i, row := range rows {
		out[row] = advantages[i]
	}
	return out, nil
}

// zeros are numbers of all tokens, [rows][tokens].
func (b Batch) zeros() [][]float64 {
	out := make([][]float64, len(b.Lengths))
	for row, n := range b.Lengths {
		out[row] = make([]float64, n)
	}
	return out
}
