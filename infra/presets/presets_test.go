package presets_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/presets"
	"github.com/reprise-rl/reprise/infra/presets/presetstest"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// runs are the presets that start a run, and methods those among them that show one
// method each: sources.tsv says where their values come from.
var (
	runs    = []string{"bandit-demo", "bandit-p10", "chaos", "chaos-devices", "chaos-turns", "code-starter", "dr-mas", "rae", "frozenlake-learn", "llama-grpo", "lookup-starter", "qwen3-grpo", "size-0.5b", "size-0.5b-lora", "smoke", "smol-bandit", "smol-bandit-lora", "smol-frozenlake", "smol-lookup", "sokoban-learn", "webshop-starpo-s-0.5b", "webshop-starpo-s-3b", "webshop-starter"}
	methods = []string{
		"clip-turns", "dapo", "dr-grpo", "dual-clip", "gigpo", "gspo", "loop", "lora-grpo", "lora-ppo", "min-p", "online-k", "reinforce-pp", "reinforce-pp-baseline",
		"replay", "reuse", "reweight", "starpo-grpo", "starpo-ppo", "starpo-s", "state-baseline", "top-p", "turn-gae",
		"cispo", "sapo", "dppo", "gspo-turn", "reinforce-pp-verl",
		"tis", "tis-turn", "tis-sequence", "icepop", "mis", "mis-geometric", "opsm", "bypass", "lag",
		"gdpo", "empg", "blockwise", "turn-returns", "gfpo", "pyvision", "tsr", "tsr-best-of-n", "tree-grpo", "deep-grpo",
		"star", "successes", "demonstrations", "growing-turns", "score", "seeupo", "istar", "agent-prm", "hiper", "checklist",
		"opo", "maxrl", "optimal-token-baseline", "dppo-kl", "gmpo", "sampo", "echo", "self-distill", "sdar",
	}
	// rewards are presets in which a part of the reward changes what is learned: docs/rewards.md
	// has what each learned.
	rewards = []string{
		"reward-checklist", "reward-checklist-tools", "reward-gamed", "reward-length", "reward-progress", "reward-state", "reward-tools",
	}
	// smallLakes are methods on lakes of 2 × 2 or 3 × 3 instead of 4 × 4.
	smallLakes = []string{"gspo-turn", "reinforce-pp-verl", "tis-turn", "empg", "blockwise", "turn-returns", "growing-turns", "tsr", "tree-grpo", "deep-grpo", "seeupo", "istar", "agent-prm", "hiper", "checklist"}
)

// trains are the presets that start a run.
func trains() []string {
	all := slices.Concat(runs, methods, rewards)
	for _, method := range onCards {
		all = append(all, onCard+method)
	}
	slices.Sort(all)
	return all
}

func decode(t *testing.T, name string) spec.Train {
	t.Helper()
	b, err := presets.Read(name)
	require.NoError(t, err)
	train, err := spec.Decode(b, spec.Known{Environments: []string{"bandit", "code", "countdown", "frozenlake", "lake_for_two", "lookup", "sokoban", "webshop"}})
	require.NoError(t, err)
	return train
}

func TestPresetsDecode(t *testing.T) {
	names := slices.DeleteFunc(presets.Names(), isSweep)
	require.Equal(t, trains(), names)
	if !testing.Short() { // no tree but that of make rooms leaves one out
		require.Equal(t, presets.Names(), presetstest.Names())
	}
	for _, name := range presetstest.There(names) {
		t.Run(name, func(t *testing.T) {
			train := decode(t, name)
			require.NotEmpty(t, train.Description)
			if train.Environment.Name == "bandit" {
				require.Equal(t, 1, train.Rollout.Turns, "a bandit is over after one turn")
			}
			if train.Policy.Starter != nil {
				require.Less(t, train.Limits.ActivitySeconds, 60, "the starter's presets are cut fine")
			}
		})
	}
}

