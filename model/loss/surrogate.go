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
	// is still learned from. prime-rl's default loss masks so, with bounds of 0.2, and adds 1e-3·(log ρ)².
	DPPOTV Surrogate = "dppo_tv"
	// DPPOKL is DPPOTV with another bound (arXiv 2602.04879, binary KL; verl: dppo_kl). With k the divergence of
	// two coins, q = π_old and p = π,
	//
	//	k = q·log(q/p) + (1 − q)·log((1 − q + 1e-8)/(1 − p + 1e-8)),
	//
	// a token has no loss if it has become likelier with k > high and A > 0, or less likely with k > low
	// otherwise. A token that moves back is never left out.
	DPPOKL Surrogate = "dppo_kl"
	// GMPO is −A·exp(mean over the row's tokens of c), where c is log ρ of a token, at most high if A > 0 and at
	// least −low if A < 0, and 0 if A = 0 (arXiv 2507.20673; verl: geo_mean). Each token is clipped, but its
	// gradient has the ratio of the row: that of the loss if the row has one advantage and one weight a token. verl takes
	// the row's mean advantage; here a token has its own, as with SequenceRatio. The mean is bounded as that one's
	// is, and verl's has no bound.
	GMPO Surrogate = "gmpo"
)
