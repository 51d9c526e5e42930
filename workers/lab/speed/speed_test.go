package speed

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/plugin/plugintest"
	"github.com/reprise-rl/reprise/model"
)

var tinyShape = Shape{Tokens: 8, MicroBatch: 2, MicroBatches: 3, Rows: 5, PromptTokens: 8, NewTokens: 3, BlockRows: 12}

func tiny(name string) Subject {
	return Subject{Name: name, Turns: 2, Shape: tinyShape, Config: model.Config{
		VocabSize: 97, HiddenSize: 32, IntermediateSize: 48, Layers: 1, Heads: 4, KVHeads: 2, HeadDim: 8,
		MaxPositions: 128, RMSNormEps: 1e-6, RopeTheta: 10000, TieEmbeddings: true, InitializerRange: 0.3,
	}}
}

// fakePython is a program that does what a shell script says.
func fakePython(t *testing.T, script string) string {
	path := filepath.Join(t.TempDir(), "python")
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o700))
	return path
}

func quiet(string) {}

// measured are the speeds of tiny policies, beside a Python.
func measured(t *testing.T, python string, subjects ...Subject) Speeds {
	plugintest.Needs(t)
	d, err := model.OpenDevice(model.DeviceOptions{XLAFlags: model.QuickCompile})
	require.NoError(t, err)
	defer d.Close()
	got, err := Measure(t.Context(), d, subjects, python, quiet)
	require.NoError(t, err)
	require.Len(t, got.Models, len(subjects))
	for _, m := range got.Models {
		require.Equal(t, m.Parameters, tiny("").Config.Parameters())
		for _, figure := range []Figure{m.Forward, m.Training, m.Decoding, m.Unequal, m.Block} {
			require.Positive(t, figure.PerSecond)
		}
		require.Greater(t, m.Spread, 1.0)
		require.Positive(t, m.Fingerprint)
		require.Positive(t, m.Compile)
		require.Positive(t, m.Apply)
	}
	return got
}

// A Python that fails is left out, and not started again.
func TestMeasureWithoutTorch(t *testing.T) {
	started := filepath.Join(t.TempDir(), "started")
	got := measured(t, fakePython(t, "echo once >>"+started+"; echo '{}'; read work; echo 'no space' >&2; exit 3"), tiny("first"), tiny("second"))
	require.Equal(t, "torch: forward: no space", got.Python.Missing)
	for _, m := range got.Models {
		require.Zero(t, m.Forward.Torch)
		require.Zero(t, m.Training.TorchAVX2)
	}
	text, err := os.ReadFile(started)
	require.NoError(t, err)
	require.Equal(t, "once\nonce\n", string(text), "once as it comes, and once held to AVX2")
}

func TestNoTorch(t *testing.T) {
	s := &subject{Subject: tiny("")}
	python := Python{Path: fakePython(t, "echo 'ModuleNotFoundError: No module named torch' >&2; exit 1")}
	got, err := besides(t.Context(), s, &python)
	require.NoError(t, err)
	require.Empty(t, got)
	require.Contains(t, python.Missing, "ModuleNotFoundError: No module named torch")

	for answer, wrong := range map[string]string{
		`{"seconds":0}`:                          "torch: training: 0 seconds, 0 of the processor, result 0",
		`{"seconds":1,"processor":1,"result":9}`: "torch: the loss of its first step is 9, ours 0",
		`{`:                                      "torch: training: unexpected EOF",
	} {
		python := Python{Path: fakePython(t, "echo '{}'; read work; echo '"+answer+"'")}
		got, err := besides(t.Context(), s, &python)
		require.NoError(t, err)
		require.Empty(t, python.Missing)
		_, err = s.torch(got[heldToAVX2], training)
		require.ErrorIs(t, err, errTorch)
		require.ErrorContains(t, err, wrong)
		got.end()
	}
}

// TestMeasureBesideTorch needs a Python with torch and transformers. Both sides have the same
// loss, or the measurement says so.
func TestMeasureBesideTorch(t *testing.T) {
	python := os.Getenv("REPRISE_PYTHON")
	if python == "" {
		python = "python3"
	}
	look := exec.Command(python, "-c", "import torch, transformers")
	look.Env = append(os.Environ(), safePath)
	if out, err := look.CombinedOutput(); err != nil {
		t.Skipf("%s has no torch and transformers (name another with REPRISE_PYTHON): %v\n%s", python, err, out)
	}
	got := measured(t, python, tiny("alone"))
	require.Empty(t, got.Python.Missing)
	require.NotEmpty(t, got.Python.Torch)
	require.NotEmpty(t, got.Python.Capability)
	for _, m := range got.Models {
		for _, figure := range []Figure{m.Forward, m.Training, m.Decoding, m.Unequal, m.Block} {
			for _, beside := range []Beside{figure.Torch, figure.TorchAVX2} {
				require.Positive(t, beside.PerSecond)
				require.Positive(t, beside.Ratio)
				require.Positive(t, beside.ProcessorRatio)
			}
		}
	}
}

func TestFigure(t *testing.T) {
	at := func(here, as, held float64) turn {
		var t turn
		t.here[training] = timing{here, 2 * here}
		t.beside[asItComes][training] = timing{as, as}
		t.beside[heldToAVX2][training] = timing{held, held}
		return t
	}
	turns := []turn{at(1, 2, 0), at(2, 8, 0), at(4, 4, 0)}
	require.Equal(t, Figure{PerSecond: 50, Torch: Beside{PerSecond: 25, Ratio: 2, ProcessorRatio: 1}}, figure(turns, training, 100))
}

// The lengths of a block are spread evenly, and sampling reports a row of another length.
func TestUnequalLengths(t *testing.T) {
	shape := Shape{NewTokens: 64, BlockRows: 4096}
	lengths := shape.lengths()
	require.Equal(t, 8, slices.Min(lengths))
	require.Equal(t, 64, slices.Max(lengths))
	require.InDelta(t, 64.0/36, spread(lengths), 0.03)
	require.Equal(t, lengths, shape.lengths())
	require.Equal(t, 1.5, spread([]int{1, 2, 3}))

	require.NoError(t, checkLengths([][]int32{{7}, {7, 0}}, []int{1, 2}))
	require.EqualError(t, checkLengths([][]int32{{7}, {7, 0}}, []int{1, 3}), "row 1 has 2 tokens, 3 were to be sampled")
}

func TestRowsAhead(t *testing.T) {
	require.Equal(t, [][]int{{2, 3, 0}, {5, 6, 0}}, ahead([][]int{{1, 2, 3}, {4, 5, 6}}))
}

func TestClock(t *testing.T) {
	c := &clock{}
	require.NoError(t, c.begin("forward")) // outside an update
	c.start()
	for _, program := range []string{"forward", "backward", "square 4x4", "apply 4x4"} {
		require.NoError(t, c.begin(program))
	}
	c.stop()
	require.Len(t, c.spent, 4)
	require.NoError(t, c.begin("forward"))
	require.Len(t, c.spent, 4)
	require.Positive(t, c.applyOverBackward())
}
