package mutual

import "fmt"

// What RAGEN v2 puts before the names: by which turns the reasonings were sampled.
const (
	// FirstTurn is for reasonings of first turns.
	FirstTurn = "collapse_first_turn_sample/"
	// Trajectory is for turns of trajectories, drawn first by trajectory and then by
	// turn.
	Trajectory = "collapse_trajectory_sample/"
)

// Names of the moving averages of the deviations, which the next estimate begins
// from.
const (
	DeviationName    = "marginal_std_ema"
	DeviationSeqName = "marginal_std_ema_seq"
)

// Named is a figure by its name.
type Named struct {
	Name  string
	Value float64
}

// Named lists the figures by RAGEN v2's names, a prefix before each, in a fixed
// order.
func (f Figures) Named(prefix string) []Named {
	all := []Named{
		{"mi_estimate", f.Token.MI},
		{"mi_seq_estimate", f.Seq.MI},
		{"mi_upper_bound", f.UpperBound},
		{"conditional_entropy_est", f.Token.ConditionalEntropy},
		{"conditional_entropy_seq_est", f.Seq.ConditionalEntropy},
		{"reasoning_entropy_est", f.Token.ReasoningEntropy},
		{"reasoning_entropy_seq_est", f.Seq.ReasoningEntropy},
		{"marginal_std", f.Token.MarginalStd},
		{"marginal_std_seq", f.Seq.MarginalStd},
		{"mi_zscore", f.Token.ZScore},
		{"mi_zscore_seq", f.Seq.ZScore},
	}
	for _, r := range f.Retrieval {
		at := ""
		if r.K > 1 {
			at = fmt.Sprintf("@%d", r.K)
		}
		all = append(all,
			Named{"retrieval_accuracy" + at, r.Accuracy},
			Named{"retrieval_chance_level" + at, r.Chance},
			Named{"retrieval_above_chance" + at, r.Accuracy - r.Chance})
	}
	return prefixed(all, prefix)
}

// Named lists the smoothed figures likewise. The deviations are among them, so that
// the next estimate can begin from what this one published.
func (s Smoothed) Named(prefix string) []Named {
	return prefixed([]Named{
		{DeviationName, s.Deviations.Token},
		{DeviationSeqName, s.Deviations.Seq},
		{"mi_zscore_ema", s.ZScore},
		{"mi_zscore_ema_seq", s.ZScoreSeq},
	}, prefix)
}

func prefixed(all []Named, prefix string) []Named {
	for i := range all {
		all[i].Name = prefix + all[i].Name
	}
	return all
}
