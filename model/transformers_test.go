package model

import (
	"encoding/json"
	"flag"
	"math"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/draw"
)

// size is the folder of a model of Qwen2.5-0.5B's shape, which `make size` writes.
var size = flag.String("size", "", "the folder of the model that TestEqualAtSize compares")

// pythonEnv names a Python that has torch and transformers; python3 by default.
const pythonEnv = "REPRISE_PYTHON"

// transformersLogProbs loads a folder as it is, in one dtype after the other, and gives log p
// of each next token.
const transformersLogProbs = `
import json, sys, torch
from transformers import AutoModelForCausalLM
from transformers.utils import logging
logging.disable_progress_bar()
ids = torch.tensor(json.load(sys.stdin))
out = []
for dtype in sys.argv[2:]:
    m = AutoModelForCausalLM.from_pretrained(sys.argv[1], dtype=getattr(torch, dtype)).eval()
    rows = []
    with torch.no_grad():
        for row in ids:
            lp = torch.log_softmax(m(row[None]).logits.float(), -1)
            rows += lp[:, :-1].gather(-1, row[None, 1:, None])[..., 0].tolist()
    out.append(rows)
    del m
json.dump(out, sys.stdout)
`

// transformersPython is a Python with torch and transformers. Without one the test is
// skipped.
func transformersPython(t *testing.T) string {
	t.Helper()
	python := os.Getenv(pythonEnv)
	if python == "" {
		python = "python3"
	}
	if out, err := exec.Command(python, "-c", "import torch, transformers").CombinedOutput(); err != nil {
		t.Skipf("%s has no torch and transformers (name another with %s): %v\n%s", python, pythonEnv, err, out)
	}
	return python
}

// inTransformers computes the log-probs of rows with transformers, in dtypes of torch.
func inTransformers(t *testing.T, python, dir string, ids [][]int32, dtypes ...string) [][][]float32 {
	t.Helper()
	input, err := json.Marshal(ids)
	require.NoError(t, err)
	cmd := exec.Command(python, append([]string{"-c", transformersLogProbs, dir}, dtypes...)...)
	cmd.Stderr = t.Output()
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	go func() { _, _ = stdin.Write(input); stdin.Close() }()
	out, err := cmd.Output()
	require.NoError(t, err)
	var theirs [][][]float32
	require.NoError(t, json.Unmarshal(out, &theirs))
	require.Len(t, theirs, len(dtypes))
	return theirs
}

// apart is the mean and the greatest difference of two lists of rows of equal lengths.
func apart(t *testing.T, a, b [][]float32) (mean, most float64) {
	t.Helper()
	require.Len(t, b, len(a))
	n := 0
	for r := range a {
		require.Len(t, b[r], len(a[r]))
		for i := range a[r] {
			d := math.Abs(float64(a[r][i]) - float64(b[r][i]))
			require.False(t, math.IsNaN(d), "row %d, token %d", r, i)
			mean, most = mean+d, max(most, d)
			n++
		}
	}
	return mean / float64(n), most
}

// compareFolder compares a folder's policy with transformers in float32, within a tolerance.
// It returns rows of ids with the log-probs here.
func compareFolder(t *testing.T, folder *Folder, dir string, rows, tokens int, tolerance float64) (ids [][]int32, exact [][]float32) {
	t.Helper()
	ids = randomRows(9, folder.Config, rows, tokens)
	exact, _, err := LogProbs(bg, testDevice(t), folder.First(), ids)
	require.NoError(t, err)
	t.Run("transformers", func(t *testing.T) {
		theirs := inTransformers(t, transformersPython(t), dir, ids, "float32", "bfloat16")
		mean, most := apart(t, exact, theirs[0])
		t.Logf("float32, here and in transformers: mean difference %.3g, greatest %.3g", mean, most)
		require.LessOrEqual(t, most, tolerance)
		mean, most = apart(t, exact, theirs[1])
		t.Logf("bfloat16 in transformers, from float32: mean difference %.3g, greatest %.3g", mean, most)
	})
	return ids, exact
}

