package blockwise

import (
	"fmt"

	"github.com/reprise-rl/reprise/model/credit"
)

// Entry is the method in the table.
var Entry = credit.Algorithm{
	Name: "blockwise", By: "the group, each turn with those whose turns before achieved as much (blockwise advantages)",
	Formula: "A_k = r_k − mean(r_k of G with as many turns before that paid)", Paper: "arXiv 2602.10231", File: "blockwise/blockwise.go",
	Compares: true,
	Alone: func(in credit.Input) int {
		_, alone, _ := Blockwise(in.Rewards, in.Groups, Achieved(in.Rewards))
		return alone
	},
	Compute: func(in credit.Input, _ credit.Options) ([][]float64, [][]float64, error) {
		turns, _, err := Blockwise(in.Rewards, in.Groups, Achieved(in.Rewards))
		return in.ByTurn(turns, err)
	},
}

// Achieved gives the outcomes that Blockwise compares by: for each turn, the number of turns
// before it with a reward above 0, [rows][turns]. With two answers the second turn's is the
// outcome of the paper: whether the first answer was right.
func Achieved(rewards [][]float64) [][]int {
	out := make([][]int, len(rewards))
	for row, turns := range rewards {
		out[row] = make([]int, len(turns))
		for k := 1; k < len(turns); k++ {
			out[row][k] = out[row][k-1]
			if turns[k-1] > 0 {
				out[row][k]++
			}
		}
	}
	return out
}

// Blockwise gives each turn, as a block with a reward of its own, an advantage of its own
// (blockwise advantage estimation, arXiv 2602.10231, section 4.3 and algorithm 1):
//
//	A_k = r_k − mean(r_k of the group's members with the same outcome before turn k)
//
// The baseline of a later turn is conditioned on what the turns before achieved, so that a
// turn is not praised for a prefix that was good already. All members of a group begin in one
// state: the first turn is compared with the whole group. There is no division by a standard
// deviation, no critic, and no reward flows to the turns before.
//
// rewards: [rows][turns], penalties included. groups: [rows]. outcomes: [rows][turns], a small
// number that says what was achieved before the turn; that of the first turn is not read.
// Rows may differ in their numbers of turns. The result, [rows][turns], applies to
// every sampled token of the turn (OverTurns). alone counts the turns without another member of
// the same outcome, which learn nothing: their advantage is 0.
//
// As in the paper the baseline contains the member itself, which scales the advantages of n
// members by (n−1)/n. Its loss is a mean over rows of sums over turns of means over tokens
// (loss.BlockWeights). Difference from the paper: a small stratum is not shrunk towards
// the group's mean.
//
// Errors are of kind ErrRewards or ErrInput.
func Blockwise(rewards [][]float64, groups []int, outcomes [][]int) (advantages [][]float64, alone int, err error) {
	if err := credit.CheckTurns(rewards); err != nil {
		return nil, 0, err
	}
	if len(groups) != len(rewards) || len(outcomes) != len(rewards) {
		return nil, 0, fmt.Errorf("%w: rewards of %d rows, %d group indexes, outcomes of %d rows", credit.ErrInput, len(rewards), len(groups), len(outcomes))
	}
	type stratum struct{ group, turn, outcome int }
	var strata []stratum
	var flat []float64
	for row, turns := range rewards {
		if len(outcomes[row]) != len(turns) {
			return nil, 0, fmt.Errorf("%w: row %d has %d rewards and %d outcomes", credit.ErrInput, row, len(turns), len(outcomes[row]))
		}
		for k := range turns {
			s := stratum{groups[row], k, outcomes[row][k]}
			if k == 0 {
				s.outcome = 0
			}
			strata = append(strata, s)
		}
		flat = append(flat, turns...)
	}
	for _, members := range credit.RowsOf(strata) {
		if len(members) == 1 {
			alone++
		}
		credit.Options{}.ScaleAt(flat, members)
	}
	return credit.RowsLike(rewards, flat), alone, nil
}
