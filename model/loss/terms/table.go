package terms

import (
	"math"

	"github.com/reprise-rl/reprise/model/batch"
	"github.com/reprise-rl/reprise/model/loss"
)

// Names that other code has to tell apart. Those of surrogates, ratios and estimators are package loss's.
const (
	// DualClip and OffPolicy are guards.
	DualClip  = "dual_clip"
	OffPolicy = "off_policy"
	// Squared and Promise are losses of critics.
	Squared = "squared"
	Promise = "promise"

	// EntropyCoefficient, KLCoefficient and AllSupervised are knobs of the frame, ValueClip is that of critics.
	EntropyCoefficient = "entropy_coefficient"
	KLCoefficient      = "kl_coefficient"
	AllSupervised      = "all_supervised"
	ValueClip          = "clip"
	// Those of single terms.
	TauPositive    = "tau_positive"
	TauNegative    = "tau_negative"
	RatioCap       = "ratio_cap"
	OffPolicyLimit = "off_policy_limit"

	// Loss is the whole loss, in the metrics of every loss. The others of the frame are verl's.
	Loss              = "loss"
	PolicyLoss        = "pg_loss"
	Entropy           = "entropy"
	KL                = "kl_loss"
	ClipFraction      = "pg_clipfrac"
	DualClipFraction  = "pg_clipfrac_lower"
	BehaviourKL       = "ppo_kl"
	ApproxKL          = "approx_kl"
	RatioMax          = "ratio_max"
	OffPolicyFraction = "off_policy_masked_fraction"
	SupervisedLoss    = "supervised_loss"
	ValueClipFraction = "vf_clipfrac"
	ValueMean         = "vpred_mean"
)

const (
	most = math.MaxFloat32
	verl = "verl default, as RAGEN runs it"
)

