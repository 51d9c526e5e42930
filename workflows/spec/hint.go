package spec

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/reprise-rl/reprise/infra/strict"
	"github.com/reprise-rl/reprise/model/methods"
	"github.com/reprise-rl/reprise/model/selection"
)

// elsewhere are the fields by the names that they have in verl, TRL, RAGEN and OpenRLHF.
var elsewhere = map[string]string{
	"lr": "update.learning_rate", "actor_lr": "update.learning_rate", "critic_lr": "critic.learning_rate",
	"lr_scheduler_type": "update.decay", "warmup_steps": "update.warmup_iterations",
	"kl_coef": "update.kl_coefficient", "kl_loss_coef": "update.kl_coefficient", "init_kl_coef": "update.kl_coefficient",
	"kl_loss_type": "update.kl_estimator", "kl_penalty": "update.kl_estimator",
	"entropy_coeff": "update.entropy_coefficient", "entropy_coef": "update.entropy_coefficient", "ent_coef": "update.entropy_coefficient",
	"clip_ratio": "update.clip_low", "clip_ratio_low": "update.clip_low", "cliprange": "update.clip_low",
	"clip_ratio_high": "update.clip_high", "epsilon_high": "update.clip_high", "clip_ratio_c": "update.dual_clip",
	"ppo_epochs": "update.epochs", "num_ppo_epochs": "update.epochs", "num_iterations": "update.epochs",
	"ppo_mini_batch_size": "update.minibatch", "ppo_micro_batch_size": "update.micro_batch", "per_device_train_batch_size": "update.micro_batch",
	"loss_agg_mode": "update.aggregation", "max_grad_norm": "update.max_grad_norm", "grad_clip": "update.max_grad_norm",
	"num_generations": "rollout.group_size", "rollout_n": "rollout.group_size", "group_n": "rollout.group_size",
	"num_groups": "rollout.groups", "train_batch_size": "rollout.groups",
	"max_completion_length": "rollout.max_new_tokens", "max_response_length": "rollout.max_new_tokens", "response_length": "rollout.max_new_tokens",
	"max_turn": "rollout.turns", "max_turns": "rollout.turns", "max_steps": "iterations", "total_training_steps": "iterations",
	"adv_estimator": "credit.algorithm", "lam": "credit.lambda", "norm_adv_by_std_in_grpo": "credit.normalize_by_std",
	"rollout_filter_ratio": "selection.keep", "model": "policy.from", "model_path": "policy.from", "model_name_or_path": "policy.from",
	"lora_rank": "policy.lora.rank", "lora_r": "policy.lora.rank", "lora_alpha": "policy.lora.alpha", "target_modules": "policy.lora.targets",
	"save_freq": "snapshot.every", "save_steps": "snapshot.every", "test_freq": "evaluation.every", "eval_steps": "evaluation.every",
}

// Hint is what a word most likely means that is none of the candidates: the field or the method that other programs
// call so, or the nearest of the candidates. It is "" if nothing is near.
func Hint(word string, candidates []string) string {
	spelt := strings.ReplaceAll(strings.ToLower(word), "-", "_")
	for _, a := range methods.Algorithms {
		if slices.Contains(a.Also, spelt) && slices.Contains(candidates, a.Name) {
			return fmt.Sprintf("did you mean %q?", a.Name)
		}
	}
	for _, m := range selection.Methods {
		if slices.Contains(m.Also, spelt) && slices.Contains(candidates, m.Name) {
			return fmt.Sprintf("did you mean %q?", m.Name)
		}
	}
	return cmp.Or(hintOf(spelt[strings.LastIndexByte(spelt, '.')+1:], candidates), strict.DidYouMean(word, candidates))
}

// hintOf is the field that others call by the key: as the candidate that it is, or else as a path of the spec.
func hintOf(key string, candidates []string) string {
	path := elsewhere[key]
	if path == "" || byPath(path) == nil {
		return ""
	}
	for _, c := range candidates {
		if c == path || strings.HasSuffix(path, "."+c) {
			path = c
			break
		}
	}
	return fmt.Sprintf("did you mean %q?", path)
}
