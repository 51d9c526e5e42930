package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/reprise-rl/reprise/infra/filekind"
	"github.com/reprise-rl/reprise/model/hf/modeldir"
)

// Files of adapters, as PEFT names them.
const (
	AdapterConfigFile = "adapter_config.json"
	AdapterFile       = "adapter_model.safetensors"
)

// OfAdapters reports whether a file of a folder is one of adapters.
func OfAdapters(file string) bool {
	stem := strings.TrimSuffix(AdapterFile, tensorsEnding)
	rest, ok := strings.CutPrefix(file, stem)
	return file == AdapterConfigFile || ok && (strings.HasPrefix(rest, ".") || strings.HasPrefix(rest, "-"))
}

// ErrAdapter is the kind of errors about an adapter_config.json that is wrong or needs
// something that this package does not support.
var ErrAdapter = errors.New("unsupported adapters")

// OpenAdapter opens a local folder of adapters over a base model. It opens nothing outside
// dir. See OpenAdapterFS. The caller closes it.
func OpenAdapter(dir string, base Config) (*Folder, error) {
	local, err := modeldir.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("open folder of adapters: %w", err)
	}
	f, err := OpenAdapterFS(local, base)
	if err != nil {
		local.Close()
		return nil, fmt.Errorf("open folder of adapters %s: %w", dir, err)
	}
	f.close = local.Close
	return f, nil
}

// OpenAdapterFS opens a folder of adapters as PEFT writes it, or a snapshot of a policy with
// adapters: adapter_config.json, and adapter_model.safetensors in float32, bfloat16 or
// float16. base is the base model's configuration; the folder's Config is base with LoRA. One
// error reports all tensors that are missing, extra or misshapen.
func OpenAdapterFS(fsys fs.FS, base Config) (*Folder, error) {
	raw, err := readSmall(fsys, AdapterConfigFile)
	if err != nil {
		return nil, err
	}
	f := &Folder{Config: base, fsys: fsys, close: func() error { return nil }}
	if f.Config.LoRA, err = ParseLoRA(raw); err != nil {
		return nil, err
	}
	if f.weights, err = openTensors(fsys, AdapterFile); err != nil {
		return nil, missingWeights(fsys, AdapterFile, err)
	}
	if err := f.weights.misfits(f.weights.check(f.Config, "")); err != nil {
		return nil, fmt.Errorf("adapters of another base model, or other targets: %w", err)
	}
	return f, nil
}

// neutralInits are the initialisations that leave the base model's weights as they are.
var neutralInits = []string{"true", "false", `"gaussian"`, `"orthogonal"`, `"eva"`}

// adapterFields reads what a field of adapter_config.json says into the adapters, or only
// checks it. The error says what the field must be.
var adapterFields = map[string]func(raw []byte, l *LoRA) error{
	"peft_type": oneOf(`"LORA"`),
	"task_type": oneOf(`"CAUSAL_LM"`, "null"),
	"bias":      oneOf(`"none"`),
	"r": func(raw []byte, l *LoRA) error {
		if err := number(raw, &l.Rank); err != nil || l.Rank < 1 || l.Rank > MaxRank {
			return fmt.Errorf("must be from 1 to %d", MaxRank)
		}
		return nil
	},
	"lora_alpha": func(raw []byte, l *LoRA) error {
		if err := number(raw, &l.Alpha); err != nil || !(l.Alpha > 0) || l.Alpha > math.MaxFloat32 {
			return errors.New("must be a positive number")
		}
		return nil
	},
	"use_rslora": func(raw []byte, l *LoRA) error {
		l.RSLoRA = string(raw) == "true"
		return oneOf("true", "false")(raw, l)
	},
	"lora_dropout": func(raw []byte, _ *LoRA) error {
		var p float64
		if err := number(raw, &p); err != nil || p != 0 {
			return errors.New("must be 0: dropout is not supported")
		}
		return nil
	},
	"target_modules": func(raw []byte, l *LoRA) (err error) {
		l.Targets, err = readTargets(raw)
		return err
	},
	"base_model_name_or_path": func(raw []byte, l *LoRA) error {
		if err := json.Unmarshal(raw, &l.Base); err != nil || len(l.Base) > 4096 {
			return errors.New("must be a name")
		}
		return nil
	},
	"init_lora_weights": oneOf(neutralInits...),
	"layers_to_transform": func(raw []byte, _ *LoRA) error { // 0 does not switch it off: it is the first layer alone
		if string(raw) != "null" && string(raw) != "[]" {
			return errors.New("which is not supported")
		}
		return nil
	},
	// These have no effect on adapters as they are supported.
	"peft_version": anything, "revision": anything, "auto_mapping": anything, "inference_mode": anything,
	"megatron_core": anything, "qalora_group_size": anything, "runtime_config": anything, "layers_pattern": anything,
	// Of an initialisation, which init_lora_weights names: it is over, or it is refused by that
	// name. What EVA leaves are ranks of their own, in rank_pattern.
	"eva_config": anything, "corda_config": anything, "loftq_config": anything, "lora_ga_config": anything,
	// Of modules_to_save, trainable_token_indices and targets that are refused.
	"ensure_weight_tying": anything,
}

