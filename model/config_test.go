package model

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const classic = `{"model_type":"qwen2","architectures":["Qwen2ForCausalLM"],"hidden_size":8,"intermediate_size":12,
"num_hidden_layers":2,"num_attention_heads":2,"num_key_value_heads":1,"vocab_size":20,"rope_theta":1000000.0,
"rms_norm_eps":1e-06,"tie_word_embeddings":true,"hidden_act":"silu","use_sliding_window":false,"sliding_window":4096,
"eos_token_id":[5,6],"bos_token_id":3}`

func TestParseConfigForms(t *testing.T) {
	old, err := ParseConfig([]byte(classic))
	require.NoError(t, err)
	require.Equal(t, 1e6, old.RopeTheta)
	require.Equal(t, 4, old.HeadDim)
	require.True(t, old.TieEmbeddings)
	require.Equal(t, TokenIDs("[5,6]"), old.EOS)
	require.Empty(t, old.Pad)
	newer := strings.Replace(classic, `"rope_theta":1000000.0`, `"rope_parameters":{"rope_theta":1000000.0,"rope_type":"default"}`, 1)
	c, err := ParseConfig([]byte(newer))
	require.NoError(t, err)
	require.Equal(t, old, c)

	again, err := ParseConfig(c.JSON())
	require.NoError(t, err)
	require.Equal(t, c, again)
	require.Equal(t, c.JSON(), again.JSON())
	var raw map[string]any
	require.NoError(t, json.Unmarshal(c.JSON(), &raw))
	require.Equal(t, "float32", raw["dtype"])
	require.Contains(t, string(c.JSON()), `"rope_theta": 1000000.0`)
	require.Contains(t, string(c.JSON()), `"attention_dropout": 0.0`)
}

// Each family's config.json is read and written again with one meaning; the golden folders'
// are as transformers writes them.
func TestParseConfigOfFamilies(t *testing.T) {
	read := func(name string) Config {
		b, err := os.ReadFile(filepath.Join("testdata", name, ConfigFile))
		require.NoError(t, err)
		c, err := ParseConfig(b)
		require.NoError(t, err)
		again, err := ParseConfig(c.JSON())
		require.NoError(t, err)
		require.Equal(t, c, again)
		return c
	}
	q := read("qwen3-tiny")
	require.Equal(t, Qwen3, q.Family)
	require.Equal(t, 16, q.HeadDim)
	require.Contains(t, string(q.JSON()), `"attention_bias": false`)
	require.Contains(t, string(q.JSON()), `"Qwen3ForCausalLM"`)
	l := read("llama-tiny")
	require.Equal(t, Llama, l.Family)
	require.Equal(t, RopeScaling{Factor: 8, LowFrequency: 1, HighFrequency: 4, OriginalPositions: 64}, l.RopeScaling)
	require.Contains(t, string(l.JSON()), `"mlp_bias": false`)
	require.NotContains(t, string(l.JSON()), "sliding_window")

	// The classic form, in which Llama 3.1 was published.
	const published = `{"model_type":"llama","architectures":["LlamaForCausalLM"],"hidden_size":4096,"intermediate_size":14336,"num_hidden_layers":32,
"num_attention_heads":32,"num_key_value_heads":8,"vocab_size":128256,"rope_theta":500000.0,"rms_norm_eps":1e-05,"max_position_embeddings":131072,
"eos_token_id":[128001,128008,128009],"bos_token_id":128000,"attention_bias":false,"mlp_bias":false,"pretraining_tp":1,
"rope_scaling":{"factor":8.0,"low_freq_factor":1.0,"high_freq_factor":4.0,"original_max_position_embeddings":8192,"rope_type":"llama3"}}`
	c, err := ParseConfig([]byte(published))
	require.NoError(t, err)
	require.Equal(t, RopeScaling{Factor: 8, LowFrequency: 1, HighFrequency: 4, OriginalPositions: 8192}, c.RopeScaling)
	require.Equal(t, int64(8_030_261_248), c.Parameters())
	require.Contains(t, string(c.JSON()), `"rope_scaling"`)
	for _, bad := range []struct{ from, to, want string }{
		{`"factor":8.0`, `"factor":0`, "positive factor"},
		{`"low_freq_factor":1.0,`, ``, "positive low_freq_factor"},
		{`"high_freq_factor":4.0`, `"high_freq_factor":1.0`, "high_freq_factor 1, must be above"},
		{`"original_max_position_embeddings":8192`, `"original_max_position_embeddings":0`, "original_max_position_embeddings 0"},
		{`"llama3"`, `"yarn"`, `rope_type "yarn": only "default" and "llama3" are supported`},
		{`"attention_bias":false`, `"attention_bias":true`, "attention_bias is true"},
		{`"mlp_bias":false`, `"mlp_bias":true`, "mlp_bias is true"},
		{`"pretraining_tp":1`, `"sliding_window":4096`, "sliding windows are not supported"},
		{`"pretraining_tp":1`, `"rope_parameters":{"rope_type":"default"}`, "rope_scaling and rope_parameters differ"},
	} {
		_, err := ParseConfig([]byte(strings.Replace(published, bad.from, bad.to, 1)))
		require.ErrorIs(t, err, ErrConfig, bad.to)
		require.ErrorContains(t, err, bad.want)
	}
	c, err = ParseConfig([]byte(strings.Replace(published, `"original_max_position_embeddings":8192,`, "", 1)))
	require.NoError(t, err)
	require.Equal(t, 131072, c.RopeScaling.OriginalPositions, "the model's positions, if it does not say")
}

