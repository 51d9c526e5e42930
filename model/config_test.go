package model

import (
	"encoding/json"
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
	require.Equal(t, 5, *old.EOS)
	require.Nil(t, old.Pad)
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

func TestParseConfigRefuses(t *testing.T) {
	for _, c := range []struct{ from, to, want string }{
		{`"qwen2"`, `"llama"`, `model_type is "llama"`},
		{`"silu"`, `"gelu"`, `hidden_act is "gelu"`},
		{`"use_sliding_window":false`, `"use_sliding_window":true`, "use_sliding_window"},
		{`"use_sliding_window":false`, `"layer_types":["full_attention","sliding_attention"]`, "layer_types[1]"},
		{`"use_sliding_window":false`, `"layer_types":["full_attention"]`, "layer_types has 1"},
		{`"use_sliding_window":false`, `"rope_scaling":{"type":"yarn","factor":4.0}`, `rope_scaling has rope_type "yarn"`},
		{`"use_sliding_window":false`, `"rope_parameters":{"rope_type":"linear","factor":2.0}`, "rope_parameters"},
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
