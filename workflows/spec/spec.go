// Package spec is what a person starts a run with: the JSON of a Train
// workflow's input, decoded strictly, with every default in one place.
//
// Decode reads a document and reports all that is wrong with it at once. What
// is allowed in a field, its default and where the default comes from stand in
// one table, in defaults.go; what must hold between fields in relations.go.
// docs/spec.md is written from both. Train.JSON writes a spec so that equal
// specs have equal bytes; Diff says in what two specs differ.
//
// Settings are the part of a spec that can change while a run goes on; Apply
// checks a change against the same table. Derive computes the sizes that
// follow from a spec and a model. The package does no I/O, knows no
// environment and is safe to use in workflow code.
package spec

import "github.com/reprise-rl/reprise/workflows/collapse"

// Train is the specification of a run. What Decode returns has its defaults
// filled in; with rollout.prompt_tokens besides, it is what spec.json keeps.
// Ranges, defaults and their sources are in docs/spec.md.
type Train struct {
	// Description is free text for people; it changes nothing.
	Description string `json:"description,omitempty"`
	// Seed is the run's seed, from 0 to 2^53: every draw of the run has it in its address.
	Seed uint64 `json:"seed"`
	// Iterations is the number of rollout-update iterations, those of From included.
	Iterations int `json:"iterations"`
	// From is another run's iteration that this run goes on from; nil begins anew.
	From *From `json:"from,omitempty"`
	// The rest is told at each type.
	Policy      Policy      `json:"policy"`
	Environment Environment `json:"environment"`
	Rollout     Rollout     `json:"rollout"`
	Selection   Selection   `json:"selection"`
	Credit      Credit      `json:"credit"`
	Update      Update      `json:"update"`
	Critic      Critic      `json:"critic"`
	Freshness   Freshness   `json:"freshness"`
	Snapshot    Snapshot    `json:"snapshot"`
	Evaluation  Evaluation  `json:"evaluation"`
	// Collapse is the detectors' config, and what is done when one fires.
	Collapse collapse.Config `json:"collapse"`
	// Diagnostics are RAGEN-2's figures of mutual information.
	Diagnostics Diagnostics `json:"diagnostics"`
	// Report is when a page for people is written.
	Report Report `json:"report"`
	// CommonRandom lets all branches draw what branch 0 draws.
	CommonRandom bool   `json:"common_random"`
	Limits       Limits `json:"limits"`
}

// From names a committed iteration of another run: the run begins with the policy
// that it made, under other settings, and its first iteration is the next one.
type From struct {
	Run       string `json:"run"`
	Iteration int    `json:"iteration"`
	// Branch is the iteration's; −1 is the line of the newest branch.
	Branch int `json:"branch"`
}

// Policy says where the policy starts.
type Policy struct {
	// From is "starter", "hf:NAME" (a hub name, optionally NAME@REVISION),
	// "folder:PATH" (a Hugging Face folder, as the host worker sees it) or
	// "model:SHA12" (a model already in the store).
	From string `json:"from"`
	// ComputeDtype is the dtype of activations, "float32" or "bfloat16".
	// Master weights and moments are always float32.
	ComputeDtype string `json:"compute_dtype"`
	// Starter describes the starter policy; absent unless From is "starter".
	Starter *Starter `json:"starter,omitempty"`
	// WarmStart teaches the policy before the first iteration.
	WarmStart WarmStart `json:"warm_start"`
}

// WarmStart is supervised learning before the first iteration: Steps updates on
// Rows transcripts each. Transcripts of random play teach the format and nothing
// of the task; those of a solver's play are demonstrations. With demonstrations
// alone it is the paper's SFT baseline (arXiv 2504.20073, §6.6 of its tables).
type WarmStart struct {
	// Steps is the number of updates; 0 teaches nothing.
	Steps int `json:"steps"`
	// Rows is the transcripts of an update.
	Rows         int     `json:"rows"`
	LearningRate float64 `json:"learning_rate"`
	// Demonstrations is the share of transcripts that the environment's solver plays, from 0 to 1.
	Demonstrations float64 `json:"demonstrations"`
	// Seed draws the transcripts; runs with other seeds can share one warm start.
	Seed uint64 `json:"seed"`
}

// Starter is the shape of a policy made from nothing.
type Starter struct {
	// Layers is the number of decoder layers.
	Layers int `json:"layers"`
	// HiddenSize and IntermediateSize are the widths of the residual stream and of SwiGLU.
	HiddenSize       int `json:"hidden_size"`
	IntermediateSize int `json:"intermediate_size"`
	// Heads and KVHeads are the heads of queries, and of keys and values.
	Heads   int `json:"heads"`
	KVHeads int `json:"kv_heads"`
	// Seed draws the first weights, so that runs with other seeds can share one starter.
	Seed uint64 `json:"seed"`
}

