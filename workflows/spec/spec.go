// Package spec is what a person starts a run with: the JSON of a Train
// workflow's input, decoded strictly, with every default in one place.
//
// Decode reads a document and reports all that is wrong with it at once. One table, in
// defaults.go, says what is allowed in a field, its default and where the default comes
// from; relations.go says what must hold between fields. docs/spec.md is written from
// both, so the types here do not repeat what a field means. Train.JSON writes a spec so
// that equal specs have equal bytes; Diff says in what two specs differ.
//
// Settings are the part of a spec that can change during a run; Apply checks a change
// against the same table. Derive computes the sizes that follow from a spec and a model.
// The package does no I/O, knows no environment and is safe to use in workflow code.
package spec

import (
	"cmp"
	"encoding/json"

	"github.com/reprise-rl/reprise/model/option"
	"github.com/reprise-rl/reprise/workflows/collapse"
)

// Train is the specification of a run. The result of Decode has its defaults filled in;
// with rollout.prompt_tokens it is what spec.json keeps.
type Train struct {
	Description string `json:"description,omitempty"`
	Seed        uint64 `json:"seed"`
	Iterations  int    `json:"iterations"`
	// From is nil in a run that is not forked.
	From   *From  `json:"from,omitempty"`
	Policy Policy `json:"policy"`
	// Teacher is nil in a run without one.
	Teacher     *Teacher    `json:"teacher,omitempty"`
	Environment Environment `json:"environment"`
	Rollout     Rollout     `json:"rollout"`
	// Rewards are parts of the reward beside the environment's own; nil for none.
	Rewards      []Reward        `json:"rewards,omitempty"`
	Selection    Selection       `json:"selection"`
	Credit       Credit          `json:"credit"`
	Update       Update          `json:"update"`
	Critic       Critic          `json:"critic"`
	Freshness    Freshness       `json:"freshness"`
	Snapshot     Snapshot        `json:"snapshot"`
	Evaluation   Evaluation      `json:"evaluation"`
	Collapse     collapse.Config `json:"collapse"`
	Diagnostics  Diagnostics     `json:"diagnostics"`
	Report       Report          `json:"report"`
	CommonRandom bool            `json:"common_random"`
	Limits       Limits          `json:"limits"`
	// Stop is left out where a run ends after its iterations alone.
	Stop Stop `json:"stop,omitzero"`
	// Schedule are settings as functions of the iteration; nil for none.
	Schedule []Scheduled `json:"schedule,omitempty"`
}

// From names a committed iteration of another run: the run begins with the policy
// that it made, under other settings, and its first iteration is the next one.
type From struct {
	Run       string `json:"run"`
	Iteration int    `json:"iteration"`
	// Branch −1 is the line of the newest branch.
	Branch int `json:"branch"`
}

// Policy says where the policy starts.
type Policy struct {
	// From is "starter", "hf:NAME" (a hub name, optionally NAME@REVISION),
	// "folder:PATH" (a Hugging Face folder, as the host worker sees it) or
	// "model:SHA12" (a model already in the store); Origin takes it apart.
	From string `json:"from"`
	// Base is the base model, as From, if From names adapters; empty means the one that they
	// name.
	Base         string `json:"base,omitempty"`
	ComputeDtype string `json:"compute_dtype"`
	// Exact says that the sampler's log-probs are the trainer's, to the bit; see ScoredBySampler.
	Exact bool `json:"exact"`
	// ChatTemplateKwargs are the variables of the chat template, a JSON object in canonical
	// form; nil if none are written. Package chat reads them.
	ChatTemplateKwargs json.RawMessage `json:"chat_template_kwargs,omitempty"`
	// LoRA is nil if all weights are trained. If From names adapters, a run's resolved spec
	// has theirs.
	LoRA *LoRA `json:"lora,omitempty"`
	// Starter is absent unless From is "starter".
	Starter   *Starter  `json:"starter,omitempty"`
	WarmStart WarmStart `json:"warm_start"`
}

// WarmStart is supervised learning before the first iteration. Transcripts of random play
// teach the format and nothing about the task; transcripts of a solver's play are
// demonstrations. With demonstrations alone it is the paper's SFT baseline (arXiv
// 2504.20073, §6.6 of its tables).
type WarmStart struct {
	Steps          int     `json:"steps"`
	Rows           int     `json:"rows"`
	LearningRate   float64 `json:"learning_rate"`
	Demonstrations float64 `json:"demonstrations"`
	// Claims has thoughts say something of the state, at random, in the tags that the reward
	// `state` reads. It is left out where it is false, so that such a spec has the bytes it had
	// before the field.
	Claims bool   `json:"claims,omitempty"`
	Seed   uint64 `json:"seed"`
}

