package activities

// MetricDoc says what metrics of an iteration mean.
type MetricDoc struct {
	// Names are as in manifests. Words in capitals stand for names and numbers of the run, without a slash.
	Names []string
	// Meaning is Markdown, with links from the folder docs. "If" and "with" say when the metrics are there.
	Meaning string
}

// MetricSection has the metrics of one origin.
type MetricSection struct {
	Title   string
	Metrics []MetricDoc
}

// MetricDocs are all metrics of an iteration. docs/metric-names.md is written from them; a metric that a test's iteration
// commits has an entry.
var MetricDocs = []MetricSection{
	{"The rollout: all trajectories, selected or not", []MetricDoc{
		{[]string{"reward/mean", "reward/penalised_mean"}, "the environment's rewards of an episode; with the penalties for the format and for length"},
		{[]string{"success/mean", "valid/mean", "truncated/mean"}, "share of episodes that solved their task; in which every turn executed an action, wrote no illegal one and was not cut; that a length limit cut"},
		{[]string{"response_length/mean", "turns/mean"}, "sampled tokens and turns of an episode"},
		{[]string{"rollout/trajectories", "rollout/selected_rows"}, "episodes of the rollout; those that were selected"},
		{[]string{"rollout/rounds"}, "rounds of the rollout, if there may be several (`freshness.online`, `selection.resample`)"},
		{[]string{"rollout/searched_turns", "rollout/searched_tokens"}, "with `rollout.search`, turns of rows that the search generated and did not keep, and their sampled tokens. `rollout/trajectories` and the figures of episodes are of those that it kept"},
		{[]string{"success/in_a_row"}, "with `stop.success`, for how many iterations in a row up to this one `success/mean` was at least `stop.success.at_least`"},
		{[]string{"rollout/sampled_tokens", "rollout/sampled_tokens_total"}, "with `stop.sampled_tokens`, the tokens that the rollout sampled, dropped ones with them and inherited ones once; those of the branch so far"},
		{[]string{"rollout/inherited_turns", "rollout/inherited_tokens"}, "with `rollout.search` tree, turns that a trajectory has from another one before it, and their sampled tokens: sampled once, learned from once. All other figures of turns and episodes count them in every trajectory"},
		{[]string{"pivots/number", "pivots/saved"}, "with `rollout.search` pivots, the failed trajectories from which branches were sampled, and the share of them of which a branch succeeded. All figures of the rollout are then of the trajectories from the root"},
		{[]string{"agent/conversations", "agent/own/NAME"}, "with an [agent](agents.md): how many of an episode's calls begin a context anew, and the mean of a figure that the agent gave. Evaluations have these too"},
		{[]string{"tools/calls", "tools/NAME/calls"}, "with [tools](tools.md): calls of the policy an episode, and those of a tool that it answered. Evaluations have these too"},
		{[]string{"tools/invalid", "tools/failed", "tools/killed", "tools/cut"}, "share of the calls that no tool could answer; of the others, those that a tool could not do, and, if there were any, those that had to be killed and those whose answer lost its end (`environment.result_tokens`)"},
		{[]string{"broken/mean", "broken/left_out"}, "share of episodes in which a [foreign environment](own-environments.md) broke; share that is left out, with their groups. Evaluations have them too"},
		{[]string{"broken/redrawn"}, "with `environment.on_broken: redraw`, share of episodes in which it broke and that were drawn again without breaking"},
		{[]string{"verdicts/failed", "verdicts/COMPONENT/mean"}, "with a [judge](own-environments.md#a-judge-of-your-own): share of the episodes that it was asked about and gave no verdict about, which are left out (`broken/left_out`); mean of a component of its verdicts over episodes, or with `level: turn` over turns, without the weight"},
		{[]string{"judge/again", "judge/unreadable"}, "with a [language model as a judge](rewards.md#a-language-model-as-a-judge): share of its replies of which the first could not be read and the second could, and of which neither could"},
		{[]string{"rollout/executable_turns"}, "share of turns that executed an action"},
		{[]string{"rollout/in_group_reward_std", "rollout/chosen_in_group_reward_std"}, "mean standard deviation of the returns in a group: of all groups, of those with a selected member"},
		{[]string{"rollout/distinct_N", "rollout/in_group_similarity"}, "how much the sampled texts differ ([diversity.go](../model/diversity/diversity.go))"},
		{[]string{"train/ENVIRONMENT/success", "train/ENVIRONMENT/reward", "train/ENVIRONMENT/pass@N"}, "of each environment: successes, rewards, and groups of N with a success"},
		{[]string{"train/ENVIRONMENT/num_actions", "train/ENVIRONMENT/action_is_effective", "train/ENVIRONMENT/action_is_valid"}, "executed actions of an episode; share of them that changed the state; share of the written actions that were legal"},
		{[]string{"train/ENVIRONMENT/searches", "train/ENVIRONMENT/clicks", "train/ENVIRONMENT/purchases", "train/ENVIRONMENT/cut_pages"}, "of webshop, an episode"},
		{[]string{"train/ENVIRONMENT/TOOL_calls", "train/ENVIRONMENT/call_is_valid"}, "if there are tools: calls of each an episode; share of the calls that the tool could answer"},
		{[]string{"reward/MODULE/mean", "reward/weighted_mean"}, "with [rewards in parts](rewards.md): the part, without its weight; the sum that selection and credit read"},
		{[]string{"attempts/first", "attempts/second", "attempts/gain", "attempts/corrected", "attempts/spoiled"}, "with the module `improvement`: share of episodes whose first turn is right, whose second is, and the difference; that were corrected, and spoiled"},
		{[]string{"thought/length_mean", "thought/claims", "thought/wrong_share"}, "if `diagnostics.thoughts` ([rewards](rewards.md#what-a-thought-says-of-the-state))"},
		{[]string{"collapse_first_turn_sample/FIGURE", "collapse_trajectory_sample/FIGURE"}, "every `diagnostics.every` iterations, with thoughts: information of reasonings about their prompts ([names.go](../model/mutual/names.go))"},
	}},
	{"The scores", []MetricDoc{
		{[]string{"actor/entropy"}, "mean entropy at the sampled tokens of the selected rows, in nats; with `selection.metric: exact_entropy` of all rows"},
		{[]string{"training/rollout_logprob_diff_mean", "training/rollout_logprob_diff_max"}, "difference of the sampler's log-probs from the training program's, in nats: of all selected rows where they are scored, else of the micro-batch that is scored again before the update ([exact](exact.md))"},
		{[]string{"exact/differing_tokens"}, "tokens of a micro-batch whose log-prob, scored again before the update, is not the sampler's, to the bit ([exact](exact.md))"},
		{[]string{"exact/row", "exact/token", "exact/sampler", "exact/trainer"}, "of the first such token: its trajectory's row, its place, both log-probs"},
	}},
	{"Credit and the batch", []MetricDoc{
		{[]string{"critic/advantages/max", "critic/advantages/min"}, "the extremes, with the selection's weights"},
		{[]string{"critic/advantages/alone"}, "of `blockwise`: turns that were compared with no other"},
		{[]string{"critic/vf_explained_var"}, "with a critic: 1 − Var(G − V)/Var(G)"},
		{[]string{"prm/loss", "prm/pairs", "prm/right", "prm/reward_size"}, "of `istar`: the process reward model's loss over the pairs of a success and a failure of one group; how many pairs; the share in which it prefers the success; the mean size of its step rewards"},
		{[]string{"agents/ROLE/turns", "agents/ROLE/advantage_mean", "agents/ROLE/advantage_std", "agents/ROLE/amplification"}, "of `dr_mas`: turns of a trajectory; mean and deviation of their advantages, without the selection's weights; how much larger the role's gradient would be with the group's mean and deviation"},
		{[]string{"actor/reward_kl_penalty", "actor/reward_kl_penalty_coeff"}, "if `update.kl_in` is reward: distance from the reference, as the mean over rows of the mean over their sampled tokens, and its weight"},
		{[]string{"passes/turn_K/ratio_mean"}, "of `update.passes`: the mean over rows of the ratio by which the pass of turn K changed the probability of the turn, as the geometric mean of its tokens"},
		{[]string{"passes/turn_K/correction_mean", "passes/turn_K/correction_min", "passes/turn_K/correction_max"}, "of `update.passes`: the corrections M after the pass of turn K"},
		{[]string{"rollout/small_advantages"}, "rows that `selection.least_advantage` left out"},
		{[]string{"supervised/rows", "supervised/successes"}, "of `update.supervised`: rows added; rows of this rollout's successful episodes, if it is own_successes"},
		{[]string{"training/staleness_mean", "training/staleness_max"}, "of `freshness` and `rollout.lag`: how many updates ago the version was made that sampled the batch's rows"},
	}},
	{"The update: means over its optimizer steps", []MetricDoc{
		{[]string{"actor/loss", "actor/pg_loss"}, "the whole loss; the surrogate"},
		{[]string{"actor/grad_norm", "actor/lr"}, "gradient norm before clipping; the learning rate"},
		{[]string{"actor/pg_clipfrac", "actor/pg_clipfrac_lower"}, "share of tokens where the clip acts; where the dual clip acts"},
		{[]string{"actor/ppo_kl", "actor/approx_kl"}, "distance from the old log-probs: k1, k3"},
		{[]string{"actor/teacher_kl"}, "if there is a teacher: the mean over the sampled tokens of log π − log π_T, in nats, before the update"},
		{[]string{"actor/teacher_shown"}, "if `teacher.from` is self: the share of the rows for which there was something to show"},
		{[]string{"actor/ratio_max"}, "the largest |ρ − 1| of a token, in all steps"},
		{[]string{"actor/kl_loss", "actor/kl_coef"}, "if `update.kl_in` is loss: distance from the reference, and its weight"},
		{[]string{"actor/skipped", "critic/skipped"}, "steps that were skipped, because loss or gradient was not finite"},
		{[]string{"actor/steps_left_out", "actor/trajectory_kl"}, "of `update.stop_kl`: steps that were not made; the largest distance of a step's trajectories from the policy that sampled them, in nats a trajectory"},
		{[]string{"actor/off_policy_masked_fraction"}, "of `update.off_policy_limit`: share of tokens that were dropped"},
		{[]string{"rollout_corr/rollout_is_mean", "rollout_corr/rollout_is_max", "rollout_corr/rollout_is_eff_sample_size", "rollout_corr/rollout_rs_masked_fraction", "rollout_corr/k3_kl"}, "of `update.mismatch`: the weights' mean, largest and effective sample size; share of tokens that were dropped; distance of the batch from the sampler"},
		{[]string{"supervised/loss"}, "of `update.supervised`: mean −log π of the supervised tokens, in nats"},
		{[]string{"critic/vf_loss", "critic/vf_clipfrac", "critic/vpred_mean", "critic/grad_norm", "critic/lr"}, "with a critic: loss, share of clipped tokens, mean value, gradient norm, learning rate"},
		{[]string{"prm/grad_norm", "prm/lr", "prm/skipped"}, "of `istar`: gradient norm and learning rate of the process reward model; 1 if its step was skipped"},
	}},
}