// Rollout is how trajectories are made. An iteration has Groups × GroupSize of them.
type Rollout struct {
	// Groups is the number of initial states, GroupSize the trajectories of each.
	Groups    int `json:"groups"`
	GroupSize int `json:"group_size"`
	// Turns is the most turns of a trajectory.
	Turns int `json:"turns"`
	// MaxNewTokens is the most tokens sampled in a turn.
	MaxNewTokens int `json:"max_new_tokens"`
	// Temperature is that of sampling and of log-probs, never 0.
	Temperature float64 `json:"temperature"`
	// Think asks for <think>…</think> before the answer.
	Think bool `json:"think"`
	// FormatPenalty is added once to a turn that Penalty charges.
	FormatPenalty float64 `json:"format_penalty"`
	// Penalty says which turns it is added to: "no_action" or "any_invalid".
	Penalty string `json:"penalty"`
	// OverlongCache is the stretch of tokens below MaxNewTokens in which a turn's
	// reward falls by up to 1 (DAPO's soft overlong punishment); 0 is none.
	OverlongCache int `json:"overlong_cache"`
	// ContextTurns is how many turns a context shows, the one that begins
	// included; 0 shows all. What is shown does not change what counts: returns
	// are of all turns.
	ContextTurns int `json:"context_turns"`
	// PromptTokens are the widths of the context at each turn's start, one a
	// turn; resolved from the environment where absent.
	PromptTokens []int `json:"prompt_tokens,omitempty"`
}

// Selection is which groups an update learns from.
type Selection struct {
	// Method is "all", "top_fraction", "top_count", "top_p", "top_p_softmax" or "min_p".
	Method string `json:"method"`
	// Metric ranks the groups; "reward_std" is the sample standard deviation of the
	// penalised return.
	Metric string `json:"metric"`
	// Order is which end of the ranking is kept: "largest" or "smallest".
	Order string `json:"order"`
	// Keep is the fraction of groups that top_fraction keeps, Count the number that
	// top_count keeps, and P the share of top_p, top_p_softmax and min_p.
	Keep  float64 `json:"keep"`
	Count int     `json:"count"`
	P     float64 `json:"p"`
	// Slack is what top_p may miss its share by, in units of the score.
	Slack float64 `json:"slack"`
	// DropFlat leaves out the groups whose returns vary by no more than Floor.
	DropFlat bool    `json:"drop_flat"`
	Floor    float64 `json:"floor"`
	// Resample is the most rounds of a rollout: where too few groups vary, others are
	// rolled out (DAPO's dynamic sampling). 1 is none.
	Resample int `json:"resample"`
	// Reweight scales the advantages of a group by its deviation over the largest.
	Reweight bool `json:"reweight"`
	// LossScale makes an update of few groups smaller: "none", "linear" or "sqrt".
	LossScale string `json:"loss_scale"`
}

// Credit turns rewards into advantages.
type Credit struct {
	// Algorithm is one of the Credit… constants.
	Algorithm string `json:"algorithm"`
	// NormalizeByStd divides by the group's deviation (GRPO, GiGPO); without it the mean alone is subtracted.
	NormalizeByStd bool `json:"normalize_by_std"`
	// Epsilon is added to the deviation before dividing; Floor is the least that is divided by.
	Epsilon float64 `json:"epsilon"`
	Floor   float64 `json:"floor"`
	// Gamma discounts from token to token (GAE, REINFORCE++), or from turn to turn (GiGPO).
	Gamma float64 `json:"gamma"`
	// Lambda is GAE's λ over tokens; TurnGamma and TurnLambda are those of the turns,
	// and ValueAt where a turn's value is read (turn-level GAE).
	Lambda     float64 `json:"lambda"`
	TurnGamma  float64 `json:"turn_gamma"`
	TurnLambda float64 `json:"turn_lambda"`
	ValueAt    string  `json:"value_at"`
	// RewardAt says which tokens carry the rewards: "turns" or "end".
	RewardAt string `json:"reward_at"`
	// Whiten gives GAE's advantages mean 0 and deviation 1 over the batch.
	Whiten bool `json:"whiten"`
	// BaselineRate is how fast a state's value forgets (state_baseline).
	BaselineRate float64 `json:"baseline_rate"`
	// StepWeight is GiGPO's ω, the weight of the comparison of states.
	StepWeight float64 `json:"step_weight"`
}

