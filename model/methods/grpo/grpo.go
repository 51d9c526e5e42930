// Package grpo has the methods that compare the trajectories of a group: GRPO, Dr. GRPO and leave-one-out.
package grpo

import "github.com/reprise-rl/reprise/model/credit"

// Entry is the method in the table.
var Entry = credit.Algorithm{
	Name: "grpo", By: "the group's mean and standard deviation (GRPO)",
	Formula: "A = (R − mean_G) / (std_G + ε)", Paper: "GRPO, arXiv 2402.03300, §4.1.2", File: "grpo/grpo.go",
	Compares: true, DropsFlat: true, Reads: []string{"normalize_by_std", "epsilon", "floor"},
	Compute: func(in credit.Input, o credit.Options) ([][]float64, [][]float64, error) {
		return in.ByRow(credit.GRPO(in.Returns, in.Groups, o))
	},
}

// EntryDr is the method in the table.
var EntryDr = credit.Algorithm{
	Name: "dr_grpo", Also: []string{"drgrpo", "grpo_done_right"}, By: "the group's mean (Dr. GRPO)",
	Formula: "A = R − mean_G", Paper: "Dr. GRPO, arXiv 2503.20783", File: "grpo/grpo.go",
	Compares: true, DropsFlat: true,
	Compute: func(in credit.Input, _ credit.Options) ([][]float64, [][]float64, error) {
		return in.ByRow(credit.DrGRPO(in.Returns, in.Groups))
	},
}

// EntryLeaveOneOut is the method in the table.
var EntryLeaveOneOut = credit.Algorithm{
	Name: "leave_one_out", Also: []string{"rloo", "loop"}, By: "the mean of the group's others (LOOP, RLOO)",
	Formula: "A = R − mean of the others of G", Paper: "RLOO, arXiv 2402.14740; LOOP, arXiv 2502.01600", File: "grpo/grpo.go",
	Compares: true, DropsFlat: true,
	Compute: func(in credit.Input, _ credit.Options) ([][]float64, [][]float64, error) {
		return in.ByRow(credit.LeaveOneOut(in.Returns, in.Groups))
	},
}
