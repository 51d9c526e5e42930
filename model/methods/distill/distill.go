// Package distill rewards each token by how much likelier a teacher finds it: on-policy distillation.
package distill

import (
	"fmt"

	"github.com/reprise-rl/reprise/model/credit"
	"github.com/reprise-rl/reprise/model/option"
)

// taskWeight weighs the task's reward beside the teacher.
var taskWeight = option.Option{
	Section: option.Credit, Name: "task_weight", High: 1e6,
	Source: option.Ours + " (tinker-cookbook: the task's reward has weight 1, and is 0 in its recipes)",
	Doc:    "The weight of the task's own advantage, the return minus the group's mean, beside the teacher's judgement of each token (%s).",
}

// Entry is the method in the table.
var Entry = credit.Algorithm{
	Name: "distill", Also: []string{"on_policy_distillation", "opd"}, By: "how much likelier a teacher finds each token than the policy (on-policy distillation)",
	Formula: "A_t = log π_T(t) − log π_old(t) + w·(R − mean(R in G)), π_T: the teacher",
	Paper:   "On-Policy Distillation (Thinking Machines, 2025), GKD, arXiv 2306.13649", File: "distill/distill.go",
	ReadsTeacher: true, Own: []option.Option{taskWeight},
	Compute: func(in credit.Input, o credit.Options) ([][]float64, [][]float64, error) {
		return credit.ByToken(Distill(in.Old, in.Teacher, in.Returns, in.Groups, in.Mask, taskWeight.Number(o.Own)))
	},
}

// Distill gives each sampled token the negative reverse KL from the policy to a teacher, as the one sample estimates it, and
// weight times the task's advantage:
//
//	A_t = −(log π_old(t) − log π_T(t)) + weight·(R − mean(R of the group))
//
// Its expectation over the policy's own tokens is −KL(π_old ‖ π_T) at the context: the student is graded where it goes
// itself (GKD, arXiv 2306.13649; MiniLLM, arXiv 2306.08543). It is what tinker-cookbook does
// (thinkingmachines.ai/blog/on-policy-distillation; incorporate_kl_penalty with kl_penalty_coef 1 and its default
// kl_discount_factor 0): a token is credited with its own divergence alone, not with that of the tokens which it leads to.
// MiniLLM's gradient has the latter too. GKD and TRL sum over the whole vocabulary at each place, for which all
// probabilities of the teacher would have to be kept.
//
// The task's part is their advantage of a group, without division by the deviation (credit.DrGRPO): a row alone in its group
// has its return (theirs: 0). Their code weighs the teacher's part (kl_penalty_coef) and not the task's; with AdamW a common
// factor of both changes little. Differences: log π_old is the trainer's, not the sampler's, both are at the
// rollout's temperature, and sums are in float64.
//
// Where the teacher is the policy itself, shown more, it is the gradient of SDPO (arXiv 2601.20802; lasgroup/SDPO,
// compute_self_distillation_loss with alpha 1 and without logits) and of SDFT (arXiv 2601.19897; prime-rl's opsd and ref_kl_loss_fn).
// SDPO's mean is over the tokens of the rows that were shown something, here it is over all; its scripts compare the 100 likeliest
// tokens by a Jensen-Shannon divergence, with a teacher that is a running mean of versions.
//
// old and teacher: [rows][tokens], log-probs that are read where the mask is true. returns and groups: [rows], read if weight
// is not 0. Errors are of kind ErrNotFinite (a log-prob), ErrRewards or ErrInput.
func Distill(old, teacher [][]float64, returns []float64, groups []int, mask [][]bool, weight float64) ([][]float64, error) {
	if !(weight >= 0) || !credit.Finite(weight) {
		return nil, fmt.Errorf("%w: the weight of the task is %v, must be at least 0", credit.ErrInput, weight)
	}
	if err := credit.CheckShape("log-probs", old, mask); err != nil {
		return nil, err
	}
	if err := credit.CheckShape("log-probs of the teacher", teacher, mask); err != nil {
		return nil, err
	}
	task := make([]float64, len(mask))
	if weight > 0 {
		if len(returns) != len(mask) {
			return nil, fmt.Errorf("%w: %d returns, %d rows of the mask", credit.ErrInput, len(returns), len(mask))
		}
		var err error
		if task, err = credit.DrGRPO(returns, groups); err != nil {
			return nil, err
		}
	}
	out := credit.Zeros(mask)
	for row, sampled := range mask {
		of := float64(weight * task[row])
		for t, yes := range sampled {
			if !yes {
				continue
			}
			if out[row][t] = teacher[row][t] - old[row][t] + of; !credit.Finite(out[row][t]) {
				return nil, fmt.Errorf("%w: the log-probs at row %d, token %d are %v by the policy and %v by the teacher",
					credit.ErrNotFinite, row, t, old[row][t], teacher[row][t])
			}
		}
	}
	return out, nil
}