// compareDtypes logs how far bfloat16 is from float32's log-probs, and the sampler from Score
// in both.
func compareDtypes(t *testing.T, folder *Folder, ids [][]int32, exact [][]float32, tolerance float64) {
	t.Helper()
	rows, tokens := len(ids), len(ids[0])
	for _, dtype := range []string{"float32", "bfloat16"} {
		t.Run(dtype, func(t *testing.T) {
			fresh := tokens / 4
			p, err := testDevice(t).Programs(folder.Config, nil, Shapes{
				GenerateRows: rows, PromptTokens: tokens - fresh, MaxNewTokens: fresh, ChunkTokens: 8,
				MicroBatch: rows, Sequence: tokens, ComputeDtype: dtype,
			})
			require.NoError(t, err)
			defer p.Free()
			s, err := p.LoadParams(folder.First())
			require.NoError(t, err)
			defer s.Free()
			scored, _, err := p.Scorer.Score(bg, s, batchOf(ids, 0), 1)
			require.NoError(t, err)
			for r := range scored {
				scored[r] = scored[r][1:]
			}
			mean, most := apart(t, exact, scored)
			t.Logf("%s here, from float32: mean difference %.3g, greatest %.3g", dtype, mean, most)

			in := GenerateInput{Temperature: 1, IgnoreStop: true}
			for r, row := range ids {
				u := make([]float32, fresh)
				draw.Address{Seed: 3, Purpose: draw.Sample, Member: int64(r)}.Uniforms(u)
				in.Prompts, in.Uniforms = append(in.Prompts, row[:tokens-fresh]), append(in.Uniforms, u)
			}
			sampled, err := p.Sampler.Generate(bg, s, in)
			require.NoError(t, err)
			whole := make([][]int32, rows)
			for r := range whole {
				whole[r] = append(append(whole[r], in.Prompts[r]...), sampled.Tokens[r]...)
			}
			scored, _, err = p.Scorer.Score(bg, s, batchOf(whole, 0), 1)
			require.NoError(t, err)
			for r := range scored {
				scored[r] = scored[r][tokens-fresh:]
			}
			mean, most = apart(t, sampled.LogProbs, scored)
			t.Logf("%s, the sampler and Score: mean difference %.3g, greatest %.3g", dtype, mean, most)
			if dtype == "float32" {
				require.LessOrEqual(t, most, tolerance)
			}
		})
	}
}

// At Qwen2.5-0.5B's shape the policy computes what transformers computes.
func TestEqualAtSize(t *testing.T) {
	if *size == "" {
		t.Skip("it takes minutes and 8 GB of memory: `make size` runs it")
	}
	folder, err := OpenFolder(*size)
	require.NoError(t, err)
	defer folder.Close()
	ids, exact := compareFolder(t, folder, *size, 4, 128, 2e-4)
	compareDtypes(t, folder, ids, exact, 2e-4)
}

// transformers loads a snapshot's folder of each family as it is, and computes the same.
func TestTransformersLoadsSnapshot(t *testing.T) {
	qwen2 := Config{
		VocabSize: 97, HiddenSize: 32, IntermediateSize: 48, Layers: 2, Heads: 4, KVHeads: 2, HeadDim: 8,
		MaxPositions: 128, RMSNormEps: 1e-6, RopeTheta: 10000, TieEmbeddings: true, InitializerRange: 0.3,
	}
	qwen3 := qwen2
	qwen3.Family, qwen3.HeadDim, qwen3.RopeTheta, qwen3.EOS = Qwen3, 10, 1e6, "[5,6]"
	llama := qwen2
	llama.Family, llama.RopeTheta, llama.RMSNormEps, llama.Pad = Llama, 500000, 1e-5, ID(3)
	llama.RopeScaling = RopeScaling{Factor: 32, LowFrequency: 1, HighFrequency: 4, OriginalPositions: 24}
	untied := func(c Config) Config {
		c.TieEmbeddings = false
		return c
	}
	for _, of := range []struct {
		name   string
		config Config
		most   int64 // bytes in a file
	}{
		{"qwen2", qwen2, maxFile}, {"qwen2 untied in shards", untied(qwen2), 10_000},
		{"qwen3", qwen3, maxFile}, {"qwen3 untied in shards", untied(qwen3), 10_000},
		{"llama", llama, maxFile}, {"llama untied in shards", untied(llama), 10_000},
	} {
		t.Run(of.name, func(t *testing.T) {
			files, err := stateFiles(of.config, partCount, 0, NewSnapshot(tinyParams(of.config)).read, of.most)
			dir := t.TempDir()
			write(t, dir, bodies(t, files, err))
			folder, err := OpenFolder(dir)
			require.NoError(t, err)
			defer folder.Close()
			require.Equal(t, of.config, folder.Config)
			ids, exact := compareFolder(t, folder, dir, 3, 40, 2e-5)
			if of.most == maxFile {
				compareDtypes(t, folder, ids, exact, 2e-5)
			}
		})
	}
}