// Starter is the shape of a policy made from nothing.
type Starter struct {
	Layers           int    `json:"layers"`
	HiddenSize       int    `json:"hidden_size"`
	IntermediateSize int    `json:"intermediate_size"`
	Heads            int    `json:"heads"`
	KVHeads          int    `json:"kv_heads"`
	Seed             uint64 `json:"seed"`
	// Tokenizer is 0 where it is left out, so that such a spec has the bytes it had before
	// the field; that is the first.
	Tokenizer int `json:"tokenizer,omitempty"`
}

// Rollout is how trajectories are made. An iteration has Groups × GroupSize of them.
type Rollout struct {
	Groups        int     `json:"groups"`
	GroupSize     int     `json:"group_size"`
	Turns         int     `json:"turns"`
	MaxNewTokens  int     `json:"max_new_tokens"`
	Temperature   float64 `json:"temperature"`
	Think         bool    `json:"think"`
	Subgoals      bool    `json:"subgoals,omitempty"` // asked for in the thought
	FormatPenalty float64 `json:"format_penalty"`
	Penalty       string  `json:"penalty"`
	OverlongCache int     `json:"overlong_cache"`
	// ContextTurns bounds what a context shows, not what counts: returns are of all
	// turns.
	ContextTurns int `json:"context_turns"`
	// Context are rules that shorten older observations; nil for none.
	Context []ContextCut `json:"context,omitempty"`
	// PromptTokens are resolved from the environment if absent.
	PromptTokens []int `json:"prompt_tokens,omitempty"`
	// Agent is the agent that plays the episodes; "" is the protocol of this program.
	Agent string `json:"agent,omitempty"`
	// PassRows is 0 where it is left out, so that such a spec has the bytes it had before
	// the field; see [Rollout.Pass].
	PassRows int `json:"pass_rows,omitempty"`
	// BlockRows is 0 where it is left out; see [Rollout.Block].
	BlockRows int `json:"block_rows,omitempty"`
	// Workers is how many device workers sample blocks at once, the session's among them; 0 where it
	// is left out, as 1.
	Workers int `json:"workers,omitempty"`
	// Lag is 1 if a rollout is sampled by the version before the one that is updated on it, and 0 if
	// not.
	Lag int `json:"lag,omitempty"`
	// ChunkTokens is how many tokens of a row one execution samples at most; 0 is a whole
	// turn. It changes no bit, but the programs.
	ChunkTokens int `json:"chunk_tokens,omitempty"`
	// KeepValues is left out where it is false, so that such a spec has the bytes it had before
	// the field.
	KeepValues bool `json:"keep_values,omitempty"`
	// Prefill is PrefillGroups or PrefillRows; it is "" where it is left out, which is PrefillRows, so that
	// such a spec has the bytes it had before the field. See [Rollout.SharedPrompts].
	Prefill string `json:"prefill,omitempty"`
	// Search is "" where it is left out.
	Search string `json:"search,omitempty"`
	// Own are the fields of single searches, which stand beside the others in JSON.
	Own option.Values `json:"-"`
	// TurnLimit is 0 where it is left out; see [RolloutSettings.Limit].
	TurnLimit int `json:"turn_limit,omitempty"`
	// Protocol is the wording of prompts: a name ("" is "reprise"), "file:" and the path of a
	// file with templates or, in a resolved spec, "text:" and the file's text.
	Protocol string `json:"protocol,omitempty"`
	// StopAt are the texts that end a turn; none if it is nil or empty. Nil is left out, so that such
	// a spec has the bytes it had before the field.
	StopAt []string `json:"stop_at,omitzero"`
}

// DefaultPassRows is how many rows a device generates for at once.
const DefaultPassRows = 64

// Pass is how many rows a device generates for at once.
func (r Rollout) Pass() int {
	if r.PassRows == 0 {
		return DefaultPassRows
	}
	return r.PassRows
}

// Block is the unit of a rollout: the rows that share slots, or those of a pass.
func (r Rollout) Block() int { return cmp.Or(r.BlockRows, r.Pass()) }

// AppendTokens is how many tokens of a row one execution appends in a turn after the first, where
// rollout.keep_values: what a turn adds to the context at its widest, or a reply if that is more.
func (r Rollout) AppendTokens(turn int) int {
	width, before := r.PromptTokens[turn-1], r.PromptTokens[turn-2]
	return min(width, max(width-before, r.MaxNewTokens))
}

