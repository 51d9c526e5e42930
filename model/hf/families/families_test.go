package families

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model"
)

// The counts are those of the published checkpoints.
func TestParameters(t *testing.T) {
	want := map[string]int64{
		"qwen2.5-0.5b": 494_032_768, "qwen2.5-1.5b": 1_543_714_304, "qwen2.5-3b": 3_085_938_688, "qwen2.5-7b": 7_615_616_512,
		"qwen2.5-14b": 14_770_033_664, "qwen2.5-32b": 32_763_876_352, "qwen2.5-72b": 72_706_203_648,
		"qwen3-0.6b": 596_049_920, "qwen3-1.7b": 1_720_574_976, "qwen3-4b": 4_022_468_096, "qwen3-8b": 8_190_735_360,
		"qwen3-14b": 14_768_307_200, "qwen3-32b": 32_762_123_264,
		"smollm2-135m": 134_515_008, "smollm2-360m": 361_821_120, "smollm2-1.7b": 1_711_376_384,
		"llama3-8b": 8_030_261_248, "llama3-70b": 70_553_706_496, "llama3.1-8b": 8_030_261_248, "llama3.1-70b": 70_553_706_496,
		"llama3.2-1b": 1_235_814_400, "llama3.2-3b": 3_212_749_824,
	}
	require.Len(t, Names(), len(want))
	for _, name := range Names() {
		k, err := ByName(name)
		require.NoError(t, err)
		var n int64
		for _, x := range k.Config.Tensors() {
			n += int64(x.Elements())
		}
		require.Equal(t, want[name], n, name)
	}
}

func TestFind(t *testing.T) {
	for name, want := range map[string]string{
		"Qwen/Qwen2.5-0.5B": "qwen2.5-0.5b", "Qwen/Qwen2.5-7B-Instruct": "qwen2.5-7b", "qwen/qwen2.5-coder-3b-instruct": "qwen2.5-3b",
		"Qwen/Qwen3-8B": "qwen3-8b", "Qwen/Qwen3-0.6B-Base": "qwen3-0.6b", "meta-llama/Llama-3.2-1B-Instruct": "llama3.2-1b", "meta-llama/Llama-3.3-70B-Instruct": "llama3.1-70b",
		"HuggingFaceTB/SmolLM2-135M-Instruct": "smollm2-135m", "HuggingFaceTB/SmolLM2-1.7B": "smollm2-1.7b",
	} {
		k, ok := OnHub(name)
		require.True(t, ok, name)
		require.Equal(t, want, k.Name)
	}
	for _, name := range []string{"Qwen/Qwen2.5-Coder-72B", "Qwen/Qwen3-32B-Base", "Qwen/Qwen3-30B-A3B", "HuggingFaceTB/SmolLM3-3B", "qwen2.5-7b", ""} {
		_, ok := OnHub(name)
		require.False(t, ok, name)
	}
	_, err := ByName("Qwen2.5-7B")
	require.NoError(t, err)
	_, err = ByName("qwen2.5-0.6b")
	require.ErrorContains(t, err, `no shape is called "qwen2.5-0.6b": known are qwen2.5-0.5b, qwen2.5-1.5b, qwen2.5-3b`)
	require.ErrorContains(t, err, `; the nearest is "qwen2.5-0.5b"`)
}

// SmolLM2's three sizes are read from config.json in the hub's form, with the fields that have no
// effect here, and have the known shapes. SmolLM3, which leaves rotary positions out of every fourth
// layer, is refused by its name.
func TestSmolLM2(t *testing.T) {
	const form = `{"architectures": ["LlamaForCausalLM"], "attention_bias": false, "attention_dropout": 0.0, "bos_token_id": 1, "eos_token_id": 2,
		"hidden_act": "silu", "hidden_size": %d, "initializer_range": %v, "intermediate_size": %d, "is_llama_config": true,
		"max_position_embeddings": 8192, "mlp_bias": false, "model_type": %q, "num_attention_heads": %d, "num_hidden_layers": %d,
		"num_key_value_heads": %d, "pad_token_id": 2, "pretraining_tp": 1, "rms_norm_eps": 1e-05, "rope_interleaved": false,
		"rope_scaling": null, "rope_theta": %d, "tie_word_embeddings": true, "torch_dtype": "bfloat16",
		"transformers.js_config": {"dtype": "q4", "kv_cache_dtype": {"q4f16": "float16", "fp16": "float16"}},
		"transformers_version": "4.42.3", "use_cache": true, "vocab_size": 49152}`
	for name, c := range map[string]struct {
		hidden, intermediate, heads, layers, kvHeads, theta int
		deviation                                           string
	}{
		"smollm2-135m": {576, 1536, 9, 30, 3, 100_000, "0.041666666666666664"},
		"smollm2-360m": {960, 2560, 15, 32, 5, 100_000, "0.02"},
		"smollm2-1.7b": {2048, 8192, 32, 24, 32, 130_000, "0.02"},
	} {
		config := func(modelType string) []byte {
			return fmt.Appendf(nil, form, c.hidden, c.deviation, c.intermediate, modelType, c.heads, c.layers, c.kvHeads, c.theta)
		}
		read, err := model.ParseConfig(config("llama"))
		require.NoError(t, err, name)
		require.Equal(t, []model.TokenIDs{"1", "2", "2"}, []model.TokenIDs{read.BOS, read.EOS, read.Pad})
		read.BOS, read.EOS, read.Pad = "", "", ""
		known, err := ByName(name)
		require.NoError(t, err)
		require.Equal(t, known.Config, read, name)
		_, err = model.ParseConfig(config("smollm3"))
		require.ErrorContains(t, err, `model_type is "smollm3": supported are`)
	}
}
