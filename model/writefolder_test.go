package model

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/safetensors"
)

// mergedTiny is a tiny base model, adapters over it, and both as one.
func mergedTiny(t *testing.T, c Config) (base, adapters, merged Source) {
	t.Helper()
	base, adapters = tinyParams(c.Base()).source(), tinyAdapters(c).source()
	merged, err := Merge(base, adapters)
	require.NoError(t, err)
	return base, adapters, merged
}

func writtenFolder(t *testing.T, write func(*os.Root) error) string {
	t.Helper()
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	require.NoError(t, err)
	defer root.Close()
	require.NoError(t, write(root))
	return dir
}

// A merged policy is written as transformers writes one, in float32 bit for bit.
func TestMergedFolder(t *testing.T) {
	c := tinyLoRA()
	_, _, merged := mergedTiny(t, c)
	want, err := merged.Params()
	require.NoError(t, err)
	dir := writtenFolder(t, func(root *os.Root) error { return merged.WriteFolder(root, "float32") })
	folder, err := OpenFolder(dir)
	require.NoError(t, err)
	defer folder.Close()
	require.Equal(t, c.Base(), folder.Config)
	got, err := folder.First().Params()
	require.NoError(t, err)
	require.Equal(t, want, got)
	body, err := os.ReadFile(dir + "/" + WeightsFile)
	require.NoError(t, err)
	plain, err := stateFiles(c.Base(), 1, 0, func(_ part, i int, _ []float32) ([]float32, error) { return want.Values[i], nil }, maxFile)
	require.True(t, bytes.Equal(bodies(t, plain, err)[WeightsFile], body), "as a file of a run")

	sharded := writtenFolder(t, func(root *os.Root) error {
		if err := root.WriteFile(ConfigFile, c.Base().JSON(), 0o666); err != nil {
			return err
		}
		return merged.writeFolder(root, safetensors.Float32, 3000)
	})
	require.FileExists(t, sharded+"/"+WeightsFile+indexEnding)
	shards, err := OpenFolder(sharded)
	require.NoError(t, err)
	defer shards.Close()
	got, err = shards.First().Params()
	require.NoError(t, err)
	require.Equal(t, want, got)

	root, err := os.OpenRoot(dir)
	require.NoError(t, err)
	defer root.Close()
	require.ErrorIs(t, merged.WriteFolder(root, "float32"), os.ErrExist, "nothing is written over")
	require.ErrorContains(t, merged.WriteFolder(root, "float16"), `dtype "float16", must be float32 or bfloat16`)
	_, adapters, _ := mergedTiny(t, c)
	require.ErrorIs(t, adapters.WriteFolder(root, "float32"), ErrInput)
}

// In bfloat16 every number is the nearest one.
func TestMergedFolderInHalf(t *testing.T) {
	_, _, merged := mergedTiny(t, tinyLoRA())
	want, err := merged.Params()
	require.NoError(t, err)
	dir := writtenFolder(t, func(root *os.Root) error { return merged.WriteFolder(root, "bfloat16") })
	var config map[string]any
	b, err := os.ReadFile(dir + "/" + ConfigFile)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(b, &config))
	require.Equal(t, "bfloat16", config["dtype"])
	require.Equal(t, "bfloat16", config["torch_dtype"])
	folder, err := OpenFolder(dir)
	require.NoError(t, err)
	defer folder.Close()
	got, err := folder.First().Params()
	require.NoError(t, err)
	for i, values := range want.Values {
		for j, x := range values {
			y := got.Values[i][j]
			require.Zero(t, math.Float32bits(y)&0xffff)
			require.LessOrEqual(t, math.Abs(float64(x-y)), math.Abs(float64(x))/256, "%v and %v", x, y)
		}
	}
}

// peftLogProbs loads a base model and adapters over it as they are, and gives log p of each
// next token: with the adapters, and with them merged.
const peftLogProbs = `
import json, sys, torch
from transformers import AutoModelForCausalLM
from peft import PeftModel
ids = torch.tensor(json.load(sys.stdin))
m = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(sys.argv[1], dtype=torch.float32), sys.argv[2]).eval()
out = []
for merged in False, True:
    if merged:
        m = m.merge_and_unload()
    with torch.no_grad():
        lp = torch.log_softmax(m(ids).logits.float(), -1)
        out.append(lp[:, :-1].gather(-1, ids[:, 1:, None])[..., 0].tolist())
json.dump(out, sys.stdout)
`

// PEFT loads the files of adapters as they are, and transformers a merged folder; both compute
// what is computed here.
func TestPEFTLoadsAdapters(t *testing.T) {
	c := tinyLoRA()
	c.LoRA.Base = ""
	base, adapters, merged := mergedTiny(t, c)
	weights := writtenFolder(t, func(root *os.Root) error { return base.WriteFolder(root, "float32") })
	whole := writtenFolder(t, func(root *os.Root) error { return merged.WriteFolder(root, "float32") })
	dir := t.TempDir()
	files, err := stateFiles(c, partCount, 0, NewSnapshot(tinyAdapters(c)).read, maxFile)
	write(t, dir, bodies(t, files, err))
	ids := randomRows(9, c, 3, 20)
	ours, _, err := LogProbs(bg, testDevice(t), adapters.On(base), ids)
	require.NoError(t, err)

	python := transformersPython(t)
	if out, err := exec.Command(python, "-c", "import peft").CombinedOutput(); err != nil {
		t.Skipf("%s has no peft (name another with %s): %v\n%s", python, pythonEnv, err, out)
	}
	input, err := json.Marshal(ids)
	require.NoError(t, err)
	cmd := exec.Command(python, "-c", peftLogProbs, weights, dir)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(input), t.Output()
	out, err := cmd.Output()
	require.NoError(t, err)
	var theirs [][][]float32
	require.NoError(t, json.Unmarshal(out, &theirs))
	theirs = append(theirs, inTransformers(t, python, whole, ids, "float32")...)
	for i, what := range []string{"PEFT", "PEFT, merged", "transformers, merged here"} {
		mean, most := apart(t, ours, theirs[i])
		t.Logf("%s: mean difference %.3g, greatest %.3g", what, mean, most)
		require.LessOrEqual(t, most, 2e-5, what)
	}
}
