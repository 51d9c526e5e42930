package model

import (
	"encoding/json"
	"maps"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every method and option that PEFT 0.21 writes into an adapter_config.json, one at a time beside its
// defaults, loads or is refused by the field that matters, and by no other.
func TestEveryFieldOfPEFT(t *testing.T) {
	b, err := os.ReadFile("testdata/lora-qwen2-tiny/adapter_config.json") // PEFT 0.21.2 wrote it: all fields
	require.NoError(t, err)
	var defaults map[string]any
	require.NoError(t, json.Unmarshal(b, &defaults))
	type fields = map[string]any
	for _, c := range []struct {
		set     fields
		refused string // "" loads
	}{
		{fields{}, ""},
		{fields{"init_lora_weights": "eva", "eva_config": fields{"rho": 2.0, "tau": 0.99}}, ""},
		{fields{"init_lora_weights": "eva", "eva_config": fields{"rho": 2.0}, "rank_pattern": fields{"q_proj": 8}}, "rank_pattern"},
		{fields{"init_lora_weights": "gaussian"}, ""},
		{fields{"init_lora_weights": "orthogonal"}, ""},
		{fields{"init_lora_weights": false}, ""},
		{fields{"init_lora_weights": "pissa"}, "init_lora_weights"},
		{fields{"init_lora_weights": "pissa_niter_16"}, "init_lora_weights"},
		{fields{"init_lora_weights": "olora"}, "init_lora_weights"},
		{fields{"init_lora_weights": "corda", "corda_config": fields{"corda_method": "ipm"}}, "init_lora_weights"},
		{fields{"corda_config": fields{"corda_method": "ipm"}}, ""}, // PEFT warns and ignores it
		{fields{"init_lora_weights": "loftq", "loftq_config": fields{"loftq_bits": 4}}, "init_lora_weights"},
		{fields{"init_lora_weights": "lora_ga", "lora_ga_config": fields{"direction": "ArB2r"}}, "init_lora_weights"},
		{fields{"use_rslora": true}, ""},
		{fields{"use_dora": true}, "use_dora"},
		{fields{"use_qalora": true, "qalora_group_size": 32}, "use_qalora"},
		{fields{"qalora_group_size": 32}, ""},
		{fields{"use_bdlora": fields{"nblocks": 2}}, "use_bdlora"},
		{fields{"lora_bias": true}, "lora_bias"},
		{fields{"bias": "all"}, "bias"},
		{fields{"bias": "lora_only"}, "bias"},
		{fields{"lora_dropout": 0.1}, "lora_dropout"},
		{fields{"fan_in_fan_out": true}, "fan_in_fan_out"},
		{fields{"modules_to_save": []string{"lm_head"}, "ensure_weight_tying": true}, "modules_to_save"},
		{fields{"trainable_token_indices": []int{1}, "ensure_weight_tying": true}, "trainable_token_indices"},
		{fields{"ensure_weight_tying": true}, ""},
		{fields{"layers_to_transform": []int{0}, "layers_pattern": "layers"}, "layers_to_transform"},
		{fields{"layers_pattern": "layers"}, ""},
		{fields{"layer_replication": [][]int{{0, 2}}}, "layer_replication"},
		{fields{"rank_pattern": fields{"q_proj": 2}}, "rank_pattern"},
		{fields{"alpha_pattern": fields{"q_proj": 2}}, "alpha_pattern"},
		{fields{"exclude_modules": []string{"q_proj"}}, "exclude_modules"},
		{fields{"target_modules": "all-linear"}, ""},
		{fields{"target_modules": `.*\.q_proj`}, "target_modules"},
		{fields{"target_modules": nil}, "target_modules"},
		{fields{"target_parameters": []string{"mlp.experts.down_proj"}}, "target_parameters"},
		{fields{"alora_invocation_tokens": []int{1, 2}}, "alora_invocation_tokens"},
		{fields{"arrow_config": fields{"top_k": 3}}, "arrow_config"},
		{fields{"kasa_config": fields{"beta": 1e-4}}, "kasa_config"},
		{fields{"velora_config": fields{"num_groups": 64}}, "velora_config"},
		{fields{"monteclora_config": fields{"x": 1}}, "monteclora_config"},
		{fields{"megatron_config": fields{"x": 1}}, "megatron_config"},
		{fields{"task_type": nil}, ""},
		{fields{"task_type": "SEQ_CLS"}, "task_type"},
		{fields{"revision": "main", "auto_mapping": fields{"a": "b"}, "peft_version": "0.21.2", "inference_mode": false}, ""},
	} {
		config := maps.Clone(defaults)
		for name := range c.set {
			require.Contains(t, defaults, name, "PEFT has no such field")
		}
		maps.Copy(config, c.set)
		b, err := json.Marshal(config)
		require.NoError(t, err)
		_, err = ParseLoRA(b)
		if c.refused == "" {
			require.NoError(t, err, c.set)
			continue
		}
		require.ErrorIs(t, err, ErrAdapter)
		require.ErrorContains(t, err, c.refused+" is ")
		for name := range defaults {
			if name != c.refused {
				require.NotContains(t, err.Error(), "; "+name+" is ")
				require.NotContains(t, err.Error(), ": "+name+" is ")
			}
		}
	}
	for _, kind := range []string{
		"ADALORA", "ADAMSS", "BEFT", "BOFT", "C3A", "CPT", "DELORA", "FOURIERFT", "HRA", "IA3", "LN_TUNING", "LOHA", "LOKR", "MISS",
		"OFT", "OSF", "POLY",
		"PREFIX_TUNING", "PROMPT_TUNING", "P_TUNING", "RANDLORA", "ROAD", "SHIRA", "TRAINABLE_TOKENS", "VBLORA", "VERA", "WAVEFT", "XLORA",
	} {
		b, err := json.Marshal(fields{"peft_type": kind, "num_virtual_tokens": 20, "task_type": "CAUSAL_LM"})
		require.NoError(t, err)
		_, err = ParseLoRA(b)
		require.ErrorContains(t, err, `unsupported adapters: peft_type is "`+kind+`", must be "LORA"`)
	}
}
