package loss

// Surrogate names the loss of a token, which its advantage A and the ratio ρ of its
// probability to the old one give. sg(·) is not differentiated. Package terms has the table of them.
type Surrogate string

const (
	// Clip is max(−ρA, −clip(ρ, 1 − low, 1 + high)·A) (PPO, arXiv 1707.06347): a token
	// beyond its bound has no gradient.
	Clip Surrogate = "clip"
	// CISPO is −sg(min(ρ, 1 + high))·A·log π (arXiv 2506.13585, equation 4): the bound caps
	// the weight, and the token keeps its gradient. There is no lower bound, as in the
	// paper's experiments; verl's has one, which its example sets so low that it never acts.
	CISPO Surrogate = "cispo"
	// SAPO is −A·(4/τ)·σ(τ(ρ − 1)) with one τ for A > 0 and another for the rest (arXiv
	// 2511.20347): the gradient is that of PPO at ρ = 1 and fades smoothly on both sides.
	SAPO Surrogate = "sapo"
	// DPPOTV is −sg(min(ρ, cap))·A·log π at tokens with π − π_old ≤ high if A > 0, and
	// ≥ −low otherwise; the others have no loss (arXiv 2602.04879, binary total variation;
	// verl: dppo_tv). The bounds are on probabilities, so a rare token whose ratio is large
	// is still learned from.
	DPPOTV Surrogate = "dppo_tv"
)
