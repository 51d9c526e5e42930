package mutual

import "fmt"

// Prefixes of the names in RAGEN v2. They say how the reasonings were sampled.
const (
	// FirstTurn is the prefix for reasonings of first turns.
	FirstTurn = "collapse_first_turn_sample/"
	// Trajectory is the prefix for reasonings of any turn: a trajectory is drawn first
	// and then one of its turns.
	Trajectory = "collapse_trajectory_sample/"
)

// Names of the moving averages of the standard deviations, from which the next estimate
// starts.
const (
	DeviationName    = "marginal_std_ema"
	DeviationSeqName = "marginal_std_ema_seq"
)

// Named is a figure with its name.
type Named struct {
	Name  string
	Value float64
}

// Named lists the figures in a fixed order, with RAGEN v2's names after a prefix.
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

// Named lists the smoothed figures in the same way. The list includes the standard
// deviations, so that the next estimate can start from the published figures.
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
