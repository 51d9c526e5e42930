package spec

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/model/methods/methodstest"
)

// relationCases are, for each relation between fields, documents that just keep it and
// documents that just break it. The key is the relation's paths.
// byAgent are the fields of a spec whose episodes an agent plays.
const byAgent = `"environment":{"name":"agent"},"policy":{"from":"starter","warm_start":{"steps":0}},"rollout":{"agent":"a","turns":2,"prompt_tokens":[16,16]}`

var relationCases = map[string]struct{ fits, breaks []string }{
	"environment.timeout_seconds limits.activity_seconds": {
		[]string{`"evaluation":{"suites":[{"environment":{"name":"foreign","timeout_seconds":120}}]}`},
		[]string{`"evaluation":{"suites":[{"environment":{"name":"foreign","timeout_seconds":121}}]}`},
	},
	"rewards limits.activity_seconds": {
		[]string{`"rewards":[{"name":"foreign","options":{"name":"judge","timeout_seconds":120}}]`},
		[]string{
			`"rewards":[{"name":"foreign","options":{"name":"judge","timeout_seconds":121}}]`,
			`"rewards":[{"name":"judge","options":{"judge":"grader","timeout_seconds":121}}]`,
		},
	},
	"rewards": {
		[]string{`"rewards":[{"name":"length"},{"name":"judge","options":{"judge":"grader"}}]`},
		[]string{`"rewards":[{"name":"judge","options":{"judge":"grader"}},{"name":"foreign","options":{"name":"judge"}}]`},
	},
	"from.run from.iteration from.branch": {
		[]string{`"from":{"run":"a","iteration":0}`, `"from":{"run":"a","iteration":3,"branch":1}`},
		[]string{`"from":{"iteration":3}`},
	},
	"from.iteration iterations": {
		[]string{`"from":{"run":"a","iteration":3},"iterations":5`},
		[]string{`"from":{"run":"a","iteration":3},"iterations":4`, `"from":{"run":"a","iteration":3},"iterations":3`},
	},
	"policy.base policy.from": {
		[]string{`"policy":{"from":"folder:/adapters","base":"hf:a/b"}`},
		[]string{`"policy":{"base":"hf:a/b"}`},
	},
	"policy.starter policy.from": {
		[]string{`"policy":{"starter":{"layers":1}}`, `"policy":{"from":"starter","starter":{"layers":1}}`, `"policy":{"from":"hf:a/b"}`},
		[]string{`"policy":{"from":"hf:a/b","starter":{"layers":1}}`},
	},
	"policy.starter.hidden_size policy.starter.heads": {
		[]string{`"policy":{"starter":{"hidden_size":24,"heads":4}}`, `"policy":{"starter":{"hidden_size":8,"heads":4}}`},
		[]string{`"policy":{"starter":{"hidden_size":28,"heads":4}}`, `"policy":{"starter":{"hidden_size":25,"heads":4}}`, `"policy":{"starter":{"hidden_size":8,"heads":8,"kv_heads":8}}`},
	},
	"policy.starter.kv_heads policy.starter.heads": {
		[]string{`"policy":{"starter":{"hidden_size":24,"heads":6,"kv_heads":3}}`, `"policy":{"starter":{"hidden_size":24,"heads":6,"kv_heads":6}}`},
		[]string{`"policy":{"starter":{"hidden_size":24,"heads":6,"kv_heads":4}}`, `"policy":{"starter":{"hidden_size":24,"heads":6,"kv_heads":12}}`},
	},
	"rollout.groups rollout.group_size": {
		[]string{`"rollout":{"groups":256,"group_size":256}`, `"rollout":{"groups":64,"group_size":1024}`},
		[]string{`"rollout":{"groups":331,"group_size":198}`, `"rollout":{"groups":4096,"group_size":1024}`},
	},
	"rollout.prompt_tokens rollout.turns": {
		[]string{`"rollout":{"turns":2,"prompt_tokens":[16,16]}`, `"rollout":{"turns":3,"prompt_tokens":[1,2,2]}`},
		[]string{`"rollout":{"turns":2,"prompt_tokens":[16]}`, `"rollout":{"turns":2,"prompt_tokens":[16,16,16]}`, `"rollout":{"turns":2,"prompt_tokens":[16,15]}`},
	},
	"selection.keep selection.method rollout.groups": {
		[]string{`"rollout":{"groups":4},"selection":{"keep":0.25}`, `"rollout":{"groups":4},"selection":{"keep":0.1,"method":"all"}`},
		[]string{`"rollout":{"groups":4},"selection":{"keep":0.2499}`, `"rollout":{"groups":1},"selection":{"keep":0.9999}`},
	},
	"selection.count selection.method rollout.groups": {
		[]string{`"rollout":{"groups":4},"selection":{"method":"top_count","count":4}`, `"rollout":{"groups":4},"selection":{"count":5}`},
		[]string{`"rollout":{"groups":4},"selection":{"method":"top_count","count":5}`},
	},
	"rollout.group_size credit.algorithm": {
		[]string{`"rollout":{"group_size":2}`, `"rollout":{"group_size":1,"groups":16},"selection":{"method":"all"},"credit":{"algorithm":"gae"}`},
		[]string{`"rollout":{"group_size":1,"groups":16},"selection":{"method":"all"}`, `"rollout":{"group_size":1,"groups":16},"selection":{"method":"all"},"credit":{"algorithm":"leave_one_out"}`},
	},
	"selection.metric selection.method rollout.group_size": {
		[]string{`"rollout":{"group_size":2}`, `"rollout":{"group_size":1,"groups":16},"selection":{"metric":"reward"},"credit":{"algorithm":"gae"}`},
		[]string{`"rollout":{"group_size":1,"groups":16},"credit":{"algorithm":"gae"}`, `"rollout":{"group_size":1,"groups":16},"selection":{"metric":"entropy_std"},"credit":{"algorithm":"gae"}`},
	},
	"selection.drop_flat rollout.group_size": {
		[]string{`"rollout":{"group_size":2},"selection":{"drop_flat":true}`},
		[]string{`"rollout":{"group_size":1,"groups":16},"selection":{"drop_flat":true,"method":"all"},"credit":{"algorithm":"gae"}`},
	},
	"selection.members rollout.group_size credit.algorithm": {
		[]string{`"selection":{"members":2}`, `"rollout":{"group_size":4},"selection":{"members":3}`, `"selection":{"members":1},"credit":{"algorithm":"gae"}`},
		[]string{`"selection":{"members":1}`, `"rollout":{"group_size":4},"selection":{"members":4}`},
	},
	"selection.member_metric selection.members": {
		[]string{`"selection":{"member_metric":"deviation","members":2}`},
		[]string{`"selection":{"member_metric":"deviation"}`},
	},
	"update.minibatch selection.method selection.keep selection.count selection.members rollout.groups rollout.group_size": {
		[]string{`"selection":{"members":4},"update":{"minibatch":8,"micro_batch":1}`, `"update":{"minibatch":32,"micro_batch":1}`, `"selection":{"method":"top_count","count":3},"update":{"minibatch":48,"micro_batch":1}`},
		[]string{`"selection":{"members":4},"update":{"minibatch":9,"micro_batch":1}`, `"update":{"minibatch":33,"micro_batch":1}`, `"selection":{"method":"top_count","count":3},"update":{"minibatch":49,"micro_batch":1}`},
	},
	"freshness.online freshness.reuse freshness.replay_iterations selection.resample": {
		[]string{`"freshness":{"online":2}`, `"freshness":{"reuse":2}`, `"freshness":{"replay_iterations":1}`, `"selection":{"resample":2}`},
		[]string{`"freshness":{"online":2,"reuse":2}`, `"freshness":{"online":2,"replay_iterations":1}`, `"freshness":{"reuse":2,"replay_iterations":1}`,
			`"freshness":{"online":2},"selection":{"resample":2}`, `"freshness":{"reuse":2},"selection":{"resample":2}`, `"freshness":{"replay_iterations":1},"selection":{"resample":2}`},
	},
	"rollout.turns freshness.online selection.resample": {
		[]string{`"rollout":{"turns":100}`, `"rollout":{"turns":50},"freshness":{"online":2}`, `"rollout":{"turns":50},"selection":{"resample":2}`},
		[]string{`"rollout":{"turns":51},"freshness":{"online":2}`, `"rollout":{"turns":51},"selection":{"resample":2}`},
	},
	"selection.resample rollout.group_size": {
		[]string{`"rollout":{"group_size":2},"selection":{"resample":2}`},
		[]string{`"rollout":{"group_size":1,"groups":16},"selection":{"resample":2,"method":"all"},"credit":{"algorithm":"gae"}`},
	},
	"rollout.overlong_cache rollout.max_new_tokens": {
		[]string{`"rollout":{"max_new_tokens":24,"overlong_cache":24}`},
		[]string{`"rollout":{"max_new_tokens":24,"overlong_cache":25}`},
	},
	"update.micro_batch rollout.groups rollout.group_size": {
		[]string{`"rollout":{"groups":4,"group_size":3},"update":{"micro_batch":12}`},
		[]string{`"rollout":{"groups":4,"group_size":3},"update":{"micro_batch":13}`},
	},
	"limits.generate_rows rollout.pass_rows": {
		[]string{`"limits":{"generate_rows":128}`, `"rollout":{"pass_rows":3},"limits":{"generate_rows":6}`},
		[]string{`"limits":{"generate_rows":32}`, `"rollout":{"pass_rows":3},"limits":{"generate_rows":64}`},
	},
	"rollout.block_rows rollout.pass_rows": {
		[]string{`"rollout":{"block_rows":128}`, `"rollout":{"pass_rows":3,"block_rows":9}`},
		[]string{`"rollout":{"block_rows":64}`, `"rollout":{"pass_rows":3,"block_rows":10}`},
	},
	"limits.generate_rows rollout.block_rows": {
		[]string{`"rollout":{"pass_rows":2,"block_rows":4},"limits":{"generate_rows":8}`},
		[]string{`"rollout":{"pass_rows":2,"block_rows":4},"limits":{"generate_rows":6}`},
	},
	"rollout.workers rollout.block_rows rollout.groups rollout.group_size": {
		[]string{`"rollout":{"workers":1}`, `"rollout":{"workers":2,"groups":4,"group_size":5,"pass_rows":8,"block_rows":16}`},
		[]string{`"rollout":{"workers":2}`, `"rollout":{"workers":2,"groups":4,"group_size":4,"pass_rows":8,"block_rows":16}`},
	},
	"rollout.lag update.mismatch.regime": {
		[]string{`"rollout":{"lag":1},"update":{"mismatch":{"regime":"decoupled"}}`, `"rollout":{"lag":1},"update":{"mismatch":{"regime":"bypass"}}`, `"rollout":{"lag":0}`},
		[]string{`"rollout":{"lag":1}`},
	},
	"rollout.lag credit.algorithm freshness selection.resample update.passes.order rollout.search": {
		[]string{`"rollout":{"lag":1},"update":{"mismatch":{"regime":"decoupled"}},"credit":{"algorithm":"gae"}`, `"rollout":{"lag":0},"freshness":{"online":2}`},
		[]string{`"rollout":{"lag":1},"update":{"mismatch":{"regime":"decoupled"}},"freshness":{"online":2}`, `"rollout":{"lag":1},"update":{"mismatch":{"regime":"decoupled"}},"freshness":{"reuse":2}`,
			`"rollout":{"lag":1},"update":{"mismatch":{"regime":"decoupled"}},"freshness":{"replay_iterations":2,"replay_share":0.5}`,
			`"rollout":{"lag":1},"update":{"mismatch":{"regime":"decoupled"}},"selection":{"resample":2}`,
			`"rollout":{"lag":1},"update":{"mismatch":{"regime":"decoupled"}},"credit":{"algorithm":"state_baseline"}`,
			`"rollout":{"lag":1,"search":"greedy"},"update":{"mismatch":{"regime":"decoupled"}}`},
	},
	"rollout.keep_values rollout.block_rows": {
		[]string{`"rollout":{"keep_values":true}`, `"rollout":{"block_rows":128}`},
		[]string{`"rollout":{"keep_values":true,"block_rows":128}`},
	},
	"rollout.keep_values rollout.context_turns rollout.turns": {
		[]string{`"rollout":{"keep_values":true}`, `"rollout":{"keep_values":true,"turns":3,"context_turns":3}`, `"rollout":{"context_turns":2}`},
		[]string{`"rollout":{"keep_values":true,"turns":3,"context_turns":2}`},
	},
	"rollout.search rollout.groups rollout.group_size rollout.candidates": {
		[]string{`"rollout":{"groups":64,"group_size":1024}`, `"rollout":{"groups":16,"group_size":1024,"search":"greedy"}`},
		[]string{`"rollout":{"groups":64,"group_size":1024,"search":"greedy"}`, `"rollout":{"groups":16,"group_size":1024,"search":"best_of_n","candidates":5}`,
			`"rollout":{"groups":16,"group_size":1024,"turns":3,"search":"lookahead","candidates":2,"depth":3}`, `"rollout":{"turns":9,"search":"lookahead","candidates":64,"depth":8}`},
	},
	"rollout.beam rollout.search rollout.group_size": {
		[]string{`"rollout":{"search":"beam","group_size":6,"beam":3}`, `"rollout":{"search":"greedy","group_size":7}`},
		[]string{`"rollout":{"search":"beam","group_size":7}`, `"rollout":{"search":"beam","group_size":6,"beam":4}`},
	},
	"rollout.beam rollout.search": {
		[]string{`"rollout":{"search":"beam","beam":2}`},
		[]string{`"rollout":{"search":"greedy","beam":2}`, `"rollout":{"beam":2}`},
	},
	"rollout.depth rollout.search rollout.turns": {
		[]string{`"rollout":{"search":"lookahead","turns":3}`, `"rollout":{"search":"lookahead","turns":3,"candidates":2,"depth":3}`},
		[]string{`"rollout":{"depth":2}`, `"rollout":{"search":"greedy","depth":1}`, `"rollout":{"search":"lookahead","turns":3,"candidates":2,"depth":4}`},
	},
	"rollout.candidates rollout.search": {
		[]string{`"rollout":{"search":"best_of_n","candidates":2}`},
		[]string{`"rollout":{"candidates":2}`},
	},
	"rollout.group_size rollout.search rollout.trees rollout.branches rollout.expansions": {
		[]string{`"rollout":{"search":"tree","group_size":6}`, `"rollout":{"search":"tree","group_size":15,"trees":3,"branches":1,"expansions":4}`, `"rollout":{"group_size":7}`},
		[]string{`"rollout":{"search":"tree","group_size":7}`, `"rollout":{"search":"tree","group_size":6,"expansions":2}`},
	},
	"rollout.trees rollout.branches rollout.expansions rollout.outcomes rollout.search": {
		[]string{`"rollout":{"search":"tree","group_size":6,"trees":2,"branches":2,"expansions":1,"outcomes":"shared"}`},
		[]string{`"rollout":{"trees":2}`, `"rollout":{"branches":2}`, `"rollout":{"expansions":1}`, `"rollout":{"search":"greedy","outcomes":"fresh"}`,
			`"rollout":{"search":"pivots","group_size":72,"expansions":1},"credit":{"algorithm":"deep_grpo"}`},
	},
	"rollout.trees rollout.group_size rollout.search": {
		[]string{`"rollout":{"search":"entropy","group_size":16}`, `"rollout":{"search":"entropy","group_size":4,"trees":3}`},
		[]string{`"rollout":{"search":"entropy","group_size":8}`, `"rollout":{"search":"entropy","group_size":4,"trees":4}`},
	},
	"rollout.outcomes rollout.entropy_weight rollout.branch_probability rollout.search": {
		[]string{`"rollout":{"search":"entropy","group_size":16,"entropy_weight":1,"branch_probability":1,"outcomes":"fresh"}`},
		[]string{`"rollout":{"entropy_weight":1}`, `"rollout":{"branch_probability":0.1}`, `"rollout":{"search":"entropy","group_size":16,"outcomes":"shared"}`},
	},
	"credit.algorithm rollout.search": {
		[]string{`"rollout":{"search":"tree","group_size":6},"credit":{"algorithm":"tree_grpo"}`, `"rollout":{"search":"tree","group_size":6},"credit":{"algorithm":"grpo"}`},
		[]string{`"credit":{"algorithm":"tree_grpo"}`, `"rollout":{"search":"greedy"},"credit":{"algorithm":"tree_grpo"}`, `"credit":{"algorithm":"deep_grpo"}`,
			`"rollout":{"search":"tree","group_size":6},"credit":{"algorithm":"deep_grpo"}`, `"rollout":{"search":"pivots","group_size":72},"credit":{"algorithm":"grpo"}`},
	},
	"rollout.search update.aggregation update.minibatch freshness.replay_iterations": {
		[]string{`"rollout":{"search":"pivots","group_size":72},"credit":{"algorithm":"deep_grpo"}`},
		[]string{`"rollout":{"search":"pivots","group_size":72},"credit":{"algorithm":"deep_grpo"},"update":{"minibatch":4,"micro_batch":4}`,
			`"rollout":{"search":"pivots","group_size":72},"credit":{"algorithm":"deep_grpo"},"update":{"aggregation":"seq_mean_token_mean"}`,
			`"rollout":{"search":"pivots","group_size":72},"credit":{"algorithm":"deep_grpo"},"freshness":{"replay_iterations":1}`},
	},
	"rollout.pivot_gamma update.branch_weight rollout.search": {
		[]string{`"rollout":{"search":"pivots","group_size":72,"pivot_gamma":1},"credit":{"algorithm":"deep_grpo"},"update":{"branch_weight":0.5}`},
		[]string{`"rollout":{"pivot_gamma":1}`, `"update":{"branch_weight":1}`},
	},
	"rollout.search rollout.keep_values rollout.block_rows rollout.context_turns rollout.turns": {
		[]string{`"rollout":{"search":"beam","turns":3,"context_turns":3}`, `"rollout":{"keep_values":true}`, `"rollout":{"block_rows":128}`, `"rollout":{"context_turns":2}`},
		[]string{`"rollout":{"search":"beam","turns":3,"context_turns":2}`, `"rollout":{"search":"greedy","keep_values":true}`, `"rollout":{"search":"best_of_n","block_rows":128}`},
	},
	"rollout.search freshness.online freshness.reuse update.supervised": {
		[]string{`"rollout":{"search":"beam"},"freshness":{"replay_iterations":1}`, `"freshness":{"online":2}`},
		[]string{`"rollout":{"search":"beam"},"freshness":{"online":2}`, `"rollout":{"search":"greedy"},"freshness":{"reuse":2}`,
			`"rollout":{"search":"beam"},"update":{"supervised":{"from":"own_successes"}}`},
	},
	"rollout.search rewards": {
		[]string{`"rollout":{"search":"beam"}`, `"rewards":[{"name":"length"}]`},
		[]string{`"rollout":{"search":"beam"},"rewards":[{"name":"length"}]`},
	},
	"rollout.search credit.algorithm": {
		[]string{hiperRun("bootstrap", "true", ""), hiperRun("bootstrap", "false", `,"search":"beam"`)},
		[]string{hiperRun("bootstrap", "true", `,"search":"beam"`)},
	},
	"limits.score_rows update.micro_batch": {
		[]string{`"update":{"micro_batch":3},"limits":{"score_rows":9}`},
		[]string{`"update":{"micro_batch":3},"limits":{"score_rows":8}`},
	},
	"limits.update_rows update.micro_batch": {
		[]string{`"update":{"micro_batch":3},"limits":{"update_rows":9}`},
		[]string{`"update":{"micro_batch":3},"limits":{"update_rows":8}`},
	},
	"update.minibatch update.micro_batch": {
		[]string{`"update":{"minibatch":6,"micro_batch":3}`, `"update":{"minibatch":3,"micro_batch":3}`, `"update":{"minibatch":0,"micro_batch":3}`},
		[]string{`"update":{"minibatch":7,"micro_batch":3}`, `"update":{"minibatch":2,"micro_batch":3}`},
	},
	"policy.warm_start.claims rewards": {
		[]string{`"policy":{"warm_start":{"claims":true}},"rewards":[{"name":"state"}]`, `"rewards":[{"name":"state"}]`},
		[]string{`"policy":{"warm_start":{"claims":true}}`, `"policy":{"warm_start":{"claims":true}},"rewards":[{"name":"length"}]`},
	},
	"update.ratio update.surrogate": {
		[]string{`"update":{"ratio":"turn"}`, `"update":{"ratio":"sequence","surrogate":"clip"}`, `"update":{"surrogate":"cispo"}`},
		[]string{`"update":{"ratio":"turn","surrogate":"cispo"}`, `"update":{"ratio":"sequence","surrogate":"dppo_tv"}`,
			`"update":{"ratio":"sequence","surrogate":"gmpo"}`, `"update":{"ratio":"turn","surrogate":"dppo_kl"}`},
	},
	"update.clip_turns update.surrogate": {
		[]string{`"update":{"surrogate":"dppo_tv","clip_turns":[{"low":0.2,"high":0.2}]}`},
		[]string{`"update":{"surrogate":"sapo","clip_turns":[{"low":0.2,"high":0.2}]}`},
	},
	"update.kl_in credit.algorithm": {
		[]string{`"update":{"kl_in":"loss"},"credit":{"algorithm":"gdpo"}`, `"update":{"kl_in":"reward"},"credit":{"algorithm":"empg"}`},
		[]string{`"update":{"kl_in":"reward"},"credit":{"algorithm":"gdpo"}`, `"update":{"kl_in":"reward"},"credit":{"algorithm":"blockwise"}`},
	},
	"update.tau_positive update.surrogate": {
		[]string{`"update":{"surrogate":"sapo","tau_positive":2}`},
		[]string{`"update":{"tau_positive":1}`, `"update":{"surrogate":"cispo","tau_positive":1}`},
	},
	"update.tau_negative update.surrogate": {
		[]string{`"update":{"surrogate":"sapo","tau_negative":2}`},
		[]string{`"update":{"tau_negative":1}`},
	},
	"update.ratio_cap update.surrogate": {
		[]string{`"update":{"surrogate":"dppo_tv","ratio_cap":2}`, `"update":{"surrogate":"dppo_kl","ratio_cap":2}`},
		[]string{`"update":{"ratio_cap":2}`, `"update":{"surrogate":"sapo","ratio_cap":2}`},
	},
	"update.mismatch.regime update.mismatch.weight update.mismatch.mask update.mismatch.veto": {
		[]string{`"update":{"mismatch":{"regime":"decoupled"}}`, `"update":{"mismatch":{"regime":"bypass"}}`,
			`"update":{"mismatch":{"regime":"decoupled","weight":"turn","cap":3,"normalize":true,"veto":1e-4}}`},
		[]string{`"update":{"mismatch":{"weight":"token"}}`, `"update":{"mismatch":{"regime":"bypass","weight":"token"}}`,
			`"update":{"mismatch":{"regime":"bypass","mask":"token","mask_high":5}}`, `"update":{"mismatch":{"veto":1e-4}}`},
	},
	"update.mismatch.mask_high update.mismatch.mask update.mismatch.mask_low": {
		[]string{`"update":{"mismatch":{"regime":"decoupled","mask":"token","mask_low":0.5,"mask_high":5}}`, `"update":{"mismatch":{"regime":"decoupled","mask":"geometric","mask_high":1.001}}`},
		[]string{`"update":{"mismatch":{"regime":"decoupled","mask":"token"}}`, `"update":{"mismatch":{"regime":"decoupled","mask_low":0.5}}`, `"update":{"mismatch":{"regime":"decoupled","mask_high":5}}`},
	},
	"update.mismatch.weight update.mismatch.cap update.mismatch.normalize": {
		[]string{`"update":{"mismatch":{"regime":"decoupled","weight":"none","mask":"sequence","mask_high":3}}`},
		[]string{`"update":{"mismatch":{"regime":"decoupled","weight":"none","cap":2}}`, `"update":{"mismatch":{"regime":"decoupled","weight":"none","normalize":true}}`},
	},
	"update.kl_first_turn update.kl_in": {
		[]string{`"update":{"kl_first_turn":0.1,"kl_in":"loss"}`},
		[]string{`"update":{"kl_first_turn":0.1}`, `"update":{"kl_first_turn":0.1,"kl_in":"reward"}`},
	},
	"stop.success.at_least stop.success.for": {
		[]string{`"stop":{"success":{"at_least":1,"for":1}}`, `"stop":{"sampled_tokens":9}`},
		[]string{`"stop":{"success":{"at_least":0.5}}`, `"stop":{"success":{"for":2}}`},
	},
	"rollout.turn_limit rollout.turns": {
		[]string{`"rollout":{"turn_limit":3,"turns":3}`, `"rollout":{"turn_limit":2}`},
		[]string{`"rollout":{"turn_limit":4,"turns":3}`},
	},
	"update.supervised.from update.supervised.share update.supervised.coefficient": {
		[]string{`"update":{"supervised":{"from":"own_successes"}}`, `"update":{"supervised":{"from":"demonstrations","share":1,"coefficient":2}}`},
		[]string{`"update":{"supervised":{"share":0.5}}`, `"update":{"supervised":{"coefficient":1}}`},
	},
	"update.supervised.share": {
		[]string{`"update":{"supervised":{"from":"own_successes","share":0.9}}`, `"update":{"supervised":{"from":"own_successes","share":1}}`},
		[]string{`"update":{"supervised":{"from":"own_successes","share":0.91}}`, `"update":{"supervised":{"from":"demonstrations","share":0.999}}`},
	},
	"update.supervised.share update.supervised.from": {
		[]string{`"update":{"supervised":{"from":"observations","coefficient":0.2}}`},
		[]string{`"update":{"supervised":{"from":"observations","share":0.5}}`},
	},
	"update.supervised.from rollout.turns rollout.context_turns": {
		[]string{`"update":{"supervised":{"from":"observations"}},"rollout":{"turns":2,"context_turns":2}`},
		[]string{`"update":{"supervised":{"from":"observations"}},"rollout":{"turns":1}`,
			`"update":{"supervised":{"from":"observations"}},"rollout":{"turns":3,"context_turns":1}`},
	},
	"update.supervised.share credit.algorithm update.minibatch": {
		[]string{`"update":{"supervised":{"from":"own_successes"}},"credit":{"algorithm":"gae"}`, `"update":{"supervised":{"from":"own_successes","share":1},"minibatch":16},"credit":{"algorithm":"grpo"}`},
		[]string{`"update":{"supervised":{"from":"own_successes","share":1}},"credit":{"algorithm":"gae"}`, `"update":{"supervised":{"from":"own_successes"},"minibatch":16},"credit":{"algorithm":"gae"}`},
	},
	"update.passes.order update.passes.clip_low update.passes.clip_high": {
		[]string{`"rollout":{"turns":2},"update":{"passes":{"order":"turns_reversed","clip_low":0.1,"clip_high":0.3}},"credit":{"algorithm":"seeupo"}`},
		[]string{`"update":{"passes":{"clip_low":0.1}}`, `"update":{"passes":{"clip_high":0.1}}`},
	},
	"credit.algorithm freshness.online freshness.reuse freshness.replay_iterations update.supervised rollout.search": {
		[]string{`"credit":{"algorithm":"istar"}`, `"credit":{"algorithm":"agent_prm","gamma":0.95}`, `"freshness":{"online":2}`},
		[]string{
			`"credit":{"algorithm":"istar"},"freshness":{"online":2}`,
			`"credit":{"algorithm":"istar"},"freshness":{"reuse":2}`,
			`"credit":{"algorithm":"agent_prm"},"freshness":{"replay_iterations":1}`,
			`"credit":{"algorithm":"istar"},"update":{"supervised":{"from":"own_successes"}}`,
			`"credit":{"algorithm":"istar"},"rollout":{"search":"best_of_n","candidates":2}`,
		},
	},
	"rollout.subgoals rollout.think rollout.protocol policy.starter.tokenizer": {
		[]string{`"policy":{"from":"starter","starter":{"tokenizer":2}},"rollout":{"subgoals":true}`},
		[]string{
			`"policy":{"from":"starter","starter":{"tokenizer":2}},"rollout":{"subgoals":true,"think":false}`, `"rollout":{"subgoals":true}`,
			`"policy":{"from":"starter","starter":{"tokenizer":2}},"rollout":{"subgoals":true,"protocol":"ragen"}`,
			`"policy":{"from":"starter","starter":{"tokenizer":2}},"rollout":{"subgoals":true,"protocol":"vagen"}`,
		},
	},
	"rollout.protocol rollout.think rollout.subgoals rollout.context_turns": {
		[]string{`"policy":{"from":"folder:/m"},"rollout":{"subgoals":true,"protocol":"hiper"}`, `"policy":{"from":"folder:/m"},"rollout":{"subgoals":true,"protocol":"hiper","context_turns":2}`},
		[]string{`"rollout":{"protocol":"hiper"}`, `"rollout":{"protocol":"hiper","think":false}`, `"policy":{"from":"folder:/m"},"rollout":{"subgoals":true,"protocol":"hiper","context_turns":1}`},
	},
	"rollout.protocol rollout.think": {
		[]string{`"rollout":{"protocol":"vagen"}`, `"rollout":{"think":false}`},
		[]string{`"rollout":{"protocol":"vagen","think":false}`},
	},
	"credit.algorithm rewards update.kl_in": {
		[]string{
			`"rewards":[{"name":"checklist"}],"credit":{"algorithm":"checklist"}`,
			`"rewards":[{"name":"length"},{"name":"foreign","options":{"name":"judge","level":"turn"}}],"credit":{"algorithm":"checklist"},"update":{"kl_in":"loss"}`,
			`"rewards":[{"name":"judge","options":{"judge":"grader","level":"turn"}}],"credit":{"algorithm":"checklist"}`,
		},
		[]string{
			`"credit":{"algorithm":"checklist"}`, `"rewards":[{"name":"length"}],"credit":{"algorithm":"checklist"}`,
			`"rewards":[{"name":"foreign","options":{"name":"judge"}}],"credit":{"algorithm":"checklist"}`,
			`"rewards":[{"name":"checklist"}],"credit":{"algorithm":"checklist"},"update":{"kl_in":"reward"}`,
		},
	},
	"credit.algorithm rollout.subgoals": {
		[]string{`"policy":{"from":"starter","starter":{"tokenizer":2}},"rollout":{"subgoals":true},"credit":{"algorithm":"hiper"}`},
		[]string{`"credit":{"algorithm":"hiper"}`},
	},
	"update.reference_every update.kl_in snapshot.every snapshot.retain": {
		[]string{`"update":{"kl_in":"loss","reference_every":6},"snapshot":{"every":3}`},
		[]string{
			`"update":{"kl_in":"none","reference_every":6},"snapshot":{"every":3}`, `"update":{"kl_in":"loss","reference_every":4},"snapshot":{"every":3}`,
			`"update":{"kl_in":"loss","reference_every":6},"snapshot":{"every":3,"retain":2}`,
		},
	},
	"credit.algorithm teacher.from": {
		[]string{`"credit":{"algorithm":"distill"},"teacher":{"from":"hf:a/b"}`},
		[]string{`"credit":{"algorithm":"distill"}`, `"credit":{"algorithm":"distill"},"teacher":{"model":"` + strings.Repeat("a", 64) + `"}`},
	},
	"teacher credit.algorithm": {
		[]string{`"credit":{"algorithm":"distill"},"teacher":{"from":"run:a@0"}`},
		[]string{`"credit":{"algorithm":"grpo"},"teacher":{"from":"hf:a/b"}`},
	},
	"teacher.from teacher.context": {
		[]string{`"credit":{"algorithm":"distill"},"teacher":{"from":"self","context":"success","context_tokens":64}`},
		[]string{
			`"credit":{"algorithm":"distill"},"teacher":{"from":"self"}`,
			`"credit":{"algorithm":"distill"},"teacher":{"from":"hf:a/b","context":"success","context_tokens":64}`,
		},
	},
	"teacher.context teacher.context_tokens": {
		[]string{`"credit":{"algorithm":"sdar"},"teacher":{"from":"self","context":"success","context_tokens":64}`},
		[]string{
			`"credit":{"algorithm":"distill"},"teacher":{"from":"self","context":"success"}`,
			`"credit":{"algorithm":"distill"},"teacher":{"from":"hf:a/b","context_tokens":64}`,
		},
	},
	"teacher.from teacher.model": {
		[]string{`"credit":{"algorithm":"distill"},"teacher":{"from":"hf:a/b","model":"` + strings.Repeat("a", 64) + `"}`},
		[]string{`"credit":{"algorithm":"distill"},"teacher":{"from":"self","context":"success","context_tokens":64,"model":"` + strings.Repeat("a", 64) + `"}`},
	},
	"teacher.from rollout.agent": {
		[]string{byAgent + `,"credit":{"algorithm":"distill"},"teacher":{"from":"hf:a/b"}`},
		[]string{byAgent + `,"credit":{"algorithm":"distill"},"teacher":{"from":"self","context":"success","context_tokens":64}`},
	},
	"teacher.context rollout.lag freshness.online": {
		[]string{
			`"credit":{"algorithm":"distill"},"teacher":{"from":"self","context":"success","context_tokens":64},"freshness":{"online":2}`,
			`"credit":{"algorithm":"distill"},"teacher":{"from":"self","context":"demonstration","context_tokens":64}`,
		},
		[]string{
			`"credit":{"algorithm":"distill"},"teacher":{"from":"self","context":"demonstration","context_tokens":64},"rollout":{"lag":1},"update":{"mismatch":{"regime":"bypass"}}`,
			`"credit":{"algorithm":"distill"},"teacher":{"from":"self","context":"demonstration","context_tokens":64},"freshness":{"online":2}`,
		},
	},
	"credit.algorithm update.passes.order": {
		[]string{`"credit":{"algorithm":"distill"},"teacher":{"from":"hf:a/b"}`},
		[]string{`"credit":{"algorithm":"distill"},"teacher":{"from":"hf:a/b"},"rollout":{"turns":2},"update":{"passes":{"order":"turns_reversed"}}`},
	},
	"update.passes.order rollout.turns": {
		[]string{`"rollout":{"turns":2},"update":{"passes":{"order":"turns_reversed"}},"credit":{"algorithm":"grpo"}`},
		[]string{`"rollout":{"turns":1},"update":{"passes":{"order":"turns_reversed"}},"credit":{"algorithm":"grpo"}`},
	},
	"update.passes.order credit.algorithm": {
		[]string{`"rollout":{"turns":2},"update":{"passes":{"order":"turns_reversed"}},"credit":{"algorithm":"blockwise"}`},
		[]string{`"rollout":{"turns":2},"update":{"passes":{"order":"turns_reversed"}},"credit":{"algorithm":"gae"}`},
	},
	"update.passes.order freshness update.mismatch update.supervised rollout.search": {
		[]string{`"rollout":{"turns":2},"update":{"passes":{"order":"turns_reversed"}},"credit":{"algorithm":"seeupo"}`, `"freshness":{"online":2}`},
		[]string{
			`"rollout":{"turns":2},"update":{"passes":{"order":"turns_reversed"}},"credit":{"algorithm":"grpo"},"freshness":{"online":2}`,
			`"rollout":{"turns":2},"update":{"passes":{"order":"turns_reversed"}},"credit":{"algorithm":"grpo"},"freshness":{"reuse":2}`,
			`"rollout":{"turns":2},"update":{"passes":{"order":"turns_reversed"}},"credit":{"algorithm":"grpo"},"freshness":{"replay_iterations":1}`,
			`"rollout":{"turns":2},"update":{"passes":{"order":"turns_reversed"},"mismatch":{"regime":"decoupled"}},"credit":{"algorithm":"grpo"}`,
			`"rollout":{"turns":2},"update":{"passes":{"order":"turns_reversed"},"supervised":{"from":"own_successes"}},"credit":{"algorithm":"grpo"}`,
			`"rollout":{"turns":2,"search":"greedy"},"update":{"passes":{"order":"turns_reversed"}},"credit":{"algorithm":"grpo"}`,
		},
	},
	"environment.tools rollout.protocol rollout.subgoals rollout.context_turns": {
		[]string{
			`"environment":{"name":"bandit","tools":[{"name":"calculator"}]}`,
			`"environment":{"name":"bandit","tools":[{"name":"calculator"}]},"rollout":{"protocol":"examples"}`,
			`"rollout":{"protocol":"ragen","context_turns":2}`,
		},
		[]string{
			`"environment":{"name":"bandit","tools":[{"name":"calculator"}]},"rollout":{"protocol":"ragen"}`,
			`"environment":{"name":"bandit","tools":[{"name":"calculator"}]},"rollout":{"context_turns":2}`,
			`"environment":{"name":"bandit","tools":[{"name":"calculator"}]},"rollout":{"subgoals":true},"policy":{"starter":{"tokenizer":2}}`,
		},
	},
	"environment.tools limits.activity_seconds": {
		[]string{`"environment":{"name":"bandit","tools":[{"name":"mcp","options":{"seconds":30}}]},"limits":{"activity_seconds":30}`},
		[]string{`"environment":{"name":"bandit","tools":[{"name":"calculator"},{"name":"mcp","options":{"seconds":30.5}}]},"limits":{"activity_seconds":30}`},
	},
	"environment.options limits.activity_seconds": {
		[]string{
			`"environment":{"name":"grading","options":{"seconds":30}},"limits":{"activity_seconds":30}`,
			`"environment":{"name":"bandit","options":{"seconds":31}},"limits":{"activity_seconds":30}`,
		},
		[]string{
			`"environment":{"name":"grading","options":{"seconds":30.5}},"limits":{"activity_seconds":30}`,
			`"environment":{"mixture":[{"name":"bandit"},{"name":"grading","options":{"seconds":31}}]},"limits":{"activity_seconds":30}`,
		},
	},
	"rollout.context rollout.context_turns rollout.keep_values rollout.search": {
		[]string{`"rollout":{"context":[{"keep_last":2,"cut_observations":0}]}`, `"rollout":{"context_turns":2}`, `"rollout":{"keep_values":true}`},
		[]string{
			`"rollout":{"context":[{"keep_last":2,"cut_observations":0}],"context_turns":2}`,
			`"rollout":{"context":[{"keep_last":2,"cut_observations":0}],"keep_values":true}`,
			`"rollout":{"context":[{"keep_last":2,"cut_observations":0}],"search":"greedy"}`,
		},
	},
	"evaluation.suites evaluation.instances evaluation.samples": {
		[]string{`"evaluation":{"instances":65536}`, `"evaluation":{"instances":256,"samples":256}`, `"evaluation":{"suites":[{"suite":"in-distribution","instances":64,"samples":1024}]}`},
		[]string{`"evaluation":{"instances":331,"samples":198}`, `"evaluation":{"suites":["in-distribution",{"name":"b","suite":"in-distribution","instances":331,"samples":198}]}`},
	},
	"rollout.agent environment.name environment.mixture": {
		[]string{`"environment":{"name":"agent"},"policy":{"from":"starter","warm_start":{"steps":0}},"rollout":{"agent":"a","turns":2,"prompt_tokens":[16,16]}`},
		[]string{
			`"environment":{"name":"agent"}`,
			`"policy":{"from":"starter","warm_start":{"steps":0}},"rollout":{"agent":"a","turns":2,"prompt_tokens":[16,16]}`,
			`"environment":{"mixture":[{"name":"agent"},{"name":"bandit"}]}`,
		},
	},
	"evaluation.suites rollout.agent": {
		[]string{`"environment":{"name":"agent"},"policy":{"from":"starter","warm_start":{"steps":0}},"rollout":{"agent":"a","turns":2,"prompt_tokens":[16,16]}`, `"environment":{"name":"agent"},"policy":{"from":"starter","warm_start":{"steps":0}},"rollout":{"agent":"a","turns":2,"prompt_tokens":[16,16]},"evaluation":{"suites":[{"environment":{"name":"agent"},"turns":3,"prompt_tokens":[8,8,8]}]}`},
		[]string{
			`"evaluation":{"suites":[{"environment":{"name":"agent"},"turns":2,"prompt_tokens":[16,16]}]}`,
			`"environment":{"name":"agent"},"policy":{"from":"starter","warm_start":{"steps":0}},"rollout":{"agent":"a","turns":2,"prompt_tokens":[16,16]},"evaluation":{"suites":[{"environment":{"name":"agent"},"turns":3}]}`,
		},
	},
	"rollout.agent rollout.prompt_tokens policy.warm_start.steps rollout.context_turns rollout.context rollout.subgoals rollout.keep_values rollout.search rollout.block_rows rollout.lag rollout.overlong_cache environment.tools rewards diagnostics.every": {
		[]string{`"environment":{"name":"agent"},"policy":{"from":"starter","warm_start":{"steps":0}},"rollout":{"agent":"a","turns":2,"prompt_tokens":[16,16]}`},
		[]string{
			`"environment":{"name":"agent"},"policy":{"from":"starter","warm_start":{"steps":0}},"rollout":{"agent":"a"},"evaluation":{"suites":[{"suite":"in-distribution","prompt_tokens":[9,9,9,9,9]}]}`,
			`"environment":{"name":"agent"},"rollout":{"agent":"a","turns":2,"prompt_tokens":[16,16]}`,
			`"environment":{"name":"agent"},"policy":{"from":"starter","warm_start":{"steps":0}},"rollout":{"agent":"a","turns":2,"prompt_tokens":[16,16],"context_turns":1}`,
			`"environment":{"name":"agent"},"policy":{"from":"starter","warm_start":{"steps":0}},"rollout":{"agent":"a","turns":2,"prompt_tokens":[16,16],"context":[{"keep_last":1,"cut_observations":0}]}`,
			`"environment":{"name":"agent"},"policy":{"from":"starter","warm_start":{"steps":0}},"rollout":{"agent":"a","turns":2,"prompt_tokens":[16,16],"keep_values":true}`,
			`"environment":{"name":"agent"},"policy":{"from":"starter","warm_start":{"steps":0}},"rollout":{"agent":"a","turns":2,"prompt_tokens":[16,16],"search":"greedy"}`,
			`"environment":{"name":"agent"},"policy":{"from":"starter","warm_start":{"steps":0}},"rollout":{"agent":"a","turns":2,"prompt_tokens":[16,16],"block_rows":128}`,
			`"environment":{"name":"agent"},"policy":{"from":"starter","warm_start":{"steps":0}},"rollout":{"agent":"a","turns":2,"prompt_tokens":[16,16],"lag":1},"update":{"mismatch":{"regime":"decoupled"}}`,
			`"environment":{"name":"agent"},"policy":{"from":"starter","warm_start":{"steps":0}},"rollout":{"agent":"a","turns":2,"prompt_tokens":[16,16],"overlong_cache":1}`,
			`"environment":{"name":"agent","tools":[{"name":"calculator"}]},"policy":{"from":"starter","warm_start":{"steps":0}},"rollout":{"agent":"a","turns":2,"prompt_tokens":[16,16]}`,
			`"environment":{"name":"agent"},"policy":{"from":"starter","warm_start":{"steps":0}},"rollout":{"agent":"a","turns":2,"prompt_tokens":[16,16]},"rewards":[{"name":"length"}]`,
			`"environment":{"name":"agent"},"policy":{"from":"starter","warm_start":{"steps":0}},"rollout":{"agent":"a","turns":2,"prompt_tokens":[16,16]},"diagnostics":{"every":5}`,
		},
	},
	"evaluation.suites rollout.prompt_tokens rollout.turns": {
		[]string{`"evaluation":{"suites":[{"suite":"in-distribution","turns":2,"prompt_tokens":[16,16]}]}`},
		[]string{`"evaluation":{"suites":[{"suite":"in-distribution","turns":2,"prompt_tokens":[16,15]}]}`, `"evaluation":{"suites":[{"suite":"in-distribution","turns":2,"prompt_tokens":[16]}]}`},
	},
}

