package spec

import (
	"fmt"
	"strings"

	"github.com/reprise-rl/reprise/model/cost"
	"github.com/reprise-rl/reprise/model/loss"
	"github.com/reprise-rl/reprise/model/loss/terms"
	"github.com/reprise-rl/reprise/workflows/collapse"
)

// Where the defaults come from.
const (
	fromPaper = "paper (arXiv 2504.20073)"
	fromRagen = "RAGEN default"
	fromVerl  = "verl default, as RAGEN runs it"
	fromTorch = "PyTorch AdamW default"
	fromOurs  = "ours"
)

// DefaultDeviceGB is the memory of the device that a run is made for, in GiB: an H100's.
const DefaultDeviceGB = 80

const (
	// maxTurns bounds the turns of a trajectory: every turn has two artifacts
	// an iteration, and its own context width.
	maxTurns = 100
	// maxRounds bounds the rounds of a rollout, and maxUpdates the iterations that
	// learn from one.
	maxRounds  = 10
	maxUpdates = 16
	// maxTokens bounds the width of a context.
	maxTokens = 131072
	// maxOptions bounds an environment's options in bytes, so that a spec that
	// was read can be read again in canonical form, where numbers may be longer.
	maxOptions = 1 << 18
	// maxSeed is the largest integer that every JSON reader keeps.
	maxSeed = 1 << 53
	// snapshotShare is the share of the time that snapshots may take.
	snapshotShare = 0.05
	// keepShare of the device's memory may be a run's that keeps its activations. The rest is for
	// the driver, for what the allocator cannot use, and for the error of the estimate.
	keepShare = 0.85
	// mostEvery bounds the iterations between two snapshots that are chosen so.
	mostEvery = 1000
	// maxPieces bounds the pieces of a step: a run carries the names of their tables.
	maxPieces = 64
	// loadedChunk is the chunk of a pretrained model, in tokens: half a minute for 64 rows
	// of 494 M parameters on two cores, a second on a GPU.
	loadedChunk = 32
	// loadedWidths and loadedShards divide the optimizer steps of a pretrained model, the former
	// from rows of wideRow tokens on: below that, compiling costs more than the widths save.
	loadedWidths = 3
	wideRow      = 512
	loadedShards = 8
	// minTemperature keeps logits divided by the temperature within float32.
	minTemperature = 0.01
)

func between(low, high float64) span { return span{low: low, high: high} }