// Update is the loss and the optimizer.
type Update struct {
	// LearningRate, Beta1, Beta2, AdamEpsilon and WeightDecay are AdamW's.
	LearningRate float64 `json:"learning_rate"`
	Beta1        float64 `json:"beta1"`
	Beta2        float64 `json:"beta2"`
	AdamEpsilon  float64 `json:"adam_epsilon"`
	WeightDecay  float64 `json:"weight_decay"`
	// MaxGradNorm is the global norm that gradients are scaled down to.
	MaxGradNorm float64 `json:"max_grad_norm"`
	// WarmupIterations is how long the learning rate rises, Decay how it falls
	// afterwards: "constant", "linear" or "cosine", to 0 behind the last iteration.
	WarmupIterations int    `json:"warmup_iterations"`
	Decay            string `json:"decay"`
	// Ratio is that of a token or of a whole row (GSPO): "token" or "sequence".
	Ratio string `json:"ratio"`
	// ClipLow and ClipHigh keep the ratio within 1−ClipLow and 1+ClipHigh.
	ClipLow  float64 `json:"clip_low"`
	ClipHigh float64 `json:"clip_high"`
	// ClipTurns are bounds by turn, the last of them for all that follow; none: the
	// two above for all.
	ClipTurns []Clip `json:"clip_turns,omitempty"`
	// DualClip bounds the loss of tokens with a negative advantage; 0 is off.
	DualClip float64 `json:"dual_clip"`
	// Aggregation is how the loss of tokens becomes that of a minibatch; Divisor is
	// constant's, 0 for turns × new tokens.
	Aggregation string  `json:"aggregation"`
	Divisor     float64 `json:"divisor"`
	// Epochs is how often an update goes over its rows, in minibatches of so many
	// rows; 0 is all.
	Epochs    int `json:"epochs"`
	Minibatch int `json:"minibatch"`
	// KLIn is where the distance from the reference counts: "none", "loss" or
	// "reward". KLEstimator estimates it, KLCoefficient is its weight.
	KLIn          string  `json:"kl_in"`
	KLEstimator   string  `json:"kl_estimator"`
	KLCoefficient float64 `json:"kl_coefficient"`
	// EntropyCoefficient is the weight of the entropy bonus.
	EntropyCoefficient float64 `json:"entropy_coefficient"`
	// MicroBatch is the rows of a micro-batch: the unit of memory, and of bits.
	MicroBatch int `json:"micro_batch"`
}

// Critic is the optimizer and the loss of the critic, where credit needs one: a
// second model of the policy's shape with a value head, which begins as a copy of
// the first policy. The rest of AdamW's knobs, and the minibatches, are the
// update's.
type Critic struct {
	LearningRate float64 `json:"learning_rate"`
	WeightDecay  float64 `json:"weight_decay"`
	// MaxGradNorm is the global norm that its gradients are scaled down to.
	MaxGradNorm float64 `json:"max_grad_norm"`
	// Clip bounds how far a value moves from the old one; 0 is off.
	Clip float64 `json:"clip"`
}

// Freshness is how often a rollout is learned from. Old log-probs stay those of the
// policy that rolled out.
type Freshness struct {
	// Online is the updates of a rollout that is as many times as large: each learns
	// from the next rollout.groups groups (RAGEN's Online-k).
	Online int `json:"online"`
	// Reuse is the updates that learn from the same batch.
	Reuse int `json:"reuse"`
	// ReplayIterations is how far back the replay buffer goes, 0 for none, and
	// ReplayShare the share of an update's rows that are drawn from it.
	ReplayIterations int     `json:"replay_iterations"`
	ReplayShare      float64 `json:"replay_share"`
}

// Clip bounds the ratio of a turn's tokens to 1−Low and 1+High.
type Clip struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// Snapshot is how often the full training state is stored.
type Snapshot struct {
	// Every is in iterations; the last iteration always has one.
	Every int `json:"every"`
	// Retain is how many of the newest are kept; 0 keeps all.
	Retain int `json:"retain"`
}

// Evaluation is when a run is measured, and on which fixed suites.
type Evaluation struct {
	// Every is in iterations; 0 turns evaluation off. Otherwise the first policy and the last are always evaluated.
	Every int `json:"every"`
	// Seed, Instances, Samples and Temperature are those of every suite that has
	// none of its own; see Suite.
	Seed        uint64  `json:"seed"`
	Instances   int     `json:"instances"`
	Samples     int     `json:"samples"`
	Temperature float64 `json:"temperature"`
	// Suites are what is measured, in this order; the first stands in summaries.
	Suites []Suite `json:"suites,omitempty"`
}

// Diagnostics say how much the policy's reasoning tells of the prompt.
type Diagnostics struct {
	// Every is in iterations; 0 never.
	Every int `json:"every"`
	// Samples is how many reasonings are looked at.
	Samples int `json:"samples"`
}

// Report says when a run's page is written to the store, beside its artifacts.
type Report struct {
	// AtEnd writes it when the run has ended.
	AtEnd bool `json:"at_end"`
}

// Limits bound what a kill can cost.
type Limits struct {
	// ActivitySeconds is the longest an activity may run; longer work is cut into chunks.
	ActivitySeconds int `json:"activity_seconds"`
}