// grading is an environment that asks outside about actions.
type grading struct{ envs.Environment }

func (grading) Grading() {}

func init() {
	envs.Register("grading", "asks outside about actions", func(*envs.Options) envs.Environment { return grading{} })
}

// Every relation between fields, just kept and just broken.
func TestEveryRelation(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range relations() {
		key := strings.Join(r.paths, " ")
		require.False(t, seen[key], "two relations of the same fields: %s", key)
		seen[key] = true
		t.Run(r.paths[0], func(t *testing.T) {
			c, ok := relationCases[key]
			require.True(t, ok, "a new relation needs its cases in this table: %s", key)
			require.NotEmpty(t, c.fits)
			require.NotEmpty(t, c.breaks)
			for _, document := range there(c.fits) {
				_, err := Decode([]byte(withEnvironment(document)), Known{})
				require.NoError(t, err, document)
			}
			for _, document := range there(c.breaks) {
				// Without this relation the document is fine: it is broken by no other.
				problems := problemsOf(t, document)
				require.Len(t, problems, 1, document)
				require.Equal(t, r.paths[0], problems[0].Path, document)
				kept := relations
				var others []relation
				for _, other := range kept() {
					if strings.Join(other.paths, " ") != key {
						others = append(others, other)
					}
				}
				relations = func() []relation { return others }
				_, err := Decode([]byte(withEnvironment(document)), Known{})
				relations = kept
				require.NoError(t, err, document)
			}
		})
	}
	if methodstest.Whole() { // else a method that is not there has some
		require.Len(t, relationCases, len(relations()), "the table has relations that are gone")
	}
}

