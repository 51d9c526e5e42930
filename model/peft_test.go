package model

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/batch"
	"github.com/reprise-rl/reprise/model/safetensors"
)

func TestParseLoRA(t *testing.T) {
	got, err := ParseLoRA([]byte(`{"peft_type": "LORA", "r": 16, "lora_alpha": 32.5, "use_rslora": true,
		"target_modules": ["v_proj", "self_attn.q_proj"], "base_model_name_or_path": "qwen", "modules_to_save": null, "use_later": false}`))
	require.NoError(t, err)
	want := LoRA{Rank: 16, Alpha: 32.5, RSLoRA: true, Targets: 0b101, Base: "qwen"}
	require.Equal(t, want, got)
	require.Equal(t, 32.5/4, got.Scale())
	require.Equal(t, []string{"q_proj", "v_proj"}, got.Targets.Names())
	require.NoError(t, got.Check())

	again, err := ParseLoRA(got.JSON())
	require.NoError(t, err)
	require.Equal(t, want, again)
	got.RSLoRA, got.Alpha, got.Targets = false, 8, AllLinear
	require.Equal(t, 0.5, got.Scale())
	require.Contains(t, string(got.JSON()), `"lora_alpha": 8,`, "an integer, as PEFT writes it")
	again, err = ParseLoRA([]byte(`{"peft_type": "LORA", "target_modules": "all-linear"}`))
	require.NoError(t, err)
	require.Equal(t, LoRA{Rank: 8, Alpha: 8, Targets: AllLinear}, again, "PEFT's defaults")
}

func TestParseLoRARefuses(t *testing.T) {
	const targets = "must be \"all-linear\" or a list of some of q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj"
	for field, c := range map[string]struct{ value, message string }{
		"peft_type":               {`"LOHA"`, `peft_type is "LOHA", must be "LORA"`},
		"task_type":               {`"SEQ_CLS"`, `task_type is "SEQ_CLS", must be "CAUSAL_LM" or null`},
		"r":                       {`0`, "r is 0, must be from 1 to 4096"},
		"lora_alpha":              {`-1`, "lora_alpha is -1, must be a positive number"},
		"lora_dropout":            {`0.05`, "lora_dropout is 0.05, must be 0: dropout is not supported"},
		"bias":                    {`"lora_only"`, `bias is "lora_only", must be "none"`},
		"use_dora":                {`true`, "use_dora is true, which is not supported"},
		"use_rslora":              {`1`, "use_rslora is 1, must be true or false"},
		"modules_to_save":         {`["lm_head"]`, `modules_to_save is ["lm_head"], which is not supported`},
		"rank_pattern":            {`{"q_proj": 4}`, `rank_pattern is {"q_proj":4}, which is not supported`},
		"alpha_pattern":           {`{"q_proj": 4}`, "alpha_pattern is"},
		"layers_to_transform":     {`[0]`, "layers_to_transform is [0], which is not supported"},
		"layer_replication":       {`[[0, 1]]`, "layer_replication is [[0,1]], which is not supported"},
		"fan_in_fan_out":          {`true`, "fan_in_fan_out is true"},
		"init_lora_weights":       {`"pissa_niter_4"`, `init_lora_weights is "pissa_niter_4", must be true or false or "gaussian"`},
		"exclude_modules":         {`["q_proj"]`, "exclude_modules is"},
		"trainable_token_indices": {`[1]`, "trainable_token_indices is [1], which is not supported"},
		"use_next_year":           {`true`, "use_next_year is true, which is not supported"},
		"target_parameters":       {`["` + strings.Repeat("x", 100) + `"]`, "xxx…, which is not supported"},
		"target_modules":          {`"q_proj|v_proj"`, targets + "; a pattern is not supported"},
	} {
		raw := fmt.Sprintf(`{"peft_type": "LORA", "target_modules": ["q_proj"], %q: %s}`, field, c.value)
		_, err := ParseLoRA([]byte(raw))
		require.ErrorIs(t, err, ErrAdapter, field)
		require.ErrorContains(t, err, c.message, field)
	}
	for raw, message := range map[string]string{
		`[]`: "read adapter_config.json", `{"r": 3}`: "peft_type is missing; target_modules is missing",
		`{"peft_type": "LORA", "target_modules": ["lm_head"]}`:                 `target "lm_head", must be one of q_proj`,
		`{"peft_type": "LORA", "target_modules": []}`:                          targets,
		`{"peft_type": "IA3", "use_dora": true, "target_modules": ["q_proj"]}`: `peft_type is "IA3", must be "LORA"`,
	} {
		_, err := ParseLoRA([]byte(raw))
		require.ErrorIs(t, err, ErrAdapter)
		require.ErrorContains(t, err, message)
	}
	for _, bad := range []LoRA{{}, {Rank: 1, Alpha: 1}, {Rank: 1, Targets: 1}, {Rank: 5000, Alpha: 1, Targets: 1}, {Rank: 1, Alpha: 1, Targets: 255}} {
		require.Error(t, bad.Check())
	}
}

