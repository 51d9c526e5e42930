package program

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities/device"
	"github.com/reprise-rl/reprise/infra/plugin/plugintest"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/workers/policy"
	"github.com/reprise-rl/reprise/workers/train"
)

// A run of adapters is exported as adapters, or as a whole model to whose weights they are added.
func TestExportAdapters(t *testing.T) {
	plugintest.Needs(t)
	opened, err := cachedDevice()
	require.NoError(t, err)
	defer opened.Close()
	engine, err := device.NewEngine(opened)
	require.NoError(t, err)
	s := store.NewMemory()
	_, err = train.New(engine, s).Train(t.Context(), "run", []byte(`{
		"seed": 1, "iterations": 2,
		"policy": {"from": "starter", "starter": {"layers": 1, "hidden_size": 32, "intermediate_size": 64, "heads": 2, "kv_heads": 1},
			"warm_start": {"steps": 1, "rows": 4}, "lora": {"rank": 2, "alpha": 8}},
		"environment": {"name": "bandit"},
		"rollout": {"groups": 2, "group_size": 2, "turns": 1, "max_new_tokens": 8, "think": false},
		"selection": {"method": "all"}, "update": {"micro_batch": 4, "learning_rate": 0.05}, "snapshot": {"every": 2}, "evaluation": {"every": 0}
	}`))
	require.NoError(t, err)
	before := keys(t, s)
	root := t.TempDir()
	export := func(o exportOptions) (string, error) {
		var out, progress bytes.Buffer
		o.run, o.dir = "run", filepath.Join(root, o.dir)
		err := exportPolicy(t.Context(), s, o, cachedDevice, &out, &progress)
		return out.String(), err
	}

	_, err = export(exportOptions{version: 2, dir: "hf"})
	require.ErrorContains(t, err, "reprise export run --version 2 --peft ")
	require.ErrorContains(t, err, "reprise export run --version 2 --hf ")
	require.ErrorContains(t, err, " --merge")

	ids := [][]int32{{3, 7, 11, 15, 19, 23}, {4, 8, 12, 16, 20, 24}}
	scored := func(weights model.Source) [][]float32 {
		lp, _, err := model.LogProbs(t.Context(), opened, weights, ids)
		require.NoError(t, err)
		return lp
	}
	var states [][][]float32
	var exported [][2]string
	for version, origin := range []string{"the base model", "rebuilt", "its snapshot"} {
		peft, hf := "peft-"+origin, "hf-"+origin
		out, err := export(exportOptions{version: version, dir: peft, peft: true})
		require.NoError(t, err)
		require.Contains(t, out, "("+origin+")")
		out, err = export(exportOptions{version: version, dir: hf, merge: true, dtype: "float32"})
		require.NoError(t, err)
		require.Contains(t, out, "6 files")
		require.Equal(t, []string{model.AdapterConfigFile, model.AdapterFile, "chat_template.jinja", "tokenizer.json", "tokenizer_config.json"}, namesIn(t, filepath.Join(root, peft)))
		require.ElementsMatch(t, []string{"chat_template.jinja", model.ConfigFile, "generation_config.json", model.WeightsFile, "tokenizer.json", "tokenizer_config.json"}, namesIn(t, filepath.Join(root, hf)))

		base, err := model.OpenFolder(filepath.Join(root, "hf-the base model"))
		require.NoError(t, err)
		defer base.Close()
		adapters, err := model.OpenAdapter(filepath.Join(root, peft), base.Config)
		require.NoError(t, err)
		defer adapters.Close()
		merged, err := model.OpenFolder(filepath.Join(root, hf))
		require.NoError(t, err)
		defer merged.Close()
		with := scored(adapters.First().On(base.First()))
		for i, row := range scored(merged.First()) {
			require.InDeltaSlice(t, row, with[i], 2e-5)
		}
		if version == 0 {
			require.Equal(t, scored(base.First()), with, "new adapters add nothing")
		}
		states = append(states, with)
		exported = append(exported, [2]string{filepath.Join(root, peft), filepath.Join(root, hf)})
	}
	require.NotEqual(t, states[0], states[1])
	require.NotEqual(t, states[1], states[2])
	require.Equal(t, before, keys(t, s), "nothing is written to the store")
	t.Run("in Python", func(t *testing.T) {
		for version, theirs := range inPEFT(t, exported, ids) {
			for what, rows := range theirs {
				for i, row := range rows {
					require.InDeltaSlice(t, states[version][i], row, 2e-5, "version %d, %s", version, what)
				}
			}
		}
	})

	_, err = export(exportOptions{version: 2, dir: "peft-its snapshot", peft: true})
	require.NoError(t, err, "the same again is fine")
	_, err = export(exportOptions{version: 2, dir: "hf-its snapshot", merge: true, dtype: "float32"})
	require.ErrorContains(t, err, "holds something else")
	interrupted := filepath.Join(root, "interrupted")
	require.NoError(t, os.MkdirAll(filepath.Join(interrupted, policy.Unfinished), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(interrupted, policy.Unfinished, model.WeightsFile), []byte("half"), 0o644))
	_, err = export(exportOptions{version: 2, dir: "interrupted", merge: true, dtype: "bfloat16"})
	require.NoError(t, err)
	half, err := model.OpenFolder(interrupted)
	require.NoError(t, err)
	require.NoError(t, half.Close())
}