// rules are the fields of a spec in the order of its types, with every default. A
// default that differs between the starter (a model of about a million parameters,
// trained from nothing) and a pretrained model is given for both. This table is the only
// place that says what a field means and what it may be; docs/spec.md is written from it.
var rules = withOwn(withKnobs([]*rule{
	{path: "description", typ: typeString, value: "", source: fromOurs,
		text: printable(1000), textAllowed: "a text of at most 1000 characters without control characters",
		doc: "Free text for people; it changes nothing."},
	{path: "seed", typ: typeSeed, value: uint64(10000), span: between(0, maxSeed), source: fromRagen,
		doc: "The run's seed. Every random draw of the run has it in its address. Evaluations have a seed of their own."},
	{path: "iterations", typ: typeInteger, value: 200, span: between(1, 1_000_000), source: fromPaper,
		doc: "How many times the run rolls out and updates."},

	{path: "from.run", typ: typeString, source: fromOurs,
		text: checkRun, textAllowed: "the id of a run",
		doc: "Forks another run at an iteration, under this spec. The new run starts with the policy, moments and critic that the iteration made; its first iteration is the next one. Nothing is copied: the first manifest names the other run's manifest as its parent, so the other run's batches must stay."},
	{path: "from.iteration", typ: typeInteger, span: between(0, 1_000_000), source: fromOurs,
		doc: "The iteration to fork, counted from 0. Required."},
	{path: "from.branch", typ: typeInteger, span: between(-1, 1_000_000), source: fromOurs,
		doc: "The branch of that iteration; −1 (default) follows the newest branch and its ancestors."},

	{path: "policy.from", typ: typeString, value: FromStarter, source: fromOurs,
		text: checkOrigin, textAllowed: originAllowed,
		doc: "Where the policy starts: a tiny model made from nothing (starter), a model of the Hugging Face hub, a Hugging Face folder on the host worker, or a model that is already in the store. A folder or a model of the hub may also be LoRA adapters, as PEFT writes them."},
	{path: "policy.base", typ: typeString, source: fromOurs,
		text: checkBase, textAllowed: modelAllowed,
		doc: "The base model, if `policy.from` names a folder of LoRA adapters as PEFT writes it. Left out, it is the hub's model that the adapters name; the start of the run writes it down."},
	{path: "policy.compute_dtype", typ: typeString, starter: "float32", loaded: "bfloat16", enum: []string{"float32", "bfloat16"}, source: fromOurs + " for the starter; " + fromVerl,
		doc: "The dtype of activations, and of the copy of the matrices that all programs read, which each update makes anew. Master weights, gradients and moments are always float32."},
	{path: "policy.chat_template_kwargs", typ: typeOptions, node: checkVariables, textAllowed: variablesAllowed, source: fromOurs,
		doc: "Variables that the model's chat template reads, as transformers' apply_chat_template takes them: `{\"enable_thinking\": false}` for Qwen3, `{\"date_string\": \"26 Jul 2024\"}` for Llama 3. See docs/models.md."},
	{path: "policy.lora.rank", typ: typeInteger, starter: 8, loaded: 64, span: between(1, 4096), source: fromOurs + " for the starter; " + fromRagen + " (base-lora)",
		doc: "Trains adapters of this rank over frozen weights (LoRA, arXiv 2106.09685), if there is an object `policy.lora`; without one all weights are trained. If `policy.from` names adapters, all of the object is theirs. See docs/lora.md."},
	{path: "policy.lora.alpha", typ: typeNumber, starter: 16.0, loaded: 64.0, span: span{low: 0, high: 1e6, openLow: true}, source: fromOurs + " for the starter; " + fromRagen,
		doc: "The adapters' product is multiplied by alpha / rank."},
	{path: "policy.lora.targets", typ: typeNames, value: cost.LinearMaps[:], enum: cost.LinearMaps[:], short: allLinear, source: fromRagen,
		doc: "The linear maps of each layer that have adapters."},
	{path: "policy.lora.rslora", typ: typeBool, value: false, source: fromOurs,
		doc: "Multiplies by alpha / √rank instead (rsLoRA, arXiv 2312.03732)."},
	{path: "policy.lora.seed", typ: typeSeed, value: uint64(1), span: between(0, maxSeed), source: fromOurs,
		doc: "Seed of the initial adapters. Their product is 0 at first, so version 0 computes what the base model does."},
	{path: "policy.starter.layers", typ: typeInteger, starter: 4, span: between(1, 64), source: fromOurs,
		doc: "Decoder layers of the starter."},
	{path: "policy.starter.hidden_size", typ: typeInteger, starter: 128, span: between(8, 4096), source: fromOurs,
		doc: "Width of the residual stream."},
	{path: "policy.starter.intermediate_size", typ: typeInteger, starter: 384, span: between(8, 16384), source: fromOurs,
		doc: "Width of the SwiGLU layer."},
	{path: "policy.starter.heads", typ: typeInteger, starter: 4, span: between(1, 64), source: fromOurs,
		doc: "Attention heads (of queries)."},
	{path: "policy.starter.kv_heads", typ: typeInteger, starter: 2, span: between(1, 64), source: fromOurs,
		doc: "Heads of keys and values (grouped-query attention)."},
	{path: "policy.starter.seed", typ: typeSeed, starter: uint64(1), span: between(0, maxSeed), source: fromOurs,
		doc: "Draws the first weights. It is not the run's seed, so that runs with different seeds can share one starter."},
	{path: "policy.starter.tokenizer", typ: typeInteger, span: between(1, 2), source: fromOurs,
		doc: "The starter's tokenizer. 1 (default) has 768 tokens: the words of our protocol, the grids, the bandit and countdown. 2 continues it to 2,048: tags of other protocols (subgoals, switches, observations), claims, tools, roles, second attempts, WebShop's pages with the words of a small catalogue, and common English. The output layer is wider; a page of WebShop has less than half the tokens."},
	{path: "policy.warm_start.steps", typ: typeInteger, starter: 150, loaded: 0, decided: fmt.Sprintf("%d (0 where the environment's actions are not known)", formatSteps), span: between(0, 100_000), source: fromOurs,
		doc: "Supervised updates before the first iteration; 0 leaves the policy as it is. The actions of a foreign environment are known if its description lists them."},
	{path: "policy.warm_start.rows", typ: typeInteger, starter: 32, loaded: 128, decided: fmt.Sprintf("%d (128 if demonstrations are written)", formatRows), span: between(1, 4096), source: fromOurs + "; " + fromRagen + " (SFT) with demonstrations",
		doc: "Transcripts in each of these updates."},
	{path: "policy.warm_start.learning_rate", typ: typeNumber, starter: 1e-3, loaded: 1e-5, decided: fmt.Sprintf("%s, with adapters %s (0.00001 if demonstrations are written)", formatNumber(formatRate), formatNumber(formatAdapterRate)), span: span{low: 0, high: 1, openLow: true}, source: fromOurs,
		doc: "Learning rate of these updates."},
	{path: "policy.warm_start.demonstrations", typ: typeNumber, starter: 0.0, loaded: 1.0, decided: "0 too", span: between(0, 1), source: fromOurs,
		doc: "The share of transcripts in which the environment's solver plays. The others are random play in the right format: they teach the format and nothing about the task. With 1 the warm start is the paper's SFT baseline. A spec of another policy than the starter that writes a share above 0 asks for fine-tuning on the task, so that rows and learning_rate, where it leaves them out, are RAGEN's for it."},
	{path: "policy.warm_start.claims", typ: typeBool, source: fromOurs,
		doc: "Thoughts of the transcripts are an observation and a prediction of random claims, instead of random words: the format that the reward `state` reads, and nothing about the task. `rewards` must have `state`. Tokenizer 2 has a token for each of their words."},
	{path: "policy.warm_start.seed", typ: typeSeed, value: uint64(1), span: between(0, maxSeed), source: fromOurs,
		doc: "Draws the transcripts. It is not the run's seed, so that runs with different seeds can share one warm start."},

	{path: "environment.name", typ: typeString, source: fromOurs,
		text: checkEnvironmentName, textAllowed: "the name of an environment",
		doc: "The environment, by its registered name. Required if there is no mixture."},
	{path: "environment.options", typ: typeOptions, source: fromOurs,
		doc: "The environment's own options; `reprise env list` lists them. They are kept in canonical form: sorted keys, shortest numbers."},
	{path: "environment.mixture", typ: typeObjects, elements: partRules, most: maxParts, source: fromOurs + " (RAGEN: es_manager's tags)",
		doc: "Several environments in one run, instead of a name. Each group plays one of them, in proportion to the shares."},
	{path: "environment.broken_share", typ: typeNumber, span: span{low: 0, high: 1, openLow: true}, source: fromOurs,
		doc: "The largest share of a rollout's or an evaluation's episodes in which a foreign environment may break (raise an error, or show more than its `widest`). Beyond it the run pauses and says which episodes broke; nothing of that turn is stored, and a resumed run asks about it again. Broken episodes are never a reward: they are left out of all figures and of the update, a group of which fewer than half of the members, or fewer than two, are left is left out whole. Default with the environment `foreign`: 0.05."},
	{path: "environment.on_broken", typ: typeString, enum: []string{Drop, Redraw}, source: fromOurs,
		doc: "What happens to a training episode in which a foreign environment breaks. `drop` leaves it out. `redraw` asks about it again with other chance, at most twice: at its beginning the episode is another one of the same instance; later it continues if the actions it has had lead to the same under the new chance, and is left out if they do not. Episodes that are drawn again count for `environment.broken_share`. Evaluations never draw again. Left out: drop."},
	{path: "environment.timeout_seconds", typ: typeInteger, span: between(1, 3600), source: fromOurs,
		doc: "How long a foreign environment may take to answer one call about up to 64 episodes, three times in a row. At most `limits.activity_seconds`. Default with the environment `foreign`: 60, or `limits.activity_seconds` if that is less."},

	{path: "rollout.groups", typ: typeInteger, value: 8, span: between(1, 4096), source: fromPaper,
		doc: "Initial states an iteration. The trajectories of one initial state are a group."},
	{path: "rollout.group_size", typ: typeInteger, value: 16, span: between(1, 1024), source: fromPaper,
		doc: "Trajectories of a group. At least two if the advantage compares the members of a group."},
	{path: "rollout.turns", typ: typeInteger, value: 5, span: between(1, maxTurns), source: fromRagen,
		doc: "The largest number of turns of a trajectory."},
	{path: "rollout.max_new_tokens", typ: typeInteger, starter: 24, loaded: 400, span: between(1, 32768), source: fromOurs + " for the starter, whose vocabulary has a token for each word of the protocol; " + fromRagen,
		doc: "The largest number of tokens sampled in a turn."},
	{path: "rollout.temperature", typ: typeNumber, value: 1.0, span: between(minTemperature, 10), knob: true, source: fromRagen,
		doc: "The temperature of sampling, and of the log-probs that the update compares."},
	{path: "rollout.think", typ: typeBool, value: true, source: fromRagen,
		doc: "Asks for `<think>…</think>` before the answer."},
	{path: "rollout.subgoals", typ: typeBool, source: "HiPER (arXiv 2602.16165)",
		doc: "Asks in the thought for `<switch>` KEEP or SWITCH `</switch>` and for `<subgoal>…</subgoal>`, which `credit.algorithm` " + strings.Join(bySubgoals, ", ") + " reads. Transcripts of a warm start have random ones."},
	{path: "rollout.format_penalty", typ: typeNumber, value: -0.1, span: between(-1000, 0), source: fromRagen,
		doc: "Added once to the reward of each turn that `rollout.penalty` penalises."},
	{path: "rollout.penalty", typ: typeString, value: "no_action", enum: []string{"no_action", "any_invalid"}, source: fromPaper,
		doc: "Which turns are penalised: turns without an executable action (no_action, the paper), or also turns with any action that is not legal (any_invalid, RAGEN's code)."},
	{path: "rollout.overlong_cache", typ: typeInteger, value: 0, span: between(0, 32768), source: fromOurs + "; DAPO (arXiv 2503.14476): a fifth of the limit",
		doc: "How many tokens before `rollout.max_new_tokens` the overlong penalty begins; it grows to −1 at the limit (DAPO's soft overlong punishment). 0 turns it off."},
	{path: "rollout.context_turns", typ: typeInteger, value: 0, span: between(0, maxTurns), source: fromRagen + " (max_context_window −1)",
		doc: "How many turns a context shows, including the current one; 0 shows all. If a turn's context does not show everything before it, the turn is a row of its own in the update, with the return of all turns."},
	{path: "rollout.prompt_tokens", typ: typeIntegers, span: between(1, maxTokens), source: fromOurs,
		doc: "The width of the context at the start of each turn. Leave it out: the environment and the tokenizer give the widths."},

	{path: "rollout.pass_rows", typ: typeInteger, span: between(1, 4096), source: fromOurs,
		doc: "Rows that a device generates for at once, in a rollout and in an evaluation. It is the unit of memory and of bits: another number gives another run. Default: 64, or the half, the quarter and so on that `limits.device_gb` has room for, which the start of the run writes down."},
	{path: "rollout.block_rows", typ: typeInteger, span: between(2, 65536), source: fromOurs,
		doc: "Rows of a block, which are generated in the slots of a pass (`rollout.pass_rows`): a slot whose row has ended, or is not played any more, is given to the next row of the block. So a turn takes about as long as its mean length asks, not its longest. Blocks are what is dealt to devices. It decides bits. Left out: passes, whose slots stay empty when their rows have ended."},
	{path: "rollout.workers", typ: typeInteger, span: between(1, 64), source: fromOurs,
		doc: "Device workers that sample the blocks of a turn (`rollout.block_rows`) at once, the run's own among them. The others are workers of the same fingerprint on which no run has a session: they are taken only when they are free, each for a block, and never waited for. What is sampled does not depend on how many there are. The run's own worker stores what the sampler reads of each version, as an artifact. Evaluations stay on the run's own worker. Left out: 1."},
	{path: "rollout.lag", typ: typeInteger, span: between(0, 1), source: fromOurs + "; asynchronous training as in AReaL (arXiv 2505.24298), at most one version late",
		doc: "With 1 an iteration makes the next iteration's rollout before its update: rollout n + 1 is sampled by version n, scored by version n + 1, and version n + 1 learns from it with weights (`update.mismatch`). The manifest names the version that rolled out. The first iteration of a run, of a branch, and after another run (`from`), rolls out by its own version. An iteration's settings are fixed when its rollout begins. Left out: 0, the version that learns has sampled."},
	{path: "rollout.chunk_tokens", typ: typeInteger, span: between(1, 32768), source: fromOurs,
		doc: fmt.Sprintf("Tokens of a row that a device samples without a break. Nothing can interrupt a device meanwhile; between two chunks a step that was cancelled, or whose worker must stop, ends. It changes no result, but the programs. Leave it out: the start of a run writes %d down for a pretrained model that samples more in a turn; a starter samples a turn without a break.", loadedChunk)},

	{path: "rollout.keep_values", typ: typeBool, source: fromOurs,
		doc: "Keeps the keys and values of contexts between the turns of a rollout, in the device's memory. A turn then computes only the ids recorded since the turn before, not its whole context. What is kept follows from the recorded ids alone: a worker without it makes the same appends from the first turn on, and has the same bits. They differ from those of whole contexts by rounding, so it gives another run. Evaluations compute whole contexts. Left out: false."},
	{path: prefill, typ: typeString, loaded: PrefillGroups, enum: []string{PrefillGroups, PrefillRows}, source: fromOurs,
		doc: "What the first turn's prefills compute: the keys and values of a group's prompt once for all of its rows (groups), or for each row (rows). With groups a prefill has as many prompts as a pass or a block can have groups, two at least; an evaluation with several samples of an instance shares prompts too. How many prompts a prefill has decides how sums are rounded, so it gives another run. Left out: rows for the starter."},
	{path: "rollout.search", typ: typeString, enum: searches(anySearch), source: sourcesOfSearches(),
		doc: "Searches while rolling out, so that the trajectories of a group are the best of more. " + waysOfSearches() + " A turn that trajectories share is sampled once and learned from once. Evaluations never search. Left out: no search."},
	{path: "rollout.turn_limit", typ: typeInteger, span: between(1, maxTurns), knob: true, source: fromOurs + "; KLong (arXiv 2602.17547): growing limits",
		doc: "Ends a trajectory after fewer turns than `rollout.turns`, with the rewards that it has until then. Shapes stay those of `rollout.turns`, so a schedule can let it grow; evaluations have turns of their own. Left out: `rollout.turns`."},

	{path: "rollout.protocol", typ: typeString, loaded: examplesProtocol, text: checkProtocol, textAllowed: protocolAllowed, source: fromOurs,
		doc: "The wording of prompts. `reprise` is ours; `examples` is ours with replies made of the environment's own actions in the place of placeholders, which a small instruct model copies; `ragen` is that of RAGEN's code, whose hint of a length is `rollout.max_new_tokens`; `hiper` (subgoals) and `vagen` (an observation and a prediction) are those of their authors; file:PATH is a file with templates on the host worker (see docs/environments.md), whose text the start of the run writes down in its place (text:…). Replies are read the same. Left out: reprise for the starter. docs/paper.md lists how RAGEN's still differs."},

	{path: "rollout.stop_at", typ: typeTexts, loaded: []string{"</answer>"}, source: fromOurs,
		doc: "Texts that end a turn. A turn ends with the first sampled token at which the text of the turn's sampled tokens has one of them; that token is kept whole, even if its text goes on, and nothing after it is kept. The turn then counts as finished, not as cut by the length limit, and the token that closes a message follows unsampled. An empty array turns it off: turns end with the model's own tokens, or at `rollout.max_new_tokens`."},

	{path: "rewards", typ: typeObjects, elements: rewardRules, most: maxRewards, source: fromOurs + ", none",
		doc: "Parts of the reward beside the environment's own. Selection and credit read the weighted sum of all; `reward/mean`, success and the detectors of collapse stay on the environment's own. docs/rewards.md lists the modules."},

	{path: "selection.method", typ: typeString, value: "top_fraction", enum: selections(anyMethod), knob: true, source: fromPaper,
		doc: "Which groups an update learns from: " + waysOfSelection() + ". G is the number of groups; s is a group's score by `selection.metric`."},
	{path: "selection.metric", typ: typeString, value: "reward_std", enum: metrics(anyMetric), knob: true, source: fromPaper,
		doc: "The score that ranks the groups. Its rewards include penalties and are never normalised: `reward_std` is the sample standard deviation (n−1) of the returns. Entropies are estimated from the sampler's log-probs; `exact_entropy` scores every row before the selection instead, which takes 1/keep times as long."},
	{path: "selection.order", typ: typeString, value: "largest", enum: []string{"largest", "smallest"}, knob: true, source: fromRagen,
		doc: "Which end of the ranking is kept."},
	{path: "selection.keep", typ: typeNumber, value: 0.25, span: span{low: 0, high: 1, openLow: true}, knob: true, source: fromPaper,
		doc: "The fraction of groups kept by " + listed(methodsOf("keep"), "and") + ": ⌊keep × groups⌋ of them. Ranking by standard deviation is risk-seeking: the groups kept are the lucky ones."},
	{path: "selection.count", typ: typeInteger, value: 2, span: between(1, 4096), knob: true, source: fromOurs + ": a quarter of 8",
		doc: "The number of groups kept by " + listed(methodsOf("count"), "and") + "."},
	{path: "selection.p", typ: typeNumber, value: 0.9, span: between(0, 1), knob: true, source: "RAGEN-2 (arXiv 2604.06268)",
		doc: "The share p of " + listed(methodsOf("p"), "and") + "."},
	{path: "selection.slack", typ: typeNumber, value: 0.0, span: between(0, 1000), source: fromOurs + " (RAGEN-2: 0.01, which keeps nothing where scores are tiny)",
		doc: "How far top_p may miss its share, in units of the score."},
	{path: dropFlat, typ: typeBool, value: false, decided: "true with `credit.algorithm` " + listed(flatDropped, "and") + " unless there are supervised rows", knob: true, source: fromRagen + "; " + fromOurs + " for other policies",
		doc: "Before the method is applied, leaves out the groups whose returns vary by no more than `selection.floor`. If no group is left, the update is skipped and counted. Otherwise such groups, which teach nothing of the task, would still move the policy by the entropy bonus and by what the optimizer makes of rounding."},
	{path: "selection.floor", typ: typeNumber, value: 1e-10, span: between(0, 1000), source: "RAGEN-2",
		doc: "The standard deviation that returns must exceed to count as varying, for `selection.drop_flat` and `selection.resample`."},
	{path: "selection.resample", typ: typeInteger, value: 1, span: between(1, maxRounds), source: fromOurs + "; DAPO (arXiv 2503.14476) resamples",
		doc: "The largest number of rounds of a rollout; 1 never resamples. If fewer than `rollout.groups` groups vary by more than `selection.floor`, another round rolls out as many groups again. The method then chooses among the first groups that vary."},
	{path: "selection.reweight", typ: typeBool, value: false, knob: true, source: fromRagen + " (soft_advantage_reweight)",
		doc: "Scales the advantages of a group by its standard deviation over the largest one, instead of dropping groups."},
	{path: "selection.loss_scale", typ: typeString, value: "none", enum: []string{"none", "linear", "sqrt"}, knob: true, source: fromRagen + " (filter_loss_scaling)",
		doc: "Scales the advantages by the fraction of groups kept, or by its square root."},

	{path: "selection.members", typ: typeInteger, span: between(1, 4096), source: "GFPO (arXiv 2508.09726)",
		doc: "How many members of each kept group the update learns from: those that are highest by `selection.member_metric`. The others are as if they had not been sampled. Left out: all."},
	{path: "selection.member_metric", typ: typeString, enum: memberMetrics(), source: "GFPO: shortest",
		doc: "The score that ranks the members of a group: " + waysOfMembers() + ". Default: shortest."},
	{path: "selection.drop_truncated", typ: typeBool, source: "PyVision-RL (arXiv 2602.20739)",
		doc: "Before the method is applied, leaves out the groups with a trajectory that the length limit or the width of its context cut: such an episode says little about the policy."},
	{path: "selection.least_advantage", typ: typeNumber, span: span{low: 0, high: 1000, openLow: true}, source: "LOOP (arXiv 2502.01600): 0.01",
		doc: "Leaves the rows out of the update whose advantages are all smaller than this, in absolute value. If none is left, the update is skipped and counted."},

	{path: "credit.algorithm", typ: typeString, value: "grpo", enum: algorithms(anyAlgorithm), source: fromPaper,
		doc: "How rewards become advantages: " + waysOfCredit() + ". " + listed(withCritic, "and") + " make the run train a critic, " + listed(withPRM, "and") + " a process reward model in its place."},
	{path: "credit.normalize_by_std", typ: typeBool, value: true, knob: true, source: fromRagen,
		doc: "Divides by the group's standard deviation (" + readersOf("normalize_by_std") + "). If false, only the mean is subtracted."},
	{path: "credit.epsilon", typ: typeNumber, value: 1e-6, span: between(1e-12, 1), source: fromRagen,
		doc: "Added to the standard deviation before dividing."},
	{path: "credit.floor", typ: typeNumber, value: 0.0, span: between(0, 1000), knob: true, source: fromOurs,
		doc: "The smallest standard deviation to divide by; 0 sets no floor. Without a floor 16 pulls with one different outcome give an advantage of 3.75, however small the difference."},
	{path: "credit.gamma", typ: typeNumber, value: 1.0, span: between(0, 1), source: fromRagen + " (GiGPO: 0.95)",
		doc: "Discount from token to token, in gigpo from turn to turn (" + readersOf("gamma") + ")."},
	{path: "credit.lambda", typ: typeNumber, value: 1.0, span: between(0, 1), source: fromRagen,
		doc: "GAE's λ over tokens: 1 uses the returns alone, 0 relies on the critic (" + readersOf("lambda") + ")."},
	{path: "credit.turn_gamma", typ: typeNumber, value: 0.95, span: between(0, 1), source: fromRagen + " (high_level_gamma)",
		doc: "Discount from turn to turn (" + readersOf("turn_gamma") + ")."},
	{path: "credit.turn_lambda", typ: typeNumber, value: 1.0, span: between(0, 1), source: fromRagen,
		doc: "GAE's λ over turns (" + readersOf("turn_lambda") + ")."},
	{path: "credit.value_at", typ: typeString, value: "last_prompt_token", enum: []string{"last_prompt_token", "final_token"}, source: fromOurs + " (RAGEN: final_token)",
		doc: "Where a turn's value is read (" + readersOf("value_at") + "): before the turn's first sampled token, or at its last token, when most of what the turn decided is already known."},
	{path: "credit.reward_at", typ: typeString, value: "turns", enum: []string{"turns", "end"}, source: fromOurs + " (RAGEN: end)",
		doc: "Which tokens carry rewards (" + readersOf("reward_at") + "): the last sampled token of each turn has the reward of the turn (turns), or the last one of the trajectory has all rewards (end)."},
	{path: "credit.whiten", typ: typeBool, value: true, source: fromVerl,
		doc: "Scales the advantages of all tokens of a batch to mean 0 and standard deviation 1 (" + readersOf("whiten") + ")."},
	{path: "credit.baseline_rate", typ: typeNumber, value: 0.1, span: between(0, 1), source: fromOurs,
		doc: "The smallest share of a state's value that a new return replaces (" + readersOf("baseline_rate") + "); 0 gives the mean of all returns so far."},
	{path: "credit.step_weight", typ: typeNumber, value: 1.0, span: between(0, 1000), source: "GiGPO (arXiv 2505.10978); iStar (arXiv 2509.19199)",
		doc: "The weight of the comparison between turns (" + readersOf("step_weight") + "): GiGPO's ω, iStar's α."},

	{path: "update.learning_rate", typ: typeNumber, starter: 3e-4, loaded: 1e-6, span: between(0, 1), knob: true, source: fromOurs + " for the starter (1e-3 is unstable, 1e-4 three times slower); " + fromRagen,
		doc: "AdamW's learning rate, before warm-up and decay."},
	{path: "update.beta1", typ: typeNumber, value: 0.9, span: between(0, 0.999999), source: fromRagen,
		doc: "AdamW's decay of the first moment."},
	{path: "update.beta2", typ: typeNumber, value: 0.999, span: between(0, 0.999999), source: fromRagen,
		doc: "AdamW's decay of the second moment."},
	{path: "update.adam_epsilon", typ: typeNumber, value: 1e-8, span: between(1e-12, 1), source: fromTorch,
		doc: "AdamW's ε, which prevents division by zero."},
	{path: "update.weight_decay", typ: typeNumber, value: 0.01, span: between(0, 1), knob: true, source: fromVerl,
		doc: "AdamW's decoupled weight decay."},
	{path: "update.max_grad_norm", typ: typeNumber, value: 1.0, span: between(1e-6, 1e6), knob: true, source: fromVerl,
		doc: "The gradient is scaled down to this global norm."},
	{path: "update.warmup_iterations", typ: typeInteger, value: 0, span: between(0, 1_000_000), source: fromVerl,
		doc: "Linear warm-up of the learning rate over this many iterations."},
	{path: "update.decay", typ: typeString, value: "constant", enum: []string{"constant", "linear", "cosine"}, source: fromVerl,
		doc: "How the learning rate falls after the warm-up: it reaches 0 after the last iteration, unless it is constant."},
	{path: "update.ratio", typ: typeString, value: "token", enum: terms.Names(terms.Ratio), source: fromPaper,
		doc: "The ratio that is clipped: the ratio of each token, or the geometric mean of the ratios of a turn or of a row (GSPO, arXiv 2507.18071)."},
	{path: "update.clip_low", typ: typeNumber, value: 0.2, span: span{low: 0, high: 1, openLow: true, openHigh: true}, knob: true, source: fromPaper,
		doc: "The ratio of probabilities is clipped at 1 − clip_low."},
	{path: "update.clip_high", typ: typeNumber, value: 0.28, span: span{low: 0, high: 10, openLow: true}, knob: true, source: fromPaper + ": clip-higher",
		doc: "The ratio of probabilities is clipped at 1 + clip_high."},
	{path: "update.clip_turns", typ: typeObjects, elements: clipRules, most: maxTurns, source: fromOurs,
		doc: "Bounds by turn, instead of clip_low and clip_high: the first object is for turn 1, the last one also for all turns that follow."},
	{path: "update.dual_clip", typ: typeNumber, starter: 0.0, loaded: 3.0, span: span{low: 1, high: 1000, openLow: true, zero: "off"}, source: fromVerl + " (clip_ratio_c)",
		doc: "If the advantage A of a token is negative, its loss is at most −dual_clip × A."},
	{path: "update.surrogate", typ: typeString, enum: terms.Names(terms.Surrogate), source: fromPaper + ", clip; the others: docs/algorithms.md",
		doc: surrogatesDoc()},
	{path: "update.mismatch.regime", typ: typeString, enum: []string{Decoupled, Bypass}, source: fromVerl + " (rollout_correction)",
		doc: "How rows count that another policy sampled (`freshness`), or a program of other rounding. decoupled: stale rows are scored again when the update begins, the ratio compares with that, and each token has the weight w = π_old/π_rollout. bypass: the sampler's log-probs are the old ones, so the ratio has w in it. Left out: old log-probs are those of the policy that rolled out, without weights."},
	{path: "update.mismatch.weight", typ: typeString, enum: units(loss.NoWeight, loss.TokenWeight, loss.TurnWeight, loss.SequenceWeight), source: fromVerl + " (rollout_is)",
		doc: "What w is a product over: the token, the tokens of a turn, those of a row, or no weight. Default: token."},
	{path: "update.mismatch.cap", typ: typeNumber, span: span{low: 0, high: 1e9, openLow: true}, source: fromVerl + " (rollout_is_threshold)",
		doc: "The largest weight (truncated importance sampling); a product is capped as a whole. Default: 2."},
	{path: "update.mismatch.mask", typ: typeString, enum: units(loss.TokenWeight, loss.TurnWeight, loss.SequenceWeight, loss.Geometric), source: fromVerl + " (rollout_rs); TRL",
		doc: "Drops what has a w outside of mask_low to mask_high: tokens, turns or rows by their product (MIS; with weights by token, IcePop), or rows by the geometric mean of their tokens' w. Left out: nothing is dropped."},
	{path: "update.mismatch.mask_low", typ: typeNumber, span: span{low: 0, high: 1, openLow: true}, source: "IcePop: 0.5; long rows, geometric: 0.99",
		doc: "The smallest w that the mask keeps. Left out: no lower bound."},
	{path: "update.mismatch.mask_high", typ: typeNumber, span: between(1, 1e9), source: "IcePop: 5; TRL, rows: 3; long rows, geometric: 1.001",
		doc: "The largest w that the mask keeps. A mask needs it."},
	{path: "update.mismatch.veto", typ: typeNumber, span: span{low: 0, high: 1, openLow: true, openHigh: true}, source: fromVerl + ": 1e-4",
		doc: "Drops a row if a token of it has a w below this. Left out: no row is dropped for one token."},
	{path: "update.mismatch.normalize", typ: typeBool, source: fromVerl + " (rollout_is_batch_normalize)",
		doc: "Divides the weights by their mean over the tokens of the batch."},
	{path: "update.supervised.from", typ: typeString, enum: []string{Demonstrations, OwnSuccesses}, source: fromOurs + ", none",
		doc: "Adds rows to an update that are learned from by their log-likelihood. demonstrations: episodes of the environment's solver in fresh instances, as `policy.warm_start.demonstrations` writes them. own_successes: the successful episodes of the rollout, selected or not, and with `freshness.replay_iterations` those that recent updates learned from; fewer if there are fewer. Which ones is drawn for each iteration."},
	{path: "update.supervised.share", typ: typeNumber, span: span{low: 0, high: 1, openLow: true}, knob: true, source: fromOurs,
		doc: "The share of an update's rows that are supervised. 1 leaves the policy gradient out: own_successes are then rejection sampling (STaR, RAFT). A share below 1 is at most 0.9. Default: 0.25."},
	{path: "update.supervised.coefficient", typ: typeNumber, span: span{low: 0, high: 1000, openLow: true}, knob: true, source: fromOurs,
		doc: "What the mean negative log-likelihood of the supervised tokens is multiplied by, before it is added to the loss. Default: 1."},
	{path: "update.passes.order", typ: typeString, enum: []string{TurnsReversed}, source: fromOurs + ", none",
		doc: "Makes an update in several passes. turns_reversed (SeeUPO): one turn after another, the last one first, each an update of its own with old log-probs of the policy that it begins with. The advantages of a turn are multiplied by the correction M of their row, which is how far the passes before have changed the row's later turns. Left out: one update of all turns."},
	{path: "update.passes.clip_low", typ: typeNumber, span: span{low: 0, high: 1, openLow: true, openHigh: true}, source: "SeeUPO (arXiv 2602.06554)",
		doc: "A correction, and the ratio that it is multiplied by, are 1 − clip_low at least. Default: 0.2."},
	{path: "update.passes.clip_high", typ: typeNumber, span: span{low: 0, high: 10, openLow: true}, source: "SeeUPO (arXiv 2602.06554)",
		doc: "A correction, and the ratio that it is multiplied by, are 1 + clip_high at most. Default: 0.2."},
	{path: "update.stop_kl", typ: typeNumber, span: span{low: 0, high: 1000, openLow: true}, source: "LOOP (arXiv 2502.01600): 20",
		doc: "Ends an update after the first optimizer step in whose minibatch the mean of log π_old − log π over tokens is above this, in nats. Left out: every step is made."},
	{path: "update.aggregation", typ: typeString, value: "token_mean", enum: []string{"token_mean", "seq_mean_token_sum", "seq_mean_token_mean", "constant", "sum_constant", "turn_mean"}, source: fromVerl + " (loss_agg_mode)",
		doc: "How the losses of tokens become the loss of a minibatch: the mean over all tokens, or the mean over rows of their sums, of their means, or of their sums divided by a constant (Dr. GRPO). sum_constant is the sum over rows instead of the mean, as verl had it earlier. turn_mean is the mean over rows of the sums over turns of the means over the turn's tokens (blockwise advantages)."},
	{path: "update.divisor", typ: typeNumber, value: 0.0, span: between(0, 1e9), source: "Dr. GRPO (arXiv 2503.20783)",
		doc: "The constant of `update.aggregation`; 0 means `rollout.turns` × `rollout.max_new_tokens`."},
	{path: "update.epochs", typ: typeInteger, value: 1, span: between(1, 100), source: fromVerl + " (ppo_epochs)",
		doc: "How often an update goes over its rows."},
	{path: "update.minibatch", typ: typeInteger, value: 0, span: between(0, maxTrajectories), source: fromOurs + ", all; " + fromRagen + ": 32, which is all of 25 % of 128",
		doc: "Rows of an optimizer step; 0 means all. The order is drawn again in each epoch."},
	{path: "update.kl_in", typ: typeString, value: "none", enum: []string{KLNone, KLLoss, KLReward}, source: fromPaper + ": StarPO-S has none",
		doc: "Where the distance from the reference (version 0) counts: nowhere, in the loss (GRPO), or in the rewards (PPO)."},
	{path: "update.kl_estimator", typ: typeString, value: "k3", enum: terms.Names(terms.Distance), source: "GRPO (arXiv 2402.03300); verl: low_var_kl",
		doc: "How the distance is estimated at a token, with d = log π − log π_ref: " + estimatorsDoc() + ". In the loss the gradient of k1 has expectation 0; in the reward k1 is unbiased."},
	{path: "update.kl_coefficient", typ: typeNumber, value: 0.001, span: between(0, 1000), knob: true, source: fromPaper,
		doc: "Weight of the distance; it has an effect if `update.kl_in` is not none."},
	{path: "update.kl_first_turn", typ: typeNumber, span: span{low: 0, high: 1000, openLow: true}, knob: true, source: "SCoRe (arXiv 2409.12917)",
		doc: "The weight of the distance for the tokens of the first turn, instead of `update.kl_coefficient`, which is then that of later turns. A run can change it only if its spec has it. Left out: all turns have one weight."},
	{path: "update.reference_every", typ: typeInteger, span: between(1, 1_000_000), source: "AgentPRM (arXiv 2502.10325)",
		doc: "The reference is replaced every so many iterations, by the snapshot of the version of then. Left out: it stays version 0."},
	{path: "update.entropy_coefficient", typ: typeNumber, starter: 0.001, loaded: 0.0, span: between(0, 1), knob: true, source: fromRagen + " for the starter; " + fromOurs,
		doc: "Weight of the entropy bonus in the loss. Where no reward varies, the bonus is all that an update has, and AdamW makes full steps of it: with 0.001 it drove a published model from 3.7 nats to nearly uniform in ten iterations."},
	{path: "update.micro_batch", typ: typeInteger, starter: 16, loaded: 4, span: between(1, 1024), source: fromOurs + " for the starter; " + fromPaper + ": 4 a GPU",
		doc: "Rows of a micro-batch. It is the unit of memory and of bits: another number gives another run. If it is left out and `limits.device_gb` has no room for the default, the start of the run writes the half, or the quarter and so on, down."},
	{path: "update.shards", typ: typeInteger, span: between(1, 64), source: fromOurs,
		doc: "Shards of an optimizer step: micro-batch i belongs to shard i mod the number. Shards are computed on as many devices as a worker has, and their gradients are added in the order of shards, so that devices change no bit; the number of shards does. More than one needs memory for a second gradient on a device alone. Left out: one, which a single device computes; " +
			fmt.Sprintf("the start of a run writes %d down for adapters of a pretrained model whose steps have several micro-batches.", loadedShards)},
	{path: "update.widths", typ: typeInteger, span: between(1, 3), source: fromOurs,
		doc: "Widths of the micro-batches of Score and Update: that of the longest row, with 2 its half besides, with 3 its quarter too, rounded up to 16. A row is computed at the least width that it fits in, and an optimizer step takes its rows by width. It saves work where rows differ in length. It decides bits, as `update.micro_batch` does. Left out: one width; " +
			fmt.Sprintf("the start of a run writes %d down for a pretrained model whose longest row has %d tokens or more.", loadedWidths, wideRow)},
	{path: "update.recompute", typ: typeString, enum: []string{RecomputeAuto, RecomputeAlways, RecomputeNever}, source: fromOurs,
		doc: "Whether the backward pass computes each layer again from its input (always), which takes less memory, or reads the activations that the forward pass keeps (never), which takes a fourth less work. Auto keeps them where the run is then estimated to fit into `limits.device_gb`; the start of the run writes down what it means, so that it follows from the spec and the model alone. In float32 it changes no bit on a CPU; on an H100 it did. In bfloat16 it does, because what is kept is rounded. Default: auto."},

	{path: "critic.learning_rate", typ: typeNumber, starter: 1e-3, loaded: 1e-5, span: between(0, 1), knob: true, source: fromOurs + " for the starter; " + fromVerl,
		doc: "AdamW's learning rate for the critic. The section critic is read if `credit.algorithm` needs a critic (" + strings.Join(withCritic, ", ") + ") or a process reward model (" + strings.Join(withPRM, ", ") + ", which reads no clip)."},
	{path: "critic.weight_decay", typ: typeNumber, value: 0.01, span: between(0, 1), knob: true, source: fromVerl,
		doc: "AdamW's decoupled weight decay for the critic."},
	{path: "critic.max_grad_norm", typ: typeNumber, value: 1.0, span: between(1e-6, 1e6), knob: true, source: fromVerl,
		doc: "The critic's gradient is scaled down to this global norm."},
	{path: "critic.clip", typ: typeNumber, value: 0.5, span: between(0, 1e6), knob: true, source: fromVerl + " (cliprange_value)",
		doc: "How far a value may move from the old value in the loss; 0 turns the clip off."},

	{path: "freshness.online", typ: typeInteger, value: 1, span: between(1, maxUpdates), source: fromPaper + ", figure 10 (7 in v2)",
		doc: "Online-k: a rollout of k × `rollout.groups` groups serves k iterations. Each learns from the next groups, with the old log-probs of the policy that rolled out. With 1 every iteration rolls out."},
	{path: "freshness.reuse", typ: typeInteger, value: 1, span: between(1, maxUpdates), source: fromOurs,
		doc: "How many iterations in a row learn from the same batch."},
	{path: "freshness.replay_iterations", typ: typeInteger, value: 0, span: between(0, maxUpdates), source: fromOurs + ", off",
		doc: "Replay buffer: an update also learns from rows of this many earlier batches, the newest ones, with the log-probs and advantages that the rows had. An iteration whose update was skipped has no batch."},
	{path: "freshness.replay_share", typ: typeNumber, value: 0.5, span: span{low: 0, high: 0.9, openLow: true}, source: fromOurs,
		doc: "The share of an update's rows that comes from the replay buffer; less if the buffer has too few rows."},

	{path: "snapshot.every", typ: typeInteger, value: 10, span: between(1, 1_000_000), source: fromOurs,
		doc: "Iterations between snapshots of the full training state; the last iteration always has one. A committed iteration without a snapshot is not lost: its update is recomputed from the batches. If it is left out for a pretrained model, the start of the run writes down the least number with which snapshots take at most 5 % of the time, by an estimate for an H100."},
	{path: "snapshot.retain", typ: typeInteger, value: 0, span: between(0, 1_000_000), source: fromOurs + ": all; RAGEN-2 keeps one",
		doc: "How many of the newest snapshots are kept; 0 keeps all. One snapshot at or before the earliest iteration that a detector may roll back to is always kept. The manifest lists the removed ones, and any version can still be rebuilt from the batches."},

	{path: "evaluation.every", typ: typeInteger, value: 10, span: between(0, 1_000_000), source: fromRagen,
		doc: "Iterations between evaluations; the first policy and the last are evaluated too. 0 turns evaluation off."},
	{path: "evaluation.seed", typ: typeSeed, value: uint64(123), span: between(0, maxSeed), source: fromRagen,
		doc: "The suites' seed: runs with the same seed play the same instances."},
	{path: "evaluation.instances", typ: typeInteger, starter: 64, loaded: 256, span: between(1, 65536), source: fromOurs + " for the starter; " + fromRagen,
		doc: "Instances of a suite."},
	{path: "evaluation.samples", typ: typeInteger, value: 1, span: between(1, 1024), source: fromRagen,
		doc: "Trajectories of each instance."},
	{path: "evaluation.temperature", typ: typeNumber, value: 0.5, span: span{low: minTemperature, high: 10, zero: "greedy"}, source: fromRagen,
		doc: "Temperature of sampling in evaluation."},
	{path: "evaluation.suites", typ: typeObjects, elements: suiteRules, most: maxSuites, short: "suite", source: fromRagen + ", one suite",
		doc: "What is measured: names of suites (`\"in-distribution\"`, the run's own environment; `reprise env suites` lists the others), or objects with more. Fields that a suite leaves out are as in `rollout` and `evaluation`. Default: `[\"in-distribution\"]`."},

	{path: "collapse", typ: typeCollapse, value: collapse.Defaults(), source: fromOurs + ", after " + fromRagen + " v2",
		doc: "The detectors of the echo trap, and the action when one fires: warn, stop, or roll back to the iteration before the onset and continue in a new branch with other knobs. no_signal, no_format, entropy_uniform, tool_calls and echo_trap are on by default for other policies than the starter alone."},
	{path: "diagnostics.every", typ: typeInteger, value: 0, span: between(0, 1_000_000), source: fromOurs + ", off; RAGEN-2: 5",
		doc: "Iterations between estimates of the mutual information of prompts and reasonings (RAGEN-2, arXiv 2604.06268). High entropy without mutual information is a template that ignores its input. 0 turns the estimates off."},
	{path: "diagnostics.samples", typ: typeInteger, value: 16, span: between(2, 256), source: fromOurs + ": RAGEN-2 has 64",
		doc: "The number of reasonings in an estimate. Each is scored under the prompts of all groups and under the contexts of the other reasonings: samples × (groups + samples) rows of Score."},
	{path: "diagnostics.thoughts", typ: typeBool, value: false, source: fromOurs + ", off",
		doc: "Measures thoughts in every rollout: their length, and claims about the state that a fixed grammar finds, against the true state (docs/rewards.md)."},

	{path: "report.at_end", typ: typeBool, value: false, source: fromOurs,
		doc: "Writes the run's report (`reprise report`) to the store when the run has ended. The update `report` writes it at any time."},
	{path: "common_random", typ: typeBool, value: false, source: fromOurs,
		doc: "Branches draw the same random numbers as branch 0, so that they differ only by their knobs."},

	{path: "limits.activity_seconds", typ: typeInteger, value: 120, span: between(5, 3600), source: fromOurs,
		doc: "Expected maximum seconds of a step, and so the most that a kill can cost. A step on the device times out after twice this, which counts as a failure of the step (`limits.step_failures`): raise it for a slow device. Warm starts and rebuilds are cut into chunks that fit."},
	{path: "limits.step_failures", typ: typeInteger, span: between(1, 1_000_000), source: fromOurs,
		doc: "How often in a row the same step of a session may fail before the run pauses: a device that is out of memory or has failed, a lost session, a time-out. Announced preemptions do not count. Default: 5."},
	{path: "limits.device_gb", typ: typeInteger, span: between(1, 100_000), source: fromOurs,
		doc: fmt.Sprintf("Memory in GiB of the device that the run is made for. Together with the sizes of the spec and the model it gives the defaults of `rollout.pass_rows`, `update.micro_batch` and `update.recompute`; what the worker's device has does not, since they decide bits. If it is written, a worker whose device has less than so many times 10⁹ bytes refuses the run; if not, one that has less than the run is estimated to need. Default: %d.", DefaultDeviceGB)},
	{path: "limits.generate_rows", typ: typeInteger, span: between(1, maxTrajectories), source: fromOurs,
		doc: "Rows of a piece of a turn's sampling, a multiple of `rollout.pass_rows`. Each piece is an activity that leaves a table, so a kill costs one piece; where it is cut changes no result. Leave it out: the start of the run writes it down where a turn is estimated to need more than `limits.activity_seconds` on two cores."},
	{path: "limits.score_rows", typ: typeInteger, span: between(1, maxTrajectories), source: fromOurs,
		doc: "Rows of a piece of scoring and of an estimate of mutual information, a multiple of `update.micro_batch`, as `limits.generate_rows`."},
	{path: "limits.update_rows", typ: typeInteger, span: between(1, maxTrajectories), source: fromOurs,
		doc: "Rows of a piece of an update, a multiple of `update.micro_batch`. The rows of all epochs count, and those of a critic's update by themselves. A piece also ends after half of `limits.activity_seconds`; leave the rows out for pieces that end by time alone. A piece leaves its sums in the worker's memory, so a kill costs the update so far; where it is cut changes no result."},
	{path: "limits.snapshot_mib", typ: typeInteger, span: between(1, 1_000_000), source: fromOurs,
		doc: "MiB of a piece of a snapshot: it sends so many, and at least one file; a piece before them hashes all files. Leave it out, as `limits.generate_rows`."},

	{path: "stop.sampled_tokens", typ: typeInteger, span: between(1, 1_000_000_000_000), source: fromOurs,
		doc: "Ends the run after the iteration in which its rollouts have sampled this many tokens, if that is before `iterations`: then the last version has a snapshot and an evaluation, as at the end. Tokens that a search dropped count, those that branches inherit count once, and those of evaluations and abandoned branches do not. Left out: never."},
	{path: "stop.success.at_least", typ: typeNumber, span: span{low: 0, high: 1, openLow: true}, source: fromOurs,
		doc: "Ends the run after `stop.success.for` iterations in a row in which `success/mean` of the rollout was at least this, if that is before `iterations`: then the last version has a snapshot and an evaluation, as at the end. Iterations that learn from an earlier rollout do not count. A rollback counts as its branch has it. Left out: never."},
	{path: "stop.success.for", typ: typeInteger, span: between(1, 1_000_000), source: fromOurs,
		doc: "The iterations in a row of `stop.success.at_least`, beside which it is given."},
	{path: "schedule", typ: typeObjects, elements: scheduleRules, most: maxScheduled, source: fromOurs + ", none",
		doc: "Settings as functions of the iteration, in addition to warm-up and decay of the learning rate. The entries of a field follow each other. What an iteration used is in its manifest's settings. change-knob refuses a field of the schedule."},
}))
