package model

import (
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every configuration that PEFT writes, one a value of each field of LoraConfig (testdata/peft/make_configs.py, by reflection), loads
// or is refused by the fields that matter and by no other.
func TestEveryConfigOfPEFT(t *testing.T) {
	b, err := os.ReadFile("testdata/peft/configs.json")
	require.NoError(t, err)
	var written struct {
		Version  string
		Defaults map[string]any
		Kinds    []string
		Cases    []struct {
			Field string
			Set   map[string]any
		}
	}
	require.NoError(t, json.Unmarshal(b, &written))
	require.Equal(t, written.Version, written.Defaults["peft_version"])
	require.Greater(t, len(written.Cases), 100)

	never := func(any) bool { return false }
	isTrue := func(v any) bool { return v == true }
	some := func(v any) bool { // a text, list, table or number that is not empty or none
		switch v := v.(type) {
		case nil:
			return false
		case string:
			return v != ""
		case []any:
			return len(v) > 0
		case map[string]any:
			return len(v) > 0
		}
		return true
	}
	// matters says of each field when the adapters are not those that this package has.
	matters := map[string]func(any) bool{
		// Fields that are read, and fields without an effect on adapters as they are read.
		"r": never, "lora_alpha": never, "use_rslora": never, "base_model_name_or_path": never, "peft_type": never,
		"peft_version": never, "revision": never, "auto_mapping": never, "inference_mode": never,
		"megatron_core": never, "qalora_group_size": never, "layers_pattern": never,
		"ensure_weight_tying": never, "loftq_config": never, "eva_config": never, "corda_config": never, "lora_ga_config": never,
		// Methods and options that change what is computed.
		"task_type":    func(v any) bool { return v != nil && v != "CAUSAL_LM" },
		"bias":         func(v any) bool { return v != "none" },
		"lora_dropout": func(v any) bool { return v != 0.0 },
		"target_modules": func(v any) bool {
			list, ok := v.([]any)
			return v != "all-linear" && (!ok || len(list) == 0 || slices.ContainsFunc(list, func(name any) bool {
				return !regexp.MustCompile(`^(self_attn\.)?[qkvo]_proj$|^(mlp\.)?(up|gate|down)_proj$`).MatchString(name.(string))
			}))
		},
		"init_lora_weights": func(v any) bool {
			return !slices.Contains([]any{true, false, "gaussian", "orthogonal", "eva"}, v)
		},
		"use_dora": isTrue, "use_qalora": isTrue, "lora_bias": isTrue, "fan_in_fan_out": isTrue,
		"exclude_modules": some, "modules_to_save": some, "rank_pattern": some, "alpha_pattern": some, "megatron_config": some,
		"trainable_token_indices": some, "velora_config": some, "alora_invocation_tokens": some, "monteclora_config": some,
		"layer_replication": some, "target_parameters": some, "use_bdlora": some, "arrow_config": some, "kasa_config": some,
		"layers_to_transform": some, // 0 is the first layer alone
	}
	fields, known := slices.Sorted(maps.Keys(written.Defaults)), slices.Sorted(maps.Keys(matters))
	require.Equal(t, fields, known, "a field that this test does not know")

	named := regexp.MustCompile(`(?:^|; |adapters: )([a-z_]+) is `)
	loaded := 0
	for _, c := range written.Cases {
		config := maps.Clone(written.Defaults)
		maps.Copy(config, c.Set)
		var want, have []string
		for name, value := range config {
			if matters[name](value) {
				want = append(want, name)
			}
		}
		slices.Sort(want)
		b, err := json.Marshal(config)
		require.NoError(t, err)
		l, err := ParseLoRA(b)
		if err != nil {
			require.ErrorIs(t, err, ErrAdapter)
			for _, m := range named.FindAllStringSubmatch(strings.ReplaceAll(err.Error(), "read "+AdapterConfigFile+": ", ""), -1) {
				have = append(have, m[1])
			}
			require.NotEmpty(t, have, err)
		}
		require.Equal(t, want, have, "%s: %v: %v", c.Field, c.Set, err)
		if err == nil {
			loaded++
			require.Equal(t, config["r"], float64(l.Rank))
			require.Equal(t, config["lora_alpha"], l.Alpha)
			require.Equal(t, config["use_rslora"], l.RSLoRA)
		}
	}
	t.Logf("%d of %d load", loaded, len(written.Cases))
	require.Greater(t, loaded, 40)

	for _, kind := range written.Kinds {
		b, err := json.Marshal(map[string]any{"peft_type": kind, "task_type": "CAUSAL_LM"})
		require.NoError(t, err)
		_, err = ParseLoRA(b)
		require.ErrorContains(t, err, `unsupported adapters: peft_type is "`+kind+`", must be "LORA"`)
	}
}