func FuzzParseLoRA(f *testing.F) {
	for _, seed := range []string{string(tinyLoRA().LoRA.JSON()), `{"peft_type":"LORA","target_modules":"all-linear","r":1e3}`, `{"r":null}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		l, err := ParseLoRA(b)
		if err != nil {
			return
		}
		require.NoError(t, l.Check())
		again, err := ParseLoRA(l.JSON())
		require.NoError(t, err)
		require.Equal(t, l, again)
	})
}

// A state with adapters is written as a folder that PEFT reads, with its moments beside, and
// comes back bit for bit.
func TestAdapterFiles(t *testing.T) {
	c := tinyLoRA()
	p, base, s := adapted(t, c, tinyShapes)
	next, _, err := p.Learner.Update(bg, twin(t, p, s), []batch.MicroBatch{scoredBatch(t, p, s, 1, 1)}, testSettings())
	require.NoError(t, err)
	defer next.Free()
	require.NotEqual(t, mark(t, s), mark(t, next))
	files := stored(t, next)
	require.Len(t, files, 3)
	for _, name := range []string{AdapterConfigFile, AdapterFile, OptimizerFile} {
		require.Contains(t, files, name)
	}
	folder, err := OpenAdapterFS(held(files), c.Base())
	require.NoError(t, err)
	require.Equal(t, c, folder.Config)
	src, err := folder.Policy()
	require.NoError(t, err)
	again, err := p.Load(src.Over(base))
	require.NoError(t, err)
	defer again.Free()
	require.Equal(t, mark(t, next), mark(t, again))

	q, err := testDevice(t).Programs(c.Critic(), nil, Shapes{MicroBatch: 3, Sequence: 7})
	require.NoError(t, err)
	defer q.Free()
	critic, err := q.Load(next.NewCritic(1))
	require.NoError(t, err)
	defer critic.Free()
	for name, b := range stored(t, critic) {
		require.False(t, OfPolicy(name))
		files[name] = b
	}
	folder, err = OpenAdapterFS(held(files), c.Base())
	require.NoError(t, err)
	src, err = folder.Second(c.Critic())
	require.NoError(t, err)
	same, err := q.Load(src.Over(base))
	require.NoError(t, err)
	defer same.Free()
	require.Equal(t, mark(t, critic), mark(t, same))
}

// A folder comes from a stranger: what does not fit the base model is refused, and so is what
// would need more memory than the file has bytes.
func TestStrangeAdapters(t *testing.T) {
	c := tinyLoRA()
	params := tinyAdapters(c)
	file, err := safetensors.Encode(params.tensors(""), nil)
	require.NoError(t, err)
	open := func(config, tensors []byte) error {
		_, err := OpenAdapterFS(held(map[string][]byte{AdapterConfigFile: config, AdapterFile: tensors}), c.Base())
		return err
	}
	require.NoError(t, open(c.LoRA.JSON(), file))
	other := c.LoRA
	other.Rank = 4
	require.ErrorContains(t, open(other.JSON(), file), `lora_A.weight" has shape [3 16], should be [4 16]`)
	other = c.LoRA
	other.Targets = AllLinear
	require.ErrorContains(t, open(other.JSON(), file), `missing "base_model.model.model.layers.0.self_attn.k_proj.lora_A.weight"`)
	other.Targets = 1
	require.ErrorContains(t, open(other.JSON(), file), `extra "base_model.model.model.layers.0.self_attn.v_proj.lora_A.weight"`)
	wide := c.Base()
	wide.HiddenSize = 32
	_, err = OpenAdapterFS(held(map[string][]byte{AdapterConfigFile: c.LoRA.JSON(), AdapterFile: file}), wide)
	require.ErrorIs(t, err, ErrTensors)
	require.ErrorContains(t, err, "adapters of another base model, or other targets")
	require.ErrorContains(t, open([]byte(`{"peft_type": "LORA"}`), file), "target_modules is missing")

	name := c.Tensors()[0].Name
	header, err := json.Marshal(map[string]any{name: map[string]any{"dtype": "F32", "shape": []int{1 << 30, 1 << 30}, "data_offsets": []int{0, 1 << 62}}})
	require.NoError(t, err)
	huge := append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...)
	require.Error(t, open(c.LoRA.JSON(), huge))
	_, err = OpenAdapterFS(held(map[string][]byte{AdapterConfigFile: c.LoRA.JSON(), "adapter_model.bin": {1}}), c.Base())
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, "save the adapters as safetensors")
}
