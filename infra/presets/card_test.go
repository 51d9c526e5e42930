package presets_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/pagetest"
	"github.com/reprise-rl/reprise/infra/presets"
	"github.com/reprise-rl/reprise/infra/presets/presetstest"
	"github.com/reprise-rl/reprise/workers/validate"
)

// onCard begins the name of a method's preset for one card.
const onCard = "methods-"

// onCards are the methods that have one.
var onCards = append(slices.Clone(methods), "distill", "dr-mas", "rae")

// published are those of them whose preset has the settings of their authors.
var published = []string{"agent-prm", "deep-grpo", "distill", "hiper", "istar", "seeupo", "tree-grpo", "tsr"}

// cardFields are the fields of a preset for a card, in their order. The method's own come over them.
var cardFields = []string{"description", "seed", "iterations", "policy", "teacher", "environment", "rollout", "rewards", "selection", "credit", "update", "critic",
	"freshness", "schedule", "snapshot", "evaluation"}

// card is a run of Qwen2.5-0.5B on Sokoban for one card of 80 GB, as RAGEN's are in size.
const card = `{
  "seed": 10000,
  "iterations": 200,
  "policy": {"from": "hf:Qwen/Qwen2.5-0.5B-Instruct", "exact": false, "warm_start": {"steps": 0}},
  "environment": {"name": "sokoban"},
  "rollout": {"protocol": "reprise", "groups": 16, "group_size": 8, "turns": 5, "max_new_tokens": 400, "format_penalty": -0.1},
  "selection": {"method": "all", "drop_flat": false},
  "update": {"learning_rate": 1e-6, "minibatch": 32, "micro_batch": 4, "entropy_coefficient": 0.001},
  "snapshot": {"every": 20, "retain": 1},
  "evaluation": {"every": 10, "instances": 256, "temperature": 0.5}
}`

// ofSize are the fields of the starter's presets that say how large a run is, and not what the method is.
var ofSize = map[string][]string{
	"rollout": {"groups", "turns", "max_new_tokens", "think", "temperature"},
	"update":  {"learning_rate", "micro_batch", "entropy_coefficient"},
	"critic":  {"learning_rate"},
}

// forCard is the preset of a method for one card: the method's settings of its preset for the starter, on the task, the model and the
// scale of card.
func forCard(t *testing.T, method string) string {
	t.Helper()
	text, err := presets.Read(method)
	require.NoError(t, err)
	var of, out map[string]any
	require.NoError(t, json.Unmarshal(text, &of))
	require.NoError(t, json.Unmarshal([]byte(card), &out))
	rollout, turns := out["rollout"].(map[string]any), of["rollout"].(map[string]any)["turns"]
	if size, found := of["rollout"].(map[string]any)["group_size"]; found {
		rollout["groups"] = 128 / int(size.(float64))
	}
	for _, section := range []string{"teacher", "rollout", "selection", "credit", "update", "critic", "freshness", "schedule", "rewards"} {
		value, found := of[section]
		if !found {
			continue
		}
		fields, object := value.(map[string]any)
		if !object {
			out[section] = value
			continue
		}
		for _, name := range ofSize[section] {
			delete(fields, name)
		}
		if out[section] == nil {
			out[section] = map[string]any{}
		}
		presets.Replace(out[section].(map[string]any), fields)
	}
	if lora, found := of["policy"].(map[string]any)["lora"]; found {
		out["policy"].(map[string]any)["lora"] = lora
		out["update"].(map[string]any)["learning_rate"] = 1e-5
	}
	if e := of["environment"].(map[string]any); e["name"] != "bandit" && e["name"] != "frozenlake" {
		out["environment"] = e
		rollout["turns"] = turns
	}
	out["description"] = fmt.Sprintf("The method of the preset %s with Qwen2.5-0.5B on %s, for one card: that preset's settings, on the scale of RAGEN's runs. "+
		"Nobody has trained it yet.", method, out["environment"].(map[string]any)["name"])
	return written(t, out)
}

// written is a preset as the files have them: a line a section.
func written(t *testing.T, doc map[string]any) string {
	t.Helper()
	var b bytes.Buffer
	b.WriteString("{\n")
	lines := 0
	for _, name := range cardFields {
		value, found := doc[name]
		if !found {
			continue
		}
		if lines++; lines > 1 {
			b.WriteString(",\n")
		}
		var line bytes.Buffer
		e := json.NewEncoder(&line)
		e.SetEscapeHTML(false)
		require.NoError(t, e.Encode(value))
		fmt.Fprintf(&b, "  %q: %s", name, pagetest.JSON(bytes.TrimSpace(line.Bytes())))
	}
	require.Len(t, doc, lines)
	b.WriteString("\n}\n")
	return b.String()
}

// Each method has a preset for a card: its settings for the starter on a model of 0.5B, or one with the settings that its authors
// published. Each fits into 80 GB. With -update the former are written.
func TestEveryMethodHasAPresetForACard(t *testing.T) {
	memory, figures, err := validate.ReadCard("80GB")
	require.NoError(t, err)
	for _, method := range presetstest.There(onCards) {
		name := onCard + method
		if presetstest.Without(name) {
			continue // it is a card's alone
		}
		t.Run(name, func(t *testing.T) {
			if !slices.Contains(published, method) {
				pagetest.Same(t, name+".json", forCard(t, method), *update)
			}
			text, err := os.ReadFile(name + ".json")
			require.NoError(t, err)
			v, err := validate.CheckTrain(text, validate.Machine{Card: memory, Devices: 1, Figures: figures}, nil)
			require.NoError(t, err)
			require.Empty(t, v.Problems)
			require.True(t, v.Fits(), "%v", v)
		})
	}
}