// number reads a number, which may not be null.
func number[T int | float64](raw []byte, into *T) error {
	if string(raw) == "null" {
		return errors.New("null")
	}
	return json.Unmarshal(raw, into)
}

// anything accepts every value.
func anything([]byte, *LoRA) error { return nil }

// oneOf accepts some values.
func oneOf(values ...string) func([]byte, *LoRA) error {
	return func(raw []byte, _ *LoRA) error {
		if !slices.Contains(values, string(raw)) {
			return fmt.Errorf("must be %s", strings.Join(values, " or "))
		}
		return nil
	}
}

// neutral are the values that switch off a field that is not known: use_dora, modules_to_save,
// rank_pattern, and what later versions of PEFT add.
var neutral = []string{"null", "false", "{}", "[]", `""`, "0", "0.0"}

// readTargets reads target_modules: names of linear maps, or "all-linear".
func readTargets(raw []byte) (Targets, error) {
	const supported = `must be "all-linear" or a list of some of %s; a pattern is not supported`
	if string(raw) == `"all-linear"` {
		return AllLinear, nil
	}
	var names []string
	if err := json.Unmarshal(raw, &names); err != nil || len(names) == 0 {
		return 0, fmt.Errorf(supported, strings.Join(targetNames[:], ", "))
	}
	for i, name := range names {
		names[i] = strings.TrimPrefix(strings.TrimPrefix(name, "self_attn."), "mlp.")
	}
	return ParseTargets(names)
}

// ParseLoRA reads PEFT's adapter_config.json. One ErrAdapter names all fields that are wrong
// or need something unsupported: other kinds of adapters, DoRA, trained biases or whole
// modules, dropout, ranks by pattern, some layers alone, initialisations that change the base
// model. A field that is not known must have a value that switches it off.
func ParseLoRA(b []byte) (LoRA, error) {
	var fields map[string]json.RawMessage
	err := filekind.JSON(b)
	if err == nil {
		err = json.Unmarshal(b, &fields)
	}
	if err != nil {
		return LoRA{}, fmt.Errorf("read %s: %w: %w", AdapterConfigFile, ErrAdapter, err)
	}
	if kind, ok := fields["peft_type"]; ok && string(kind) != `"LORA"` {
		return LoRA{}, fmt.Errorf(`read %s: %w: peft_type is %s, must be "LORA"`, AdapterConfigFile, ErrAdapter, short(kind))
	}
	l := LoRA{Rank: 8, Alpha: 8} // PEFT's defaults
	var bad []string
	for _, name := range []string{"peft_type", "target_modules"} {
		if _, ok := fields[name]; !ok {
			bad = append(bad, name+" is missing")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		var compact bytes.Buffer
		if err := json.Compact(&compact, fields[name]); err != nil {
			return LoRA{}, fmt.Errorf("read %s: %w: %s: %v", AdapterConfigFile, ErrAdapter, name, err)
		}
		raw := compact.Bytes()
		read, known := adapterFields[name]
		switch {
		case known:
			if err := read(raw, &l); err != nil {
				bad = append(bad, fmt.Sprintf("%s is %s, %v", name, short(raw), err))
			}
		case !slices.Contains(neutral, string(raw)):
			bad = append(bad, fmt.Sprintf("%s is %s, which is not supported", name, short(raw)))
		}
	}
	if len(bad) > 0 {
		return LoRA{}, fmt.Errorf("read %s: %w: %s", AdapterConfigFile, ErrAdapter, strings.Join(bad, "; "))
	}
	return l, nil
}

// short is the beginning of a value, for errors.
func short(raw []byte) string {
	const most = 80
	if len(raw) <= most {
		return string(raw)
	}
	return string(raw[:most]) + "…"
}

// JSON returns adapter_config.json as PEFT reads it, with sorted keys. The same adapters give
// the same bytes.
func (l LoRA) JSON() []byte {
	alpha := json.RawMessage(fmt.Sprint(l.Alpha))
	b, err := json.MarshalIndent(map[string]any{ // a map is marshalled with sorted keys
		"alpha_pattern":           map[string]any{},
		"auto_mapping":            nil,
		"base_model_name_or_path": l.Base,
		"bias":                    "none",
		"fan_in_fan_out":          false,
		"inference_mode":          true,
		"init_lora_weights":       true,
		"layer_replication":       nil,
		"layers_pattern":          nil,
		"layers_to_transform":     nil,
		"lora_alpha":              alpha,
		"lora_dropout":            floatJSON(0),
		"modules_to_save":         nil,
		"peft_type":               "LORA",
		"r":                       l.Rank,
		"rank_pattern":            map[string]any{},
		"revision":                nil,
		"target_modules":          l.Targets.Names(),
		"task_type":               "CAUSAL_LM",
		"use_dora":                false,
		"use_rslora":              l.RSLoRA,
	}, "", "  ")
	if err != nil { // only a number that is not finite fails
		panic(fmt.Sprintf("%s: %v", AdapterConfigFile, err))
	}
	return append(b, '\n')
}
