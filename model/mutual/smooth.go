package mutual

// Decay of the moving averages of the marginal deviations (RAGEN v2's default).
const Decay = 0.9

// Deviations are moving averages of the marginal deviations, carried from one
// estimate to the next. The zero value has seen none.
type Deviations struct {
	// Token and Seq are the averages of MarginalStd.
	Token, Seq float64
	// Seen tells that there was one.
	Seen bool
}

// Smoothed are z-scores by smoothed deviations: the deviation of few reasonings is
// noisy, and would make the z-score jump.
type Smoothed struct {
	// Deviations after this estimate.
	Deviations Deviations
	// ZScore is MI / (Deviations.Token + Epsilon), ZScoreSeq likewise of the sums.
	ZScore, ZScoreSeq float64
}

// Smooth takes this estimate into the moving averages,
//
//	s ← Decay · s + (1 − Decay) · MarginalStd
//
// beginning with the first, and gives the z-scores by them. As in RAGEN v2 it is
// the deviation that is smoothed, not the z-score.
func (f Figures) Smooth(before Deviations) Smoothed {
	after := Deviations{Token: f.Token.MarginalStd, Seq: f.Seq.MarginalStd, Seen: true}
	if before.Seen {
		after.Token = float64(Decay*before.Token) + float64((1-Decay)*after.Token)
		after.Seq = float64(Decay*before.Seq) + float64((1-Decay)*after.Seq)
	}
	return Smoothed{Deviations: after, ZScore: f.Token.zScore(after.Token), ZScoreSeq: f.Seq.zScore(after.Seq)}
}