// peftLogProbs gives log p of each next token for pairs of folders: adapters, by PEFT over the
// first pair's whole model, and whole models, by transformers. It ends with status 3 if one of
// the libraries is missing.
const peftLogProbs = `
import json, sys
try:
    import torch
    from transformers import AutoModelForCausalLM
    from peft import PeftModel
except ImportError as e:
    print(e, file=sys.stderr)
    sys.exit(3)
given = json.load(sys.stdin)
ids = torch.tensor(given["ids"])
def load(dir):
    return AutoModelForCausalLM.from_pretrained(dir, dtype=torch.float32)
def log_probs(m):
    with torch.no_grad():
        lp = torch.log_softmax(m.eval()(ids).logits.float(), -1)
    return lp[:, :-1].gather(-1, ids[:, 1:, None])[..., 0].tolist()
base = given["folders"][0][1]
json.dump([{"adapters": log_probs(PeftModel.from_pretrained(load(base), adapters)), "merged": log_probs(load(merged))}
           for adapters, merged in given["folders"]], sys.stdout)
`

// inPEFT loads exported folders, of adapters and of the merged model, as they are, in a Python
// that has PEFT. Without one the test is skipped.
func inPEFT(t *testing.T, folders [][2]string, ids [][]int32) []map[string][][]float32 {
	t.Helper()
	const env = "REPRISE_PYTHON"
	python := cmp.Or(os.Getenv(env), "python3")
	input, err := json.Marshal(map[string]any{"folders": folders, "ids": ids})
	require.NoError(t, err)
	cmd := exec.Command(python, "-c", peftLogProbs)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(input), t.Output()
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.Is(err, exec.ErrNotFound) || errors.As(err, &exit) && exit.ExitCode() == 3 {
		t.Skipf("%s has no peft, torch and transformers: name another with %s", python, env)
	}
	require.NoError(t, err)
	var theirs []map[string][][]float32
	require.NoError(t, json.Unmarshal(out, &theirs))
	require.Len(t, theirs, len(folders))
	return theirs
}

// A run that trains all weights has no adapters to write.
func TestExportOfAllWeightsHasNoAdapters(t *testing.T) {
	s := store.NewMemory()
	storedRun(t, s, "run", 2)
	for _, o := range []exportOptions{{peft: true}, {merge: true}} {
		o.run, o.version, o.dir = "run", 2, filepath.Join(t.TempDir(), "out")
		var out bytes.Buffer
		err := exportPolicy(t.Context(), s, o, func() (*model.Device, error) { return nil, os.ErrNotExist }, &out, &out)
		require.ErrorContains(t, err, `run "run" has no adapters`)
	}
}