// Selection is which groups an update learns from.
type Selection struct {
	// Method and Metric are names of selection.Methods and selection.Metrics.
	Method string  `json:"method"`
	Metric string  `json:"metric"`
	Order  string  `json:"order"`
	Keep   float64 `json:"keep"`
	Count  int     `json:"count"`
	P      float64 `json:"p"`
	Slack  float64 `json:"slack"`
	// DropFlat leaves out the groups whose returns vary by no more than Floor.
	DropFlat  bool    `json:"drop_flat"`
	Floor     float64 `json:"floor"`
	Resample  int     `json:"resample"`
	Reweight  bool    `json:"reweight"`
	LossScale string  `json:"loss_scale"`
	// The fields below are left out where they are 0.

	// Members is how many members of a kept group the update learns from; 0 is all.
	Members int `json:"members,omitzero"`
	// MemberMetric is a name of selection.MemberMetrics; see MembersBy.
	MemberMetric string `json:"member_metric,omitzero"`
	// DropTruncated leaves out the groups with a trajectory that a limit cut.
	DropTruncated bool `json:"drop_truncated,omitzero"`
	// LeastAdvantage leaves rows out of the update whose advantages are all smaller.
	LeastAdvantage float64 `json:"least_advantage,omitzero"`
}

// Credit turns rewards into advantages. It has the fields of credit.Options, so that one
// converts to the other.
type Credit struct {
	// Algorithm is a name of methods.Algorithms.
	Algorithm      string  `json:"algorithm"`
	NormalizeByStd bool    `json:"normalize_by_std"`
	Epsilon        float64 `json:"epsilon"`
	Floor          float64 `json:"floor"`
	Gamma          float64 `json:"gamma"`
	Lambda         float64 `json:"lambda"`
	TurnGamma      float64 `json:"turn_gamma"`
	TurnLambda     float64 `json:"turn_lambda"`
	ValueAt        string  `json:"value_at"`
	RewardAt       string  `json:"reward_at"`
	Whiten         bool    `json:"whiten"`
	BaselineRate   float64 `json:"baseline_rate"`
	StepWeight     float64 `json:"step_weight"`
	// Own are the fields of single algorithms, which stand beside the others in JSON.
	Own option.Values `json:"-"`
}

// Update is the loss and the optimizer, AdamW.
type Update struct {
	LearningRate     float64 `json:"learning_rate"`
	Beta1            float64 `json:"beta1"`
	Beta2            float64 `json:"beta2"`
	AdamEpsilon      float64 `json:"adam_epsilon"`
	WeightDecay      float64 `json:"weight_decay"`
	MaxGradNorm      float64 `json:"max_grad_norm"`
	WarmupIterations int     `json:"warmup_iterations"`
	Decay            string  `json:"decay"`
	Ratio            string  `json:"ratio"`
	ClipLow          float64 `json:"clip_low"`
	ClipHigh         float64 `json:"clip_high"`
	// ClipTurns, if there are any, replace ClipLow and ClipHigh; see Clip.
	ClipTurns []Clip  `json:"clip_turns,omitempty"`
	DualClip  float64 `json:"dual_clip"`
	// The fields from here to Supervised are 0 or empty where they are left out; see
	// Terms, Knobs, Mismatch and Supervised.
	Surrogate      string   `json:"surrogate,omitempty"`
	TauPositive    float64  `json:"tau_positive,omitempty"`
	TauNegative    float64  `json:"tau_negative,omitempty"`
	RatioCap       float64  `json:"ratio_cap,omitempty"`
	OffPolicyLimit float64  `json:"off_policy_limit,omitempty"`
	Mismatch       Mismatch `json:"mismatch,omitzero"`
	// Supervised is zero in a run without supervised rows.
	Supervised Supervised `json:"supervised,omitzero"`
	// Passes is zero in a run whose updates have one pass.
	Passes Passes `json:"passes,omitzero"`
	// StopKL ends an update before the first step whose minibatch's trajectories are further from the old log-probs, in
	// nats a trajectory; 0 is never.
	StopKL float64 `json:"stop_kl,omitempty"`

	Aggregation string  `json:"aggregation"`
	Divisor     float64 `json:"divisor"`
	Epochs      int     `json:"epochs"`
	// Own are the fields of single methods, which stand beside the others in JSON.
	Own           option.Values `json:"-"`
	Minibatch     int           `json:"minibatch"`
	KLIn          string        `json:"kl_in"`
	KLEstimator   string        `json:"kl_estimator"`
	KLCoefficient float64       `json:"kl_coefficient"`
	// KLFirstTurn is 0 where it is left out: then KLCoefficient is that of all turns.
	KLFirstTurn float64 `json:"kl_first_turn,omitempty"`
	// ReferenceEvery is the iterations of a stage, whose first version is its reference; 0: version 0
	// is that of the whole run.
	ReferenceEvery     int     `json:"reference_every,omitempty"`
	EntropyCoefficient float64 `json:"entropy_coefficient"`
	MicroBatch         int     `json:"micro_batch"`
	// Shards is 0 where it is left out: then an optimizer step is one shard.
	Shards int `json:"shards,omitempty"`
	// Widths is 0 where it is left out: then all micro-batches are as wide as the longest row.
	Widths int `json:"widths,omitempty"`
	// Recompute is empty where it is left out; see [Train.WithSizes].
	Recompute string `json:"recompute,omitempty"`
}

