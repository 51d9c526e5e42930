package collapse

import (
	"slices"

	"github.com/reprise-rl/reprise/infra/store/canon"
)

// The figures that the rules read. Those of RAGEN and verl have their names.
const (
	// MetricReward is the mean of the environment's rewards of a trajectory.
	MetricReward = "reward/mean"
	// MetricRewardStd is the mean over the groups of the sample standard deviation (n−1)
	// of the penalised rewards.
	MetricRewardStd = "rollout/in_group_reward_std"
	// MetricEntropy is the mean entropy of the policy at the sampled tokens, in nats.
	MetricEntropy = "actor/entropy"
	// MetricGradNorm is the global norm of the policy's gradient before clipping.
	MetricGradNorm = "actor/grad_norm"
	// MetricDistinct is distinct-2 inside groups, mean over the groups: see package
	// model/diversity.
	MetricDistinct = "rollout/distinct_2"
	// MetricSimilarity is the mean pairwise similarity inside groups, from 0 to 1.
	MetricSimilarity = "rollout/in_group_similarity"
	// MetricExecutable is the share of turns with at least one executable action.
	// If it is missing, MetricValid is used.
	MetricExecutable = "rollout/executable_turns"
	// MetricValid is the share of trajectories whose every turn was well-formed.
	MetricValid = "valid/mean"
	// MetricSuccess is the share of trajectories that reached the goal.
	MetricSuccess = "success/mean"
	// MetricSelected is the number of rows that an update learns from.
	MetricSelected = "rollout/selected_rows"
	// MetricSkipped counts the policy's optimizer steps that were skipped because they
	// were not finite; MetricCriticSkipped counts the critic's.
	MetricSkipped       = "actor/skipped"
	MetricCriticSkipped = "critic/skipped"
	// MetricRolloutDiff is the mean difference, without its sign, of the sampler's log-probs
	// from Score's at the sampled tokens, in nats; MetricRolloutDiffMax is the greatest.
	// MetricToolCalls stands for the calls of each tool an episode.
	MetricToolCalls      = "train/ENVIRONMENT/TOOL_calls"
	MetricRolloutDiff    = "training/rollout_logprob_diff_mean"
	MetricRolloutDiffMax = "training/rollout_logprob_diff_max"
	// MetricDiffering counts the tokens of a micro-batch whose log-prob is not the sampler's, to the bit.
	// The others are of the first of them: the trajectory's row, the token's place in it, and both log-probs.
	MetricDiffering      = "exact/differing_tokens"
	MetricDifferingRow   = "exact/row"
	MetricDifferingToken = "exact/token"
	MetricSamplerLogProb = "exact/sampler"
	MetricTrainerLogProb = "exact/trainer"
)

// The rules' names, as the config and the events have them.
const (
	RewardStd      = "reward_std"
	EntropyFall    = "entropy_fall"
	EntropyRise    = "entropy_rise"
	GradNorm       = "grad_norm"
	Distinct       = "distinct"
	Similarity     = "similarity"
	Executable     = "executable"
	Validation     = "validation"
	EmptySelection = "empty_selection"
	NonFinite      = "non_finite"
	RolloutDiff    = "training_rollout_diff"
	NotExact       = "not_exact"
	NoSignal       = "no_signal"
	NoFormat       = "no_format"
	EntropyUniform = "entropy_uniform"
	ToolCalls      = "tool_calls"
	EchoTrap       = "echo_trap"
)

// Severity says how far a collapse has gone when its rule fires.
type Severity string

const (
	// Early signs come before the reward falls; what was learned is still there.
	Early Severity = "early"
	// Late signs come with or after the fall.
	Late Severity = "late"
)

// Rule is one detector: what it looks at, when it fires, where that comes from.
// Its numbers are in the Config.
type Rule struct {
	// Name is the rule's name in the config and in events.
	Name string
	// Metrics are the figures it reads: the first that is there, or for non_finite
	// all of them.
	Metrics []string
	// Severity of its events.
	Severity Severity
	// Doc is the rule in words.
	Doc string
	// Source is where the rule and its defaults come from.
	Source string
	// Remedy says what to do; it is part of the event's text. Only the optional rules have one.
	Remedy string

	says      string    // what an event says in place of the figure and its threshold
	fromStart bool      // it departs only until the first value that does not
	what      string    // the figure, in the text of an event
	against   reference // what the figure is measured by
	above     bool      // it departs upwards
	rest      bool      // the figure is 1 minus the metric
	narrowing bool      // excused if the task is solved
	details   []string  // further figures of its evidence
	by        cause
}

