// Package checklist gives credit by criteria that hold or fail at each turn (CM2).
package checklist

import (
	"fmt"

	"github.com/reprise-rl/reprise/model/credit"
	"github.com/reprise-rl/reprise/model/option"
)

// The levels.
const (
	byStep = "step"
	byTurn = "turn"
)

// The options.
var (
	level = option.Option{
		Section: option.Credit, Name: "criteria_level", Choices: []string{byStep, byTurn}, Source: "CM2 (arXiv 2602.12268); its code has both",
		Doc: "What the criteria of a checklist are compared by (%s): step: a trajectory has each criterion once, which is credited to the " +
			"turns up to the one that meets it; turn: each turn has all criteria anew, and is compared with the same turn of the others.",
	}
	leastHolders = option.Option{
		Section: option.Credit, Name: "least_holders", Whole: true, Default: 2, Low: 2, High: 1024, Source: "CM2; its code: 5",
		Doc: "How many members of a group must have a criterion, or a turn, for it to be compared (%s); with fewer its advantage is 0.",
	}
)

// Entry is the method in the table.
var Entry = credit.Algorithm{
	Name: "checklist", By: "the criteria of a checklist, each apart (CM2)",
	Formula: "A_m = Σ_c w_c·(x_c − mean_G x_c) over the criteria that are open at turn m, x_c: met in the trajectory", Paper: "CM2, arXiv 2602.12268",
	File: "checklist/checklist.go", Compares: true, ReadsCriteria: true, Own: []option.Option{level, leastHolders},
	Compute: func(in credit.Input, o credit.Options) ([][]float64, [][]float64, error) {
		least := leastHolders.Int(o.Own)
		c := Criteria{Held: in.Criteria, Weights: in.CriteriaWeights, After: in.CriteriaAfter}
		if level.Choice(o.Own) == byTurn {
			return in.ByTurn(Turns(c, in.Groups, least))
		}
		return in.ByTurn(Steps(c, in.Groups, least))
	},
}

// Criteria are what a checklist says of the turns of an update.
type Criteria struct {
	// Held says which criteria hold at a turn alone, [rows][turns][criteria].
	Held [][][]bool
	// Weights are those of the criteria, and After the criterion before it that each depends on, −1 for none.
	Weights []float64
	After   []int
}

// Steps credits each criterion to the turns that it was open at: CM2's level "step" (arXiv 2602.12268;
// namezhenzhang/CM2-RLCR-Tool-Agent, reward_manager/checklist.py, reward_level "step" with eta 1, one
// checklist). Its turn of a user, whose steps are an assistant's messages, is a trajectory here, whose
// steps are turns. With x_c of a trajectory 1 if it meets criterion c at some turn, else 0,
//
//	A_m = Σ_c w_c·(x_c − mean of x_c in the group), over the criteria c that are open at turn m
//
// A criterion is open from the first turn, or from the turn after the one that met the criterion which it
// depends on, up to the turn that meets it; to the last turn if none does. A trajectory that never met
// what a criterion depends on has none, and does not count in its mean. A criterion that fewer than least
// members of the group have adds nothing.
//
// So the turns up to the one that meets a criterion gain by it, turns after it do not change for it, and
// all turns of a trajectory that never meets it lose. What the environment pays is not read, as in CM2.
//
// groups: [rows]. The result, [rows][turns], applies to every sampled token of the turn.
//
// Difference from the code: a criterion that is met in the same turn as the one it depends on is credited
// to that turn. There it counts in the mean and no turn is credited with it, so that of an episode of one
// turn such criteria teach nothing.
//
// Errors are of kind ErrInput.
func Steps(c Criteria, groups []int, least int) ([][]float64, error) {
	if err := check(c, groups, least); err != nil {
		return nil, err
	}
	out, met := make([][]float64, len(groups)), make([][]int, len(groups))
	for row, turns := range c.Held {
		out[row], met[row] = make([]float64, len(turns)), meets(c.After, turns)
	}
	for k, weight := range c.Weights {
		after := c.After[k]
		for _, rows := range credit.RowsOf(groups) {
			var have []int
			var x []float64
			for _, row := range rows {
				if len(out[row]) == 0 || after >= 0 && met[row][after] < 0 {
					continue
				}
				have = append(have, row)
				if met[row][k] >= 0 {
					x = append(x, 1)
				} else {
					x = append(x, 0)
				}
			}
			if len(have) < least {
				continue
			}
			mean, _ := credit.MeanStd(x)
			for i, row := range have {
				from, to := 0, len(out[row])
				if after >= 0 {
					from = met[row][after] + 1
				}
				if at := met[row][k]; at >= 0 {
					from, to = min(from, at), at+1
				}
				for m := from; m < to; m++ {
					out[row][m] += float64(weight * (x[i] - mean)) // rounded, so that no machine fuses it
				}
			}
		}
	}
	return out, nil
}