// Critic is the optimizer and the loss of the critic, if credit needs one. The critic is
// a second model of the policy's shape with a value head, and begins as a copy of the
// first policy. The rest of AdamW's knobs, and the minibatches, are the update's.
type Critic struct {
	LearningRate float64 `json:"learning_rate"`
	WeightDecay  float64 `json:"weight_decay"`
	MaxGradNorm  float64 `json:"max_grad_norm"`
	Clip         float64 `json:"clip"`
}

// Freshness is how often a rollout is learned from. Old log-probs are always from the
// policy that rolled out.
type Freshness struct {
	Online           int     `json:"online"`
	Reuse            int     `json:"reuse"`
	ReplayIterations int     `json:"replay_iterations"`
	ReplayShare      float64 `json:"replay_share"`
}

// Clip bounds the ratio of a turn's tokens to 1−Low and 1+High.
type Clip struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// Snapshot is how often the full training state is stored, in iterations.
type Snapshot struct {
	Every  int `json:"every"`
	Retain int `json:"retain"`
}

// Evaluation is when a run is measured, and on which fixed suites.
type Evaluation struct {
	Every int `json:"every"`
	// Seed, Instances, Samples and Temperature are the defaults of every suite; see
	// Suite.
	Seed        uint64  `json:"seed"`
	Instances   int     `json:"instances"`
	Samples     int     `json:"samples"`
	Temperature float64 `json:"temperature"`
	// Suites are what is measured, in this order; summaries show the first.
	Suites []Suite `json:"suites,omitempty"`
}

// Diagnostics measure how much information the policy's reasoning has about the prompt
// (RAGEN-2).
type Diagnostics struct {
	Every   int `json:"every"`
	Samples int `json:"samples"`
	// Thoughts is left out where it is false, so that such a spec has the bytes it had
	// before the field.
	Thoughts bool `json:"thoughts,omitempty"`
}

// Report says when a run's page is written to the store, beside its artifacts.
type Report struct {
	AtEnd bool `json:"at_end"`
}

// Limits bound what a kill can cost. A step of a device that would take longer is cut into
// pieces of so many rows, one activity each: a piece leaves a table, so that a kill costs
// that piece alone, and the last one puts the tables together. The pieces of an update leave
// their sums in the worker's memory, and a kill costs the update so far. The bytes of the
// whole do not depend on where it was cut, since pieces end where passes and micro-batches do.
type Limits struct {
	ActivitySeconds int `json:"activity_seconds"`
	// StepFailures is 0 where it is left out, so that such a spec has the bytes it had
	// before the field; see [Limits.Failures].
	StepFailures int `json:"step_failures,omitempty"`
	// DeviceGB is 0 where it is left out; see [Limits.DeviceBytes].
	DeviceGB int `json:"device_gb,omitempty"`
	// GenerateRows is the rows of a piece of Generate, a multiple of Rollout.Pass;
	// ScoreRows is the rows of a piece of Score and Diagnose, a multiple of
	// Update.MicroBatch. 0 is all rows in one. See [Train.WithSizes].
	GenerateRows int `json:"generate_rows,omitempty"`
	ScoreRows    int `json:"score_rows,omitempty"`
	// UpdateRows is the rows of a piece of Update, a multiple of Update.MicroBatch. Its pieces
	// also end by time, after half of ActivitySeconds, and 0 is by time alone.
	UpdateRows int `json:"update_rows,omitempty"`
	// SnapshotMiB is the size of a piece of a snapshot, whose files are sent one after the
	// other; 0 is the whole snapshot in one.
	SnapshotMiB int `json:"snapshot_mib,omitempty"`
}

// DefaultStepFailures is how often in a row a step of a session fails before its run
// pauses.
const DefaultStepFailures = 5

// DeviceBytes is the memory of the device that the sizes of a run are chosen for.
func (l Limits) DeviceBytes() int64 { return int64(cmp.Or(l.DeviceGB, DefaultDeviceGB)) << 30 }

// Failures is how often in a row a step of a session may fail: at that many the run
// pauses.
func (l Limits) Failures() int { return cmp.Or(l.StepFailures, DefaultStepFailures) }