// reference is what a figure is measured by.
type reference int

const (
	early   reference = iota // mean of the first WarmUp values
	average                  // EMA
	best                     // highest EMA
	lowest                   // lowest EMA
	fixed                    // the number in the config
)

// cause is what a figure describes, and so which iteration caused it.
type cause int

const (
	byRollout    cause = iota // version n in iteration n: iteration n−1 made it
	byUpdate                  // the update of iteration n
	byEvaluation              // version n+1, which iteration n made
)

// Rules lists the detectors in the order of their events.
func Rules() []Rule { return append([]Rule(nil), rules...) }

var rules = slices.Concat(plainRules, optionalRules, []Rule{echoTrap})

var plainRules = []Rule{
	{
		Name: RewardStd, Metrics: []string{MetricRewardStd}, Severity: Early,
		what: "the in-group reward deviation", against: early, narrowing: true,
		Doc:    "The in-group deviation of the reward is below a fraction of its early level for some iterations in a row.",
		Source: "arXiv 2504.20073, section 4.2: the first sign. RAGEN v2 stops below 10 % of the mean of the first 10 steps, 10 in a row; ours is 20 % of the first 5, 5 in a row, since an early sign is of use only early. Deviation: a step with an empty selection counts, a solved task does not.",
	},
	{
		Name: EntropyFall, Metrics: []string{MetricEntropy}, Severity: Early,
		what: "the entropy", against: average, narrowing: true,
		Doc:    "The entropy is below a fraction of its own average for some iterations in a row: it falls faster than the average follows (with the defaults, by more than about 7 % an iteration).",
		Source: "arXiv 2504.20073, section 4.2: a sharp drop, where a steady slow decay is healthy. The numbers are ours.",
	},
	{
		Name: EntropyRise, Metrics: []string{MetricEntropy}, Severity: Early,
		what: "the entropy", against: lowest, above: true,
		Doc:    "The entropy is above a multiple of the lowest it has been, smoothed, for some iterations in a row: the policy comes apart. In a healthy run the entropy decays, so that its lowest level is where it is now.",
		Source: "arXiv 2504.20073, section 4.2: entropy that climbs (GRPO on Bandit and Sokoban). The numbers are ours.",
	},
	{
		Name: GradNorm, Metrics: []string{MetricGradNorm}, Severity: Late,
		what: "the gradient norm", against: average, above: true, by: byUpdate,
		Doc:    "The norm of the policy's gradient, before clipping, is above a multiple of its own average for some iterations in a row. A single spike is not a sign: healthy runs have them, and clipping takes the edge off.",
		Source: "arXiv 2504.20073, section 4.2: the spike after which nothing comes back. The numbers are ours.",
	},
	{
		Name: Distinct, Metrics: []string{MetricDistinct}, Severity: Early,
		what: "distinct-2 inside groups", against: early, narrowing: true,
		Doc:    "The share of different bigrams among those of a group is below a fraction of its early level for some iterations in a row.",
		Source: "distinct-n: arXiv 1510.03055. arXiv 2504.20073, section 4.2: reasoning that repeats itself. The numbers are ours.",
	},
	{
		Name: Similarity, Metrics: []string{MetricSimilarity}, Severity: Early,
		what: "the dissimilarity inside groups", against: early, rest: true, narrowing: true,
		Doc:    "One minus the mean pairwise similarity inside groups is below a fraction of its early level for some iterations in a row: the members say the same.",
		Source: "arXiv 2504.20073, section 4.2, as above. The numbers are ours.",
	},
	{
		Name: Executable, Metrics: []string{MetricExecutable, MetricValid}, Severity: Late,
		what: "the share of turns with an executable action", against: best,
		Doc:    "The share of turns with an executable action is below a fraction of its best level for some iterations in a row: the format is being lost.",
		Source: "Ours, from runs that lost their format.",
	},
	{
		Name: Validation, Metrics: []string{MetricSuccess}, Severity: Late,
		what: "the success of the evaluation", against: fixed, by: byEvaluation,
		Doc:    "The success of the evaluation is below a threshold for some evaluations in a row.",
		Source: "RAGEN v2: below 1 % for 5 validations.",
	},
	{
		Name: EmptySelection, Metrics: []string{MetricSelected}, Severity: Late,
		what: "the number of selected rows", against: fixed,
		Doc:    "No group was selected for some iterations in a row: there is nothing to learn from.",
		Source: "RAGEN v2: 5 consecutive empty filtered batches.",
	},
	{
		Name: NonFinite, Severity: Late, against: fixed, above: true, by: byUpdate,
		Metrics: slices.Concat(ofSteps, ofUpdate, ofRollout),
		what:    "the number of figures that are not finite",
		Doc:     "A figure of the policy, of the critic or of an update is NaN or infinite, or an optimizer step was left out because its gradient was.",
		Source:  "Ours; verl leaves such steps out and goes on (RAGEN #52, #55: runs that go on to say nothing but \"!!!!\").",
	},
	{
		Name: RolloutDiff, Metrics: []string{MetricRolloutDiff}, Severity: Early,
		what: "the mean difference of the sampler's log-probs from the training program's", against: fixed, above: true,
		Doc:    "The sampler and the training program disagree on the sampled tokens by more than a bound. The update corrects for its own version of the policy, not for this difference.",
		Source: "verl's training/rollout_probs_diff; the difference is rounding in float32, and grows with bfloat16. Off unless the spec gives the bound.",
	},
	{
		Name: NotExact, Metrics: []string{MetricDiffering}, Severity: Early,
		what: "the number of tokens whose log-prob is not the sampler's", against: fixed, above: true,
		details: []string{MetricDifferingRow, MetricDifferingToken, MetricSamplerLogProb, MetricTrainerLogProb},
		Doc:     "With `policy.exact`: a token's log-prob, computed again before the update, is not the sampler's, to the bit. It stops the run, because what was sampled was not the policy's: weights are stale, an adapter is another one's, or a device computes wrong.",
		Source:  "Ours. The sign has no threshold: TitanRL, miles and Tunix hold the difference at exactly 0.",
	},
}