func TestParseConfigRefuses(t *testing.T) {
	for _, c := range []struct{ from, to, want string }{
		{`"qwen2"`, `"mistral"`, `model_type is "mistral": supported are "qwen2" (Qwen2ForCausalLM), "qwen3" (Qwen3ForCausalLM), "llama" (LlamaForCausalLM, rope_type "default" or "llama3")`},
		{`"qwen2"`, `"llama"`, `architectures is ["Qwen2ForCausalLM"], only "LlamaForCausalLM" is supported for model_type "llama"`},
		{`"use_sliding_window":false`, `"num_experts":8`, `num_experts is 8: it belongs to another architecture`},
		{`"use_sliding_window":false`, `"kv_lora_rank":512`, `kv_lora_rank`},
		{`"use_sliding_window":false`, `"partial_rotary_factor":0.5`, `partial_rotary_factor`},
		{`"use_sliding_window":false`, `"rope_scaling":{"rope_type":"llama3","factor":8}`, `rope_type "llama3": only "default" is supported for model_type "qwen2"`},
		{`"silu"`, `"gelu"`, `hidden_act is "gelu"`},
		{`"use_sliding_window":false`, `"use_sliding_window":true`, "use_sliding_window"},
		{`"use_sliding_window":false`, `"layer_types":["full_attention","sliding_attention"]`, "layer_types[1]"},
		{`"use_sliding_window":false`, `"layer_types":["full_attention"]`, "layer_types has 1"},
		{`"use_sliding_window":false`, `"rope_scaling":{"type":"yarn","factor":4.0}`, `rope_scaling has rope_type "yarn"`},
		{`"use_sliding_window":false`, `"rope_parameters":{"rope_type":"linear","factor":2.0}`, "rope_parameters"},
		{`"use_sliding_window":false`, `"rope_parameters":{"full_attention":{"rope_theta":1e6}}`, `rope_parameters has an object "full_attention"`},
		{`"use_sliding_window":false`, `"quantization_config":{}`, "quantization_config"},
		{`"use_sliding_window":false`, `"attention_dropout":0.1`, "attention_dropout"},
		{`"num_key_value_heads":1`, `"num_key_value_heads":3`, "num_key_value_heads 3"},
		{`"hidden_size":8`, `"hidden_size":9`, "not a multiple"},
		{`"hidden_size":8`, `"head_dim":3,"hidden_size":8`, "head_dim 3 is odd"},
		{`"vocab_size":20`, `"vocab_size":0`, "vocab_size is 0"},
		{`"vocab_size":20`, `"vocab_size":99999999999`, "vocab_size"},
		{`"num_hidden_layers":2`, `"num_hidden_layers":100000000`, "num_hidden_layers is 100000000, at most 4096"},
		{`1e-06`, `0`, "rms_norm_eps"},
		{`"bos_token_id":3`, `"bos_token_id":20`, "bos_token_id is 20"},
		{`"bos_token_id":3`, `"bos_token_id":"x"`, "bos_token_id"},
		{`"bos_token_id":3`, `"bos_token_id":[]`, "bos_token_id"},
		{`"bos_token_id":3`, `"bos_token_id":[3,-1]`, "bos_token_id is -1"},
		{classic, `[]`, "config.json"},
	} {
		_, err := ParseConfig([]byte(strings.Replace(classic, c.from, c.to, 1)))
		require.ErrorIs(t, err, ErrConfig, c.to)
		require.ErrorContains(t, err, c.want)
	}
	_, err := ParseConfig([]byte(`{"model_type":"x","hidden_act":"y"}`))
	require.ErrorContains(t, err, "model_type")
	require.ErrorContains(t, err, "hidden_act")
	require.ErrorContains(t, err, "vocab_size")
}

func FuzzParseConfig(f *testing.F) {
	f.Add([]byte(classic))
	f.Add([]byte(`{"model_type":"llama","vocab_size":9,"hidden_size":8,"intermediate_size":8,"num_hidden_layers":1,"num_attention_heads":2,"rope_scaling":{"rope_type":"llama3","factor":8,"low_freq_factor":1,"high_freq_factor":4}}`))
	f.Add([]byte(`{"model_type":"qwen3","vocab_size":9,"hidden_size":8,"intermediate_size":8,"num_hidden_layers":1,"num_attention_heads":2,"eos_token_id":[1,2]}`))
	f.Add([]byte(`{"model_type":"qwen2","rope_parameters":null,"num_attention_heads":0}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := ParseConfig(b)
		if err != nil {
			return
		}
		if c.Layers > 1000 { // listing its tensors would take for ever, and is fine
			return
		}
		again, err := ParseConfig(c.JSON())
		require.NoError(t, err)
		require.Equal(t, c, again)
	})
}