// meets are the turns at which a trajectory first meets each criterion, −1 for one that it never meets. A
// criterion that depends on another is met only where that one is met before it, or in the same turn.
func meets(after []int, held [][]bool) []int {
	out := make([]int, len(after))
	for k := range out {
		out[k] = -1
	}
	for m, criteria := range held {
		for k, holds := range criteria {
			if holds && out[k] < 0 && (after[k] < 0 || out[after[k]] >= 0) {
				out[k] = m
			}
		}
	}
	return out
}

// Turns compares each turn with the same turn of the other members: CM2's level "turn" (core_algos.py,
// compute_checklist_step_advantage without the deviation). Each turn of a trajectory stands for a turn of
// the user, with a checklist of its own:
//
//	u_k = Σ_c w_c·[c holds at turn k]
//	A_k = u_k − mean of u_k of the group's members that have turn k; 0 if fewer than least have it
//
// Dependences between criteria are not read, as in the code. groups and the result are as in Steps. Errors
// are of kind ErrInput.
func Turns(c Criteria, groups []int, least int) ([][]float64, error) {
	if err := check(c, groups, least); err != nil {
		return nil, err
	}
	out := make([][]float64, len(groups))
	for row, turns := range c.Held {
		out[row] = make([]float64, len(turns))
		for k, criteria := range turns {
			for at, holds := range criteria {
				if holds {
					out[row][k] += c.Weights[at]
				}
			}
		}
	}
	for _, rows := range credit.RowsOf(groups) {
		most := 0
		for _, row := range rows {
			most = max(most, len(out[row]))
		}
		for k := range most {
			var have []int
			var scores []float64
			for _, row := range rows {
				if k < len(out[row]) {
					have, scores = append(have, row), append(scores, out[row][k])
				}
			}
			mean, _ := credit.MeanStd(scores)
			for i, row := range have {
				if out[row][k] = 0; len(have) >= least {
					out[row][k] = scores[i] - mean
				}
			}
		}
	}
	return out, nil
}

func check(c Criteria, groups []int, least int) error {
	if len(c.Weights) == 0 || len(c.After) != len(c.Weights) || len(c.Held) != len(groups) {
		return fmt.Errorf("%w: criteria of %d rows, %d group indexes, %d weights and %d dependences",
			credit.ErrInput, len(c.Held), len(groups), len(c.Weights), len(c.After))
	}
	if least < 1 {
		return fmt.Errorf("%w: least_holders is %d, must be at least 1", credit.ErrInput, least)
	}
	for k, w := range c.Weights {
		if !credit.Finite(w) || c.After[k] < -1 || c.After[k] >= k {
			return fmt.Errorf("%w: criterion %d has the weight %v and depends on criterion %d", credit.ErrInput, k, w, c.After[k])
		}
	}
	for row, turns := range c.Held {
		for k, criteria := range turns {
			if len(criteria) != len(c.Weights) {
				return fmt.Errorf("%w: row %d, turn %d has %d criteria, there are %d weights", credit.ErrInput, row, k, len(criteria), len(c.Weights))
			}
		}
	}
	return nil
}
