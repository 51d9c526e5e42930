package seeupo

import (
	"fmt"
	"math"

	"github.com/reprise-rl/reprise/model/credit"
)

const (
	// seeupoLeastStd is the deviation that a batch must exceed to be divided by it.
	seeupoLeastStd = 1e-6
	// seeupoBound clips the scaled advantages.
	seeupoBound = 3
)

// Entry is the method in the table.
var Entry = credit.Algorithm{
	Name: "seeupo", By: "the group's mean, scaled over the batch (SeeUPO)",
	Formula: "A = clip((a − mean) / std, ±3) over the batch, a = R − mean_G", Paper: "SeeUPO, arXiv 2602.06554", File: "seeupo/seeupo.go",
	Compares: true,
	Compute: func(in credit.Input, _ credit.Options) ([][]float64, [][]float64, error) {
		return in.ByRow(SeeUPO(in.Returns, in.Groups))
	},
}

// TurnsReversed updates one turn after another, the last one first.
var TurnsReversed = credit.Passes{
	Name: "turns_reversed", Paper: Entry.Paper, Clip: 0.2, Suits: Entry.Name, Correct: SeeUPOCorrections,
	Doc: "turns_reversed (SeeUPO): one turn after another, the last one first, each an update of its own with old log-probs of the policy that it begins with. " +
		"The advantages of a turn are multiplied by the correction M of their row, which is how far the passes before have changed the row's later turns.",
}

// SeeUPO computes the advantages from which SeeUPO's updates begin (arXiv 2602.06554; SeeUPPO-GRAE
// of modelscope/AgentEvolver, compute_grpo_outcome_advantage_local):
//
//	a_i = R_i − mean_G
//	A_i = clip((a_i − mean) / std, −3, 3)
//
// with mean and deviation over the batch. There is no division by the group's deviation, which
// breaks the method's proof of monotone improvement. If the batch's deviation is not above
// 1e-6, A = a.
//
// rewards, groups and the result are as in GRPO. The turns of a batch are updated one after
// another from the last to the first. Turn k learns from A·M, where M corrects for what the
// later turns have learnt already: see SeeUPOCorrections. Errors are of kind ErrRewards.
func SeeUPO(rewards []float64, groups []int) ([]float64, error) {
	advantages, err := credit.DrGRPO(rewards, groups)
	if err != nil {
		return nil, err
	}
	mean, std := credit.MeanStd(advantages)
	for i, a := range advantages {
		if std > seeupoLeastStd {
			a = (a - mean) / std
		}
		advantages[i] = min(max(a, -seeupoBound), seeupoBound)
	}
	return advantages, nil
}

// SeeUPOCorrections updates M after the update of one turn (arXiv 2602.06554;
// modelscope/AgentEvolver, update_ratios). With q a row's ratio of the policies after and
// before the update,
//
//	q = exp(mean over the turn's tokens of log π_after − log π_before)
//	M ← clip(M·clip(q, 1−low, 1+high), 1−low, 1+high)
//
// so M approximates the ratio of the later turns' policies. corrections, [rows], is M, which is 1
// before the last turn is updated. before and after: [rows][tokens], the log-probs of the turn's
// sampled tokens. A row that ended before the turn has no tokens and keeps its M, with a ratio of
// 1. low and high are ε of either side (authors: 0.2). ratios, [rows], are q, not clipped.
//
// The authors' code finds M by a row's position in a batch, which its balancing of batches changes,
// and wants every trajectory to have every turn. Errors are of kind ErrNotFinite or ErrInput.
func SeeUPOCorrections(corrections []float64, before, after [][]float64, low, high float64) (next, ratios []float64, err error) {
	if len(before) != len(corrections) || len(after) != len(corrections) {
		return nil, nil, fmt.Errorf("%w: corrections of %d rows, log-probs of %d before and %d after", credit.ErrInput, len(corrections), len(before), len(after))
	}
	if !(low >= 0 && low < 1) || !(high >= 0) || !credit.Finite(high) {
		return nil, nil, fmt.Errorf("%w: a clip of %v below and %v above", credit.ErrInput, low, high)
	}
	next, ratios = make([]float64, len(corrections)), make([]float64, len(corrections))
	for row, m := range corrections {
		if len(before[row]) != len(after[row]) {
			return nil, nil, fmt.Errorf("%w: row %d has %d log-probs before and %d after", credit.ErrInput, row, len(before[row]), len(after[row]))
		}
		ratios[row], next[row] = 1, m
		if len(before[row]) > 0 {
			var sum float64
			for t, p := range before[row] {
				sum += after[row][t] - p
			}
			ratios[row] = math.Exp(sum / float64(len(before[row])))
			next[row] = min(max(m*min(max(ratios[row], 1-low), 1+high), 1-low), 1+high)
		}
		if !credit.Finite(ratios[row]) || !credit.Finite(next[row]) {
			return nil, nil, fmt.Errorf("%w: the correction of row %d is %v after a ratio of %v", credit.ErrNotFinite, row, next[row], ratios[row])
		}
	}
	return next, ratios, nil
}
