// Package sdar adds to GRPO a gate by token: how much likelier the policy finds what it sampled when it is shown more (SDAR).
package sdar

import (
	"fmt"

	"github.com/reprise-rl/reprise/model/credit"
	"github.com/reprise-rl/reprise/model/option"
)

// SDAR's options.
var (
	gateWeight = option.Option{
		Section: option.Credit, Name: "gate_weight", Default: 0.01, High: 1e6, Above: true, Source: "SDAR's scripts",
		Doc: "What a token whose gate is open adds to its advantage (%s).",
	}
	gateSharpness = option.Option{
		Section: option.Credit, Name: "gate_sharpness", Default: 5, High: 1e6, Above: true, Source: "SDAR's scripts",
		Doc: "How sharply the gate opens with the teacher's log-prob above the policy's (%s): a difference of 1/gate_sharpness nats gives 0.73.",
	}
)

// Entry is the method in the table.
var Entry = credit.Algorithm{
	Name: "sdar", By: "the group's mean, and a gate of how much likelier a teacher finds each token (SDAR)",
	Formula: "A_t = A + λ·σ(β·(log π_T(t) − log π_old(t))), A = GRPO's, π_T: the teacher",
	Paper:   "SDAR, arXiv 2605.15155", File: "sdar/sdar.go",
	Compares: true, ReadsTeacher: true,
	Reads: []string{"normalize_by_std", "epsilon", "floor"}, Own: []option.Option{gateWeight, gateSharpness},
	Compute: func(in credit.Input, o credit.Options) ([][]float64, [][]float64, error) {
		rows, err := credit.GRPO(in.Returns, in.Groups, o)
		if err != nil {
			return nil, nil, err
		}
		gate := Gate{Weight: gateWeight.Number(o.Own), Sharpness: gateSharpness.Number(o.Own)}
		return credit.ByToken(SDAR(rows, in.Old, in.Teacher, in.Informed, in.Mask, gate))
	},
}

// Gate are the knobs of SDAR.
type Gate struct {
	// Weight is λ, above 0 (the scripts' sdar_coef: 0.01), and Sharpness is β, above 0 (their gate_beta: 5).
	Weight, Sharpness float64
}

// SDAR adds to a trajectory's advantage a gate of each sampled token (self-distilled agentic RL, arXiv 2605.15155;
// ZJU-REAL/SDAR, verl/trainer/ppo/sdar_utils.py, compute_sdar_loss):
//
//	A_t = A + λ·σ(β·Δ_t),  Δ_t = log π_T(t) − log π_old(t)
//
// The teacher is the policy itself, which has something before the row that it lacks when it plays. Their loss is λ times the mean
// of g_t·(log π_T − log π), where the gate g_t = σ(β·Δ_t) is a constant: its gradient is −g_t·∇log π, so it raises each sampled
// token, by more where the teacher agrees. It never lowers one: what is wrong, A has to say.
//
// Differences: the gate is that of the policy before the update, theirs is found again in each step of it. It is in the advantage,
// so it is weighed by the ratio and clipped as that is; theirs is not. Their teacher is shown skills that are written by hand.
//
// rows: [rows], the advantages of trajectories. old and teacher: [rows][tokens], log-probs, read where the mask is true. informed: [rows],
// whether the teacher was shown anything: a row without has its advantage alone. Errors are of kind ErrNotFinite (a
// log-prob) or ErrInput.
func SDAR(rows []float64, old, teacher [][]float64, informed []bool, mask [][]bool, gate Gate) ([][]float64, error) {
	if !(gate.Weight > 0) || !(gate.Sharpness > 0) || !credit.Finite(gate.Weight) || !credit.Finite(gate.Sharpness) {
		return nil, fmt.Errorf("%w: the gate's weight is %v and its sharpness %v, must be above 0", credit.ErrInput, gate.Weight, gate.Sharpness)
	}
	if len(informed) != len(mask) {
		return nil, fmt.Errorf("%w: %d rows are informed or not, %d of the mask", credit.ErrInput, len(informed), len(mask))
	}
	if err := credit.CheckShape("log-probs", old, mask); err != nil {
		return nil, err
	}
	if err := credit.CheckShape("log-probs of the teacher", teacher, mask); err != nil {
		return nil, err
	}
	out, err := credit.OverRows(rows, mask)
	if err != nil {
		return nil, err
	}
	for row, sampled := range mask {
		for t, yes := range sampled {
			if !yes || !informed[row] {
				continue
			}
			gap := teacher[row][t] - old[row][t]
			if !credit.Finite(gap) {
				return nil, fmt.Errorf("%w: the log-probs at row %d, token %d are %v by the policy and %v by the teacher",
					credit.ErrNotFinite, row, t, old[row][t], teacher[row][t])
			}
			out[row][t] += float64(gate.Weight * credit.Chance(float64(gate.Sharpness*gap)))
		}
	}
	return out, nil
}
