package chaos

import (
	"maps"
	"path/filepath"
)

// small is what all of them have: shapes are equal where they can be, so that
// programs are.
func small(more map[string]any) map[string]any {
	all := map[string]any{
		"iterations": methodIterations,
		"policy": map[string]any{
			"from":       "starter",
			"starter":    map[string]any{"layers": 2, "hidden_size": 32, "intermediate_size": 96, "heads": 2, "kv_heads": 1},
			"warm_start": map[string]any{"steps": 60, "rows": 16, "learning_rate": 3e-3},
		},
		"rollout.groups": 4, "rollout.group_size": 4, "rollout.think": false, "update.micro_batch": 4,
		"rollout.pass_rows": 4, // several passes, so that several devices share them
		"snapshot":          map[string]any{"every": 2}, "evaluation": map[string]any{"every": 0},
		"collapse": nervous(2),
	}
	maps.Copy(all, more)
	return all
}

var (
	onBandit = small(map[string]any{"rollout.max_new_tokens": 16})
	onLake   = small(map[string]any{"environment": map[string]any{"name": "frozenlake", "options": map[string]any{
		"size": 2, "slippery": false, "random_ends": false, "instances": 8, "max_actions": 4, "max_actions_per_turn": 2,
	}}})
	onTwo = small(map[string]any{"environment": map[string]any{"name": "lake_for_two", "options": map[string]any{
		"size": 2, "instances": 8, "max_actions": 8,
	}}})
	ones   = map[string]any{"rollout.groups": 16, "rollout.group_size": 1}
	halves = map[string]any{"update.minibatch": 8}
	// If two iterations share a rollout, only the first has an entropy.
	reused = map[string]any{"collapse": nervous(1)}
	twice  = map[string]any{"collapse": nervous(1), "freshness.online": 2}
	// Keys and values stay on the device between turns.
	keeping = map[string]any{"rollout.keep_values": true}
)

// adapters is the small policy with adapters of a rank.
func adapters(rank int) map[string]any {
	policy := maps.Clone(onBandit["policy"].(map[string]any))
	policy["lora"] = map[string]any{"rank": rank, "alpha": 2 * rank}
	return map[string]any{"policy": policy, "update.learning_rate": 3e-3}
}

// second is the small policy with the words of the second tokenizer, and with claims of the
// state in its transcripts or without.
func second(claims bool) map[string]any {
	policy := maps.Clone(onBandit["policy"].(map[string]any))
	policy["starter"] = maps.Clone(policy["starter"].(map[string]any))
	policy["starter"].(map[string]any)["tokenizer"] = 2
	if claims {
		policy["warm_start"] = maps.Clone(policy["warm_start"].(map[string]any))
		policy["warm_start"].(map[string]any)["claims"] = true
	}
	return policy
}

// words is a file of templates.
var words = func() string {
	path, err := filepath.Abs("../../docs/own/words.txt")
	if err != nil {
		panic(err)
	}
	return path
}()

// starting is a policy that starts from a tiny model of another family, and is taught the
// format.
func starting(model string) map[string]any {
	folder, err := filepath.Abs("../../model/testdata/" + model)
	if err != nil {
		panic(err)
	}
	return map[string]any{
		"policy": map[string]any{
			"from": "folder:" + folder, "compute_dtype": "float32",
			"warm_start": map[string]any{"steps": 16, "rows": 8, "learning_rate": 6e-3, "demonstrations": 0},
		},
		"rollout.turns": 2, "rollout.max_new_tokens": 24, "update.learning_rate": 1e-3,
	}
}

