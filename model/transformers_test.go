package model

import (
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/draw"
)

// pythonEnv names a Python that has torch and transformers; python3 by default.
const pythonEnv = "REPRISE_PYTHON"

// transformersLogProbs loads a folder as it is and gives log p of each next token.
const transformersLogProbs = `
import json, sys, torch
from transformers import AutoModelForCausalLM
ids = torch.tensor(json.load(sys.stdin))
m = AutoModelForCausalLM.from_pretrained(sys.argv[1], dtype=torch.float32).eval()
with torch.no_grad():
    lp = torch.log_softmax(m(ids).logits.float(), -1)
json.dump(lp[:, :-1].gather(-1, ids[:, 1:, None])[..., 0].tolist(), sys.stdout)
`

// transformers loads a snapshot's folder as it is, and computes the same. The test needs
// a Python with torch and transformers.
func TestTransformersLoadsSnapshot(t *testing.T) {
	python := os.Getenv(pythonEnv)
	if python == "" {
		python = "python3"
	}
	if out, err := exec.Command(python, "-c", "import torch, transformers").CombinedOutput(); err != nil {
		t.Skipf("%s has no torch and transformers (name another with %s): %v\n%s", python, pythonEnv, err, out)
	}
	d := testDevice(t)
	c := Config{
		VocabSize: 97, HiddenSize: 32, IntermediateSize: 48, Layers: 2, Heads: 4, KVHeads: 2, HeadDim: 8,
		MaxPositions: 128, RMSNormEps: 1e-6, RopeTheta: 10000, TieEmbeddings: true, InitializerRange: 0.3,
	}
	for _, tied := range []bool{true, false} {
		c.TieEmbeddings = tied
		params := NewParams(c, draw.Address{Seed: 7, Purpose: draw.Weights})
		most := int64(maxFile)
		if !tied {
			most = 10_000 // transformers reads shards too
		}
		files, err := stateFiles(c, partCount, 0, NewSnapshot(params).read, most)
		dir := t.TempDir()
		write(t, dir, bodies(t, files, err))
		ids := make([][]int32, 3)
		for r := range ids {
			for i := range 40 {
				ids[r] = append(ids[r], int32((13*i+31*r)%c.VocabSize))
			}
		}
		folder, err := OpenFolder(dir)
		require.NoError(t, err)
		ours, _, err := LogProbs(bg, d, folder.First(), ids)
		require.NoError(t, err)
		input, err := json.Marshal(ids)
		require.NoError(t, err)
		cmd := exec.Command(python, "-c", transformersLogProbs, dir)
		stdin, err := cmd.StdinPipe()
		require.NoError(t, err)
		go func() { _, _ = stdin.Write(input); stdin.Close() }()
		out, err := cmd.Output()
		require.NoError(t, err)
		var theirs [][]float64
		require.NoError(t, json.Unmarshal(out, &theirs))
		for r := range ours {
			require.Len(t, theirs[r], len(ours[r]))
			for i := range ours[r] {
				require.LessOrEqual(t, math.Abs(float64(ours[r][i])-theirs[r][i]), 2e-5, "tied %v, row %d, token %d", tied, r, i)
			}
		}
	}
}