// The metrics that rule non_finite reads. The first list counts what was left out. A
// value of the last is measured before the update: the policy came with it into its
// iteration.
var (
	ofSteps  = []string{MetricSkipped, MetricCriticSkipped}
	ofUpdate = []string{
		"actor/loss", "actor/pg_loss", "actor/kl_loss", MetricGradNorm, "actor/ppo_kl", "actor/ratio_max",
		"critic/vf_loss", "critic/grad_norm",
	}
	ofRollout = []string{
		MetricEntropy, "critic/vpred_mean", "reward/mean", MetricRewardStd, MetricRolloutDiff, MetricRolloutDiffMax,
	}
)

// seen is what a rule saw in an iteration.
type seen struct {
	value    canon.Float
	evidence []Evidence
	by       cause
}

// look reads the rule's figure; false if there is none.
func (r Rule) look(m Metrics) (seen, bool) {
	if r.Name == NonFinite {
		return lookNonFinite(m)
	}
	for _, name := range r.Metrics {
		v, ok := m[name]
		if !ok {
			continue
		}
		s := seen{value: v, evidence: []Evidence{{name, v}}, by: r.by}
		if r.rest {
			s.value = 1 - v
		}
		for _, detail := range r.details {
			if v, ok := m[detail]; ok {
				s.evidence = append(s.evidence, Evidence{detail, v})
			}
		}
		return s, v.Finite()
	}
	return seen{}, false
}

// lookNonFinite counts the figures that are not finite.
func lookNonFinite(m Metrics) (seen, bool) {
	s := seen{by: byUpdate}
	count := func(name string, v canon.Float) {
		s.value++
		s.evidence = append(s.evidence, Evidence{name, v})
	}
	for _, name := range ofSteps {
		if v := m[name]; v > 0 {
			count(name, v)
		}
	}
	for _, name := range ofUpdate {
		if v, ok := m[name]; ok && !v.Finite() {
			count(name, v)
		}
	}
	for _, name := range ofRollout {
		if v, ok := m[name]; ok && !v.Finite() {
			count(name, v)
			s.by = byRollout
		}
	}
	return s, len(m) > 0
}

func ruleOf(name string) Rule {
	for _, r := range rules {
		if r.Name == name {
			return r
		}
	}
	return Rule{}
}