// A preset of a pretrained model says which wording its prompts have: a default for such models may
// become another, what a preset measures may not.
func TestPresetsOfModelsNameTheirWording(t *testing.T) {
	for _, name := range presets.Names() {
		b, err := presets.Read(name)
		require.NoError(t, err)
		if strings.Contains(string(b), `"from": "hf:`) || strings.Contains(string(b), `"from": "folder:`) {
			require.Contains(t, string(b), `"protocol": "`, name)
		} else {
			require.NotContains(t, string(b), `"protocol": "`, "%s: a starter's is left out", name)
		}
	}
}

// The presets of methods are one run each of the same length on the same task, but for two, so
// that their curves can be laid side by side.
func TestMethodsAreAlikeButForTheMethod(t *testing.T) {
	same := []string{"description", "policy.lora.", "teacher.", "rollout.", "rewards", "selection.", "credit.", "update.", "critic.", "freshness.", "schedule"}
	for _, name := range presetstest.There(methods) {
		t.Run(name, func(t *testing.T) {
			train, base := decode(t, name), "starpo-grpo"
			require.NotEmpty(t, train.Description)
			require.True(t, strings.HasSuffix(train.Description, "."), "a sentence")
			if train.Environment.Name == "frozenlake" {
				base = "frozenlake-learn"
			}
			same := same
			if slices.Contains(smallLakes, name) {
				same = append([]string{"environment.options.", "evaluation.suites[0].environment.options.", "evaluation.suites[0].turns"}, same...)
			}
			if train.Environment.Name == "countdown" { // it alone has a second attempt
				base, same = "frozenlake-learn", append([]string{"environment.", "evaluation.suites[0].environment.", "evaluation.suites[0].max_new_tokens"}, same...)
			}
			// These have more turns, so they are made smaller to be over in three minutes.
			small := slices.Contains([]string{"growing-turns", "score", "seeupo", "istar", "agent-prm", "hiper", "checklist"}, name)
			if small {
				same = append([]string{"iterations", "policy.starter.", "policy.warm_start.", "snapshot.every", "evaluation."}, same...)
			}
			// These sample several times as much, so they have fewer iterations to be over in five minutes.
			if slices.Contains([]string{"tsr", "tree-grpo", "deep-grpo"}, name) {
				require.Equal(t, 20, train.Iterations)
				same = append([]string{"iterations", "snapshot.every", "evaluation.every"}, same...)
			}
			for _, d := range spec.Diff(decode(t, base), train) {
				require.True(t, slices.ContainsFunc(same, func(p string) bool { return strings.HasPrefix(d.Path, p) }), "%s differs from %s in %s", name, base, d.Path)
			}
			if !small {
				require.InDelta(t, 128, train.Rollout.Trajectories(), 8, "as many trajectories as RAGEN has")
			}
		})
	}
}

// The presets of rewards have one part each beside the environment's reward, and are small enough for
// three seeds in minutes.
func TestRewardsHaveOnePart(t *testing.T) {
	for _, name := range rewards {
		train := decode(t, name)
		require.Len(t, train.Rewards, 1, name)
		require.NotZero(t, train.Rewards[0].Weight, name)
		require.LessOrEqual(t, train.Iterations*train.Rollout.Trajectories(), 30*128, name)
		require.Equal(t, train.Iterations, train.Evaluation.Every, "%s is measured before and after", name)
		require.True(t, strings.HasSuffix(train.Description, "."), "a sentence")
	}
}

func TestControlDiffersInOddsSelectionAndBiasAlone(t *testing.T) {
	var paths []string
	for _, d := range spec.Diff(decode(t, "bandit-demo"), decode(t, "bandit-p10")) {
		paths = append(paths, d.Path)
	}
	require.Equal(t, []string{"description", "environment.options.high_probability", "selection.method", "credit.normalize_by_std", "evaluation.suites[0].environment.options.high_probability"}, paths)
}

func TestReadUnknown(t *testing.T) {
	_, err := presets.Read("bandit-p20")
	require.EqualError(t, err, fmt.Sprintf(`read preset "bandit-p20": none of the %d is called so; near it are bandit-p10, bandit-demo, agent-prm`, len(presets.Names())))
	_, err = presets.Read("../presets/smoke")
	require.Error(t, err)
}