// withEnvironment is a document of these fields, with an environment if they have none.
func withEnvironment(fields string) string {
	if strings.HasPrefix(fields, `"environment":`) {
		return "{" + fields + "}"
	}
	return `{"environment":{"name":"bandit"},` + fields + `}`
}

func problemsOf(t *testing.T, document string) Problems {
	t.Helper()
	_, err := Decode([]byte(withEnvironment(document)), Known{})
	var problems Problems
	require.ErrorAs(t, err, &problems, document)
	return problems
}

// listLimits are the most elements of each list.
var listLimits = map[string]int{"environment.mixture": 16, "update.clip_turns": 100, "rewards": 16, "evaluation.suites": 32, "rollout.prompt_tokens": 100, "schedule": 64,
	"environment.tools": 64, "rollout.context": 8}

// Every list, just not too long and just too long, and empty.
func TestEveryListLimit(t *testing.T) {
	lists := 0
	for _, r := range rules() {
		if r.typ != typeObjects && r.typ != typeIntegers {
			continue
		}
		lists++
		require.Contains(t, listLimits, r.path, "a new list needs its limit in this table")
		most := listLimits[r.path]
		for n, fits := range map[int]bool{0: false, 1: true, most: true, most + 1: false} {
			elements := make([]string, n)
			for i := range elements {
				switch r.path {
				case "environment.mixture":
					elements[i] = fmt.Sprintf(`{"name":"bandit","label":"b%d"}`, i)
				case "evaluation.suites":
					elements[i] = fmt.Sprintf(`{"name":"s%d","suite":"in-distribution"}`, i)
				case "schedule":
					elements[i] = fmt.Sprintf(`{"field":"update.learning_rate","from":%d,"value":1e-4}`, i)
				case "rewards":
					elements[i] = fmt.Sprintf(`{"name":"r%d"}`, i)
				case "rollout.context":
					elements[i] = fmt.Sprintf(`{"keep_last":%d,"cut_observations":8}`, i+1)
				case "rollout.prompt_tokens":
					elements[i] = "16"
				default:
					elements[i] = "{" + elementStart[r.path] + "}"
				}
			}
			value := "[" + strings.Join(elements, ",") + "]"
			document := documentWith(r.path, value)
			if r.path == "rollout.prompt_tokens" {
				document = fmt.Sprintf(`{"environment":{"name":"bandit"},"rollout":{"turns":%d,"prompt_tokens":%s}}`, min(max(n, 1), 100), value)
			}
			_, err := Decode([]byte(document), Known{})
			if fits {
				require.NoError(t, err, "%s of %d", r.path, n)
			} else {
				require.ErrorContains(t, err, r.path, "%d elements", n)
			}
		}
	}
	require.Len(t, listLimits, lists)
}

