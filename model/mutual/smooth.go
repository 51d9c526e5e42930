package mutual

// Decay of the moving averages of the marginal standard deviations (RAGEN v2's default).
const Decay = 0.9

// Deviations are moving averages of the marginal standard deviations, passed from one
// estimate to the next. The zero value is the state before the first estimate.
type Deviations struct {
	// Token and Seq are the averages of MarginalStd.
	Token, Seq float64
	// Seen is set after the first estimate.
	Seen bool
}

// Smoothed are z-scores with smoothed standard deviations, because the standard deviation
// of few reasonings is noisy and would make the z-score noisy too.
type Smoothed struct {
	// Deviations after this estimate.
	Deviations Deviations
	// ZScore is MI / (Deviations.Token + Epsilon). ZScoreSeq is the same for the sums,
	// with Deviations.Seq.
	ZScore, ZScoreSeq float64
}

// Smooth updates the moving averages with this estimate,
//
//	s ← Decay · s + (1 − Decay) · MarginalStd
//
// starting with the first estimate's standard deviation, and returns the z-scores with
// the new averages. As in RAGEN v2 the standard deviation is smoothed and not the
// z-score.
func (f Figures) Smooth(before Deviations) Smoothed {
	after := Deviations{Token: f.Token.MarginalStd, Seq: f.Seq.MarginalStd, Seen: true}
	if before.Seen {
		after.Token = float64(Decay*before.Token) + float64((1-Decay)*after.Token)
		after.Seq = float64(Decay*before.Seq) + float64((1-Decay)*after.Seq)
	}
	return Smoothed{Deviations: after, ZScore: f.Token.zScore(after.Token), ZScoreSeq: f.Seq.zScore(after.Seq)}
}