// families have every preset of a method once.
var families = []*family{
	{name: "groups", scale: onBandit, methods: []method{
		{preset: "dr-grpo", kills: inUpdate},
		{preset: "top-p", kills: inScore},
		{preset: "min-p", kills: inUpdate},
		{preset: "reweight", kills: inScore},
		{preset: "opo", kills: inUpdate},
		{preset: "maxrl", kills: inScore},
		{preset: "optimal-token-baseline", kills: inScore}, // scored although the run is exact
		// Killed while the policy and the teacher, the newest snapshot of the first run, score the rows, and in the step after.
		{preset: "dr-grpo", run: "distill", change: map[string]any{
			"credit": map[string]any{"algorithm": "distill"}, "teacher": map[string]any{"from": "run:dr-grpo"},
		}, kills: inScore},
	}},
	{name: "batches", scale: onBandit, methods: []method{
		{preset: "state-baseline", change: ones, kills: inScore},
		{preset: "reinforce-pp", change: ones, kills: withModel},
		{preset: "reinforce-pp-baseline", kills: withModel},
	}},
	{name: "steps", scale: onBandit, methods: []method{
		{preset: "loop", change: halves, kills: inUpdate, steps: 4},
		{preset: "dapo", change: halves, kills: inScore, steps: 2},
		{preset: "dual-clip", change: halves, kills: inScore, steps: 4},
		{preset: "gspo", change: halves, kills: inUpdate, steps: 2},
	}},
	{name: "freshness", scale: onBandit, methods: []method{
		{preset: "online-k", change: twice, kills: inUpdate, stale: []int{1}},
		{preset: "reuse", change: reused, kills: inUpdate, stale: []int{1}},
		{preset: "replay", kills: inUpdate, stale: []int{1, 2}},
		// Killed while the next iteration's rollout is made, before the update, and in the update of a
		// version that another one has rolled out for.
		{preset: "lag", kills: []string{"Generate#2/inside/1", "Update#2/inside/1"}},
	}},
	{name: "models", scale: onBandit, methods: []method{
		{preset: "starpo-ppo", kills: withModel},
		{preset: "chaos-devices", change: map[string]any{"update.minibatch": 12}, kills: []string{"Update#0/inside/1", "Update#2/inside/2"}, steps: 2},
		{preset: "starpo-s", kills: withModel},
		{preset: "starpo-grpo", kills: withModel},
	}},
	{name: "adapters", scale: onBandit, methods: []method{
		{preset: "lora-grpo", change: adapters(4), kills: []string{"Update#1/inside/1", "Snapshot/inside/1"}},
		{preset: "lora-ppo", change: adapters(2), kills: withModel},
	}},
	{name: "architectures", scale: onLake, methods: []method{
		{preset: "qwen3-grpo", change: starting("qwen3-tiny"), kills: inUpdate},
		{preset: "llama-grpo", change: starting("llama-tiny"), kills: inScore},
	}},
	{name: "turns", scale: onLake, methods: []method{
		{preset: "clip-turns", change: map[string]any{"update.minibatch": 4}, kills: inUpdate, steps: 2},
		{preset: "turn-gae", kills: withModel},
		{preset: "echo", kills: inUpdate},
		// Killed while it scores its rows as its own teacher.
		{preset: "self-distill", kills: inScore},
		{preset: "sdar", kills: inScore},
		{preset: "sampo", change: map[string]any{"update.minibatch": 8}, kills: inUpdate, steps: 2},
		// The values that it keeps between turns are lost with a worker: the next one makes the appends
		// of all turns so far. The last dies in the new branch.
		{preset: "gigpo", change: keeping, kills: []string{"Step@1/written/1", "Score#0/inside/1", "Generate@2/inside/3"}},
		// Killed while candidates are sampled, and while they are chosen from.
		{preset: "tsr", change: map[string]any{"rollout.turns": 2, "rollout.candidates": 2, "selection.keep": 1}, kills: []string{"Generate#1/inside/2", "Choose#1/inside/1"}},
	}},
	{name: "passes", scale: onLake, methods: []method{
		// Killed between two passes of an update, and in the second pass in the new branch.
		{preset: "seeupo", change: map[string]any{"rollout.turns": 2, "rollout.max_new_tokens": 12},
			kills: []string{"Score#1/inside/2", "Update#1/inside/3"}},
		// Killed in the step of the process reward model, which is the update's first, and in the policy's.
		{preset: "istar", change: map[string]any{"rollout.turns": 2, "rollout.max_new_tokens": 12}, kills: []string{"Update#1/inside/1", "Update#2/inside/2"}},
		// What Select wrote of the parts is there when the next worker selects, and the texts of an
		// iteration are read in the next one by another worker than wrote them.
		{preset: "reward-state", change: map[string]any{"policy": second(true), "rollout.think": true, "rollout.max_new_tokens": 24},
			kills: []string{"Select#1/written/1", "Step#2/inside/1"}},
	}},
	{name: "surrogates", scale: onBandit, full: true, methods: []method{
		{preset: "cispo", change: halves, kills: inUpdate, steps: 2},
		{preset: "sapo", change: halves, kills: inScore, steps: 2},
		{preset: "dppo", change: halves, kills: inUpdate, steps: 2},
		{preset: "dppo-kl", change: halves, kills: inScore, steps: 2},
		{preset: "gmpo", change: halves, kills: inUpdate, steps: 2},
	}},
	{name: "parts", scale: onBandit, full: true, methods: []method{
		{preset: "gdpo", kills: inUpdate},
		{preset: "reward-length", kills: []string{"Select#1/written/1", "Find/begin/1"}},
	}},
	{name: "rewards", scale: onLake, full: true, methods: []method{
		{preset: "reward-progress", kills: inUpdate},
		// The credit reads criteria that another worker's Select wrote.
		{preset: "checklist", change: map[string]any{"rollout.turns": 2, "rollout.max_new_tokens": 12}, kills: []string{"Select#1/written/1", "Update#1/inside/1"}},
		{preset: "reward-checklist", kills: []string{"Select#1/written/1", "Find/begin/1"}},
		{preset: "reward-gamed", kills: inScore},
	}},
	{name: "tools", scale: small(map[string]any{"policy": second(false), "rollout.max_new_tokens": 16}), full: true, methods: []method{
		{preset: "reward-tools", kills: []string{"Select#1/written/1", "Step#2/inside/1"}},
		{preset: "reward-checklist-tools", kills: inScore},
	}},
	{name: "choices", scale: onBandit, full: true, methods: []method{
		{preset: "gfpo", change: map[string]any{"selection.members": 2}, kills: inUpdate},
		{preset: "tsr-best-of-n", change: map[string]any{"selection.members": 2}, kills: inScore},
		{preset: "pyvision", change: map[string]any{"selection.count": 2}, kills: inScore},
		// Killed when Select has written the batch, and before Select writes anything.
		{preset: "starpo-s", run: "exact-entropy", change: map[string]any{"selection.metric": exactEntropy}, kills: []string{"Select#1/written/2", "Select#2/inside/2"}},
	}},
	// Stale rows are scored again, so the first ratio is 1.
	{name: "weights", scale: onBandit, full: true, methods: []method{
		{preset: "tis", kills: inUpdate},
		{preset: "tis-sequence", kills: inScore},
		{preset: "icepop", kills: inUpdate},
		{preset: "mis", kills: inScore},
		{preset: "mis-geometric", kills: inUpdate},
		{preset: "opsm", change: halves, kills: inScore, steps: 2},
		{preset: "bypass", change: halves, kills: inUpdate, steps: 2},
	}},
	{name: "supervised", scale: onBandit, full: true, methods: []method{
		{preset: "star", kills: inUpdate},
		{preset: "successes", change: halves, kills: inScore, steps: 2, stale: []int{1, 2}},
		{preset: "demonstrations", kills: inUpdate},
	}},
	{name: "attempts", scale: small(map[string]any{"rollout.max_new_tokens": 16}), full: true, methods: []method{
		{preset: "score", change: map[string]any{"schedule": []any{
			map[string]any{"field": "update.kl_first_turn", "from": 1, "value": 0.01}, map[string]any{"field": "rewards.improvement.weight", "from": 1, "value": 10},
		}}, kills: withModel},
	}},
	{name: "small lakes", scale: onLake, full: true, methods: []method{
		{preset: "gspo-turn", change: map[string]any{"update.minibatch": 8}, kills: inUpdate, steps: 2},
		{preset: "reinforce-pp-verl", kills: inScore},
		{preset: "tis-turn", kills: inUpdate},
		{preset: "growing-turns", change: map[string]any{"schedule": []any{
			map[string]any{"field": "rollout.turn_limit", "from": 1, "value": 3}, map[string]any{"field": "rollout.turn_limit", "from": 2, "value": 4},
		}}, kills: inScore},
		{preset: "empg", kills: inScore},
		{preset: "blockwise", kills: inUpdate},
		{preset: "turn-returns", kills: withModel},
		// Killed while branches are drawn, and while they are sampled in the middle of others' turns.
		{preset: "tree-grpo", change: map[string]any{"rollout.turns": 2, "rollout.trees": 2, "rollout.branches": 1}, kills: []string{"Choose#1/inside/1", "Generate#1/inside/3"}},
		// The fit reads what another worker wrote of the pivots before.
		{preset: "deep-grpo", change: map[string]any{"rollout.trees": 2, "rollout.branches": 1}, kills: []string{"Select#0/written/1", "Choose#1/inside/1"}},
	}},
	// Killed while candidates are sampled for a second turn ahead, while a turn is chosen, while turns are asked for
	// branches, and in the wave of those.
	{name: "searches", scale: onLake, full: true, methods: []method{
		{preset: "gigpo", run: "gigpo-lookahead", change: map[string]any{"rollout.search": "lookahead", "rollout.candidates": 2, "rollout.turns": 3}, kills: []string{"Generate#1/inside/2", "Choose#1/inside/2"}},
		{preset: "gigpo", run: "gigpo-entropy", change: map[string]any{"rollout.search": "entropy", "rollout.trees": 2, "rollout.turns": 3}, kills: []string{"Choose#1/inside/1", "Generate#1/inside/4"}},
	}},
	// A critic that learns chances, beside a reference.
	{name: "promises", scale: onLake, full: true, methods: []method{
		{preset: "agent-prm", change: map[string]any{"rollout.turns": 2, "rollout.max_new_tokens": 12, "update.reference_every": 2, "snapshot.every": 2, "schedule": []any{map[string]any{"field": "update.clip_low", "from": 1, "value": 0.1}}, "update.learning_rate": 3e-4, "update.minibatch": 0, "update.epochs": 1},
			kills: withModel},
	}},
	// A critic of three values for each token, and the spans of what a policy says of its subgoals.
	{name: "subgoals", scale: small(map[string]any{"policy": second(false), "rollout.max_new_tokens": 24}), full: true, methods: []method{
		{preset: "hiper", change: map[string]any{"rollout.turns": 2, "rollout.think": true}, kills: withModel},
	}},
	// Rows that get slots as others end, and rows of several widths.
	{name: "blocks", scale: onLake, full: true, methods: []method{
		{preset: "gigpo", run: "gigpo-blocks", change: map[string]any{"rollout.pass_rows": 2, "rollout.block_rows": 4, "update.widths": 3}, kills: []string{"Generate#2/inside/1", "Update#1/inside/1"}},
		{preset: "turn-gae", run: "turn-gae-blocks", change: map[string]any{"rollout.pass_rows": 2, "rollout.block_rows": 8, "update.widths": 2}, kills: withModel},
	}},
	// Prompts in other words than ours, and in a user's own.
	{name: "wordings", scale: onLake, full: true, methods: []method{
		{preset: "gigpo", run: "gigpo-ragen", change: map[string]any{"rollout.protocol": "ragen"}, kills: inUpdate},
		{preset: "gigpo", run: "gigpo-file", change: map[string]any{"rollout.protocol": "file:" + words}, kills: []string{"Resolve/begin/1", "Generate#2/inside/1"}},
	}},
	{name: "roles", scale: onTwo, full: true, methods: []method{
		{preset: "dr-mas", change: map[string]any{"update.minibatch": 0}, kills: inScore},
		{preset: "rae", change: map[string]any{"update.minibatch": 0}, kills: inUpdate},
	}},
}
