package loss

// Ratio names the unit by which the new policy is compared with the old one.
type Ratio string

const (
	// TokenRatio compares token by token (PPO, arXiv 1707.06347).
	TokenRatio Ratio = "token"
	// SequenceRatio compares whole trajectories: every token of a row has the
	// ratio exp(mean over its sampled tokens of log π_new − log π_old) (GSPO, arXiv
	// 2507.18071, equation 7). Bounds are much tighter then (paper: 3e-4 and 4e-4).
	SequenceRatio Ratio = "sequence"
	// TurnRatio compares turns: every token of a turn has the ratio exp(mean over the
	// turn's sampled tokens of log π_new − log π_old), which is GSPO's for a turn (the
	// ratio of Turn-PPO, arXiv 2512.17008, and of updates turn by turn, arXiv 2602.06554). Each token's
	// derivative is its turn's ratio, as in GSPO-token: that of the loss if the tokens of a turn have one advantage
	// and one weight.
	TurnRatio Ratio = "turn"
)
