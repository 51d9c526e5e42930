package hf

import "math"

// config is config.json, with the fields that transformers has for the architecture. dtype is that
// of the weights.
func (m *Model) config(dtype string) object {
	s := m.shape
	o := object{{"architectures", []string{m.arch.class}}, {"model_type", m.arch.name}}
	if !m.arch.biases { // Qwen2's have no switch
		o = o.with("attention_bias", false)
	}
	o = o.with("attention_dropout", number(0))
	if m.arch.permuted {
		o = o.with("mlp_bias", false)
	}
	o = append(o, object{
		{"hidden_act", "silu"}, {"hidden_size", s.hidden}, {"intermediate_size", s.feedForward}, {"num_hidden_layers", s.layers},
		{"num_attention_heads", s.heads}, {"num_key_value_heads", s.kvHeads},
	}...)
	if s.headDim*s.heads != s.hidden || m.arch.headNorms {
		o = o.with("head_dim", s.headDim)
	}
	o = append(o, object{
		{"max_position_embeddings", s.context}, {"rms_norm_eps", number(decimal(s.eps))}, {"rope_theta", number(decimal(s.theta))},
		{"rope_scaling", s.scaling.json()}, {"vocab_size", s.vocabulary}, {"tie_word_embeddings", s.tied},
	}...)
	// A GGUF does not say with which deviation the model was drawn. Nothing of a model that is
	// trained already depends on it.
	o = m.tokens.appendIDs(o, m.tokens.eos).with("initializer_range", number(1/math.Sqrt(float64(s.hidden))))
	if m.arch.permuted {
		o = o.with("pretraining_tp", 1)
	} else {
		o = o.with("use_sliding_window", false).with("sliding_window", nil).with("max_window_layers", s.layers)
	}
	return o.with("torch_dtype", dtype).with("use_cache", true)
}

// json is rope_scaling in config.json.
func (s *ropeScaling) json() any {
	if s == nil {
		return nil
	}
	return object{
		{"factor", number(s.factor)}, {"high_freq_factor", number(s.high)}, {"low_freq_factor", number(s.low)},
		{"original_max_position_embeddings", s.original}, {"rope_type", "llama3"},
	}
}

// generation is generation_config.json. All tokens that end a turn are in it.
func (m *Model) generation() object {
	var ends any = m.tokens.eos
	if len(m.tokens.ends) > 1 {
		var ids list
		for _, id := range m.tokens.ends {
			ids = append(ids, id)
		}
		ends = ids
	}
	return m.tokens.appendIDs(object{{"_from_model_config", true}}, ends)
}