// Table are the terms. Its order is that of a spec's choices, and of columns, knobs and metrics in programs: a
// term stands behind those of its kind, and its columns, knobs and metrics come after those of the terms before.
var Table = []Term{
	{
		Name: "policy", Kind: Frame, Paper: "PPO (arXiv 1707.06347)",
		Reads: []batch.Column{batch.OldLogProbs, batch.Advantages, batch.ClipLow, batch.ClipHigh},
		Knobs: []Knob{
			{Name: EntropyCoefficient, Low: -most, High: most, Packing: Always}, {Name: KLCoefficient, High: most, Packing: Always},
			dualClip, {Name: AllSupervised, High: 1, Packing: Always},
		},
		Metrics: []Metric{
			{Name: Loss}, {Name: PolicyLoss}, {Name: Entropy}, {Name: KL}, {Name: ClipFraction}, {Name: DualClipFraction},
			{Name: BehaviourKL}, {Name: ApproxKL}, {Name: RatioMax, Largest: true},
		},
	},
	{
		Name: string(loss.Clip), Kind: Surrogate, Paper: "PPO (arXiv 1707.06347)", Doc: "the clipped ratio of PPO", Units: true,
		Formula: "max(−ρA, −clip(ρ, 1 − low, 1 + high)·A)",
		Reads:   []batch.Column{batch.ClipLow, batch.ClipHigh},
	},
	{
		Name: string(loss.CISPO), Kind: Surrogate, Paper: "MiniMax-M1 (arXiv 2506.13585)", Doc: "a capped weight that keeps the token's gradient",
		Note: "reads `update.clip_high` alone", Reads: []batch.Column{batch.ClipHigh},
		Formula: "−sg(min(ρ, 1 + high))·A·log π",
	},
	{
		Name: string(loss.SAPO), Kind: Surrogate, Paper: "SAPO (arXiv 2511.20347)", Doc: "a smooth gate instead of a clip",
		Formula: "−A·(4/τ)·σ(τ(ρ − 1))",
		Knobs: []Knob{
			{Name: TauPositive, High: 100, Default: 1, Source: "SAPO (arXiv 2511.20347)", Packing: Together,
				Doc: "The τ of sapo for advantages above 0: the larger, the sooner the gate closes."},
			{Name: TauNegative, High: 100, Default: 1.05, Source: "SAPO (arXiv 2511.20347)", Packing: Together,
				Doc: "The τ of sapo for the other advantages."},
		},
	},
	{
		Name: string(loss.DPPOTV), Kind: Surrogate, Paper: "DPPO (arXiv 2602.04879)", Doc: "bounds on the difference of probabilities",
		Note:    "reads `update.clip_low` and `update.clip_high` as bounds of π − π_old",
		Formula: "−sg(min(ρ, cap))·A·log π while π − π_old is within the bounds, else 0",
		Reads:   []batch.Column{batch.ClipLow, batch.ClipHigh},
		Knobs:   []Knob{ratioCap},
	},
	{
		Name: string(loss.DPPOKL), Kind: Surrogate, Paper: "DPPO (arXiv 2602.04879)", Doc: "bounds on a token's binary KL",
		Note:    "reads them as bounds of that KL, in nats",
		Formula: "the same while the KL of two coins, this token or another, is within the bounds",
		Reads:   []batch.Column{batch.ClipLow, batch.ClipHigh}, Knobs: []Knob{ratioCap},
	},
	{
		Name: string(loss.GMPO), Kind: Surrogate, Paper: "GMPO (arXiv 2507.20673)", Doc: "the geometric mean of a row's ratios, each clipped",
		Note:    "reads them as bounds of a token's log ρ",
		Formula: "−A·exp(mean over the row's tokens of log ρ, each within the bounds)",
		Reads:   []batch.Column{batch.ClipLow, batch.ClipHigh},
	},
	distance(loss.K1, "d"), distance(loss.K2, "½d²"), distance(loss.K3, "exp(−d) + d − 1"), distance(loss.KAbs, "the absolute value of d"),
	{Name: string(loss.TokenRatio), Kind: Ratio, Paper: "PPO (arXiv 1707.06347)", Doc: "each token by itself"},
	{
		Name: string(loss.TurnRatio), Kind: Ratio, Paper: "Turn-PPO (arXiv 2512.17008)", Doc: "the geometric mean over the tokens of a turn",
		Units: true, Reads: []batch.Column{batch.Turns},
	},
	{
		Name: string(loss.SequenceRatio), Kind: Ratio, Paper: "GSPO (arXiv 2507.18071)", Doc: "the geometric mean over the tokens of a row",
		Units: true,
	},
	{
		Name: DualClip, Kind: Guard, Paper: "dual-clip PPO (arXiv 1912.09729)", Doc: "the loss of a token with A < 0 is at most −c·A",
		Units: true, Knobs: []Knob{dualClip}, Metrics: []Metric{{Name: DualClipFraction}},
	},
	// TRL compares with the sampler's log-probs, slime with the scorer's; here π_old is what update.mismatch.regime
	// makes it. The tokens that are dropped stay in the divisor.
	{
		Name: OffPolicy, Kind: Guard, Paper: "OPSM (DeepSeek-V3.2)",
		Doc:     "no loss where A < 0 in rows from which the policy has moved away",
		Metrics: []Metric{{Name: OffPolicyFraction}},
		Knobs: []Knob{{Name: OffPolicyLimit, High: 1000, Source: "DeepSeek-V3.2; TRL", Packing: Together,
			Doc: "Drops the tokens with a negative advantage of a row, if the mean over the row's tokens of log π_old − log π is above this limit, " +
				"in nats (OPSM). Leave it out for no such mask."}},
	},
	{
		Name: "supervised", Kind: Imitation, Paper: "ours", Doc: "−log π of supervised tokens, which have no other term",
		Reads: []batch.Column{batch.Supervised}, Metrics: []Metric{{Name: SupervisedLoss}},
	},
	{
		Name: "kl_by_token", Kind: Weighing, Paper: "SCoRe (arXiv 2409.12917)", Doc: "a coefficient of the distance for each token",
		Reads: []batch.Column{batch.KLCoefficients},
	},
	value(Squared, "PPO (arXiv 1707.06347)", "half the squared error, or that of the clipped value if it is greater"),
	value(Promise, "AgentPRM (arXiv 2502.10325)", "the cross-entropy of a value that is the logit of a chance"),
}

// dualClip is a knob of every policy's program.
var dualClip = Knob{
	Name: DualClip, Low: 1, High: 1000, Packing: Always,
}

// ratioCap is the knob of both forms of DPPO.
var ratioCap = Knob{
	Name: RatioCap, High: 1e6, Default: 20, Source: verl + " (dppo_tv's clip_ratio_c)", Packing: Together,
	Doc: "The largest weight of a token in dppo_tv and dppo_kl.",
}

func distance(e loss.KLEstimator, doc string) Term {
	return Term{Name: string(e), Kind: Distance, Paper: "http://joschu.net/blog/kl-approx.html", Doc: doc, Reads: []batch.Column{batch.RefLogProbs}}
}

// value is a loss of critics. All have the same inputs, and one that reads no old values has no clip.
func value(name, paper, doc string) Term {
	return Term{
		Name: name, Kind: Value, Paper: paper, Doc: doc, Reads: []batch.Column{batch.Returns, batch.OldValues},
		Knobs:   []Knob{{Name: ValueClip, High: most, Packing: Always}},
		Metrics: []Metric{{Name: Loss}, {Name: ValueClipFraction}, {Name: ValueMean}},
	}
}