// The limits of texts, options and the document, just inside and just outside.
func TestEverySizeLimit(t *testing.T) {
	decode := func(document string) error {
		_, err := Decode([]byte(document), Known{})
		return err
	}
	options := func(n int) string { return `{"a":"` + strings.Repeat("x", n-len(`{"a":""}`)) + `"}` }
	deep := func(levels int) string { // the document, environment and options are levels too
		return `{"environment":{"name":"bandit","options":{"a":` + strings.Repeat("[", levels-3) + "1" + strings.Repeat("]", levels-3) + `}}}`
	}
	for name, c := range map[string]struct {
		document func(n int) string
		most     int
	}{
		"description": {func(n int) string {
			return `{"environment":{"name":"bandit"},"description":"` + strings.Repeat("é", n) + `"}`
		}, 1000},
		"options": {func(n int) string { return `{"environment":{"name":"bandit","options":` + options(n) + `}}` }, 1 << 18},
		"label": {func(n int) string {
			return `{"environment":{"mixture":[{"name":"bandit","label":"` + strings.Repeat("a", n) + `"}]}}`
		}, 64},
		"bytes": {func(n int) string {
			document := `{"environment":{"name":"bandit"}}`
			return document + strings.Repeat(" ", n-len(document))
		}, 1 << 20},
		"depth": {deep, 32},
	} {
		require.NoError(t, decode(c.document(c.most)), name)
		require.Error(t, decode(c.document(c.most+1)), name)
	}
}

// there are the documents that name no method that is not in the table.
func there(documents []string) []string {
	return slices.DeleteFunc(slices.Clone(documents), methodstest.Without)
}

// hiperRun is a run of hiper with an option of credit and other fields of the rollout.
func hiperRun(option, value, rollout string) string {
	return `"policy":{"from":"starter","starter":{"tokenizer":2}},"rollout":{"subgoals":true` + rollout + `},"credit":{"algorithm":"hiper","` + option + `":` + value + `}`
}
