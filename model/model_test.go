package model

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/plugin/plugintest"
	"github.com/reprise-rl/reprise/model/draw"
	refs "github.com/reprise-rl/reprise/model/golden"
)

// programs is the folder in which the devices of these tests keep what they compile: many tests
// compute with the same programs, and each frees its own.
var programs string

// The tests compile quickly, as those of other packages do, whichever of them opens a device first.
// Benchmarks, and what make size measures, are of the flags that runs have.
func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(func() int {
		if *size == "" && !*allExact && flag.Lookup("test.bench").Value.String() == "" {
			if err := os.Setenv("XLA_FLAGS", QuickCompile+" "+os.Getenv("XLA_FLAGS")); err != nil {
				fmt.Fprintln(os.Stderr, err)
				return 1
			}
		}
		var err error
		if programs, err = os.MkdirTemp("", "reprise-model-"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(programs)
		return m.Run()
	}())
}

var shared struct {
	sync.Once
	device *Device
	err    error
}

// tinyShapes are what most tests compute on.
var tinyShapes = Shapes{GenerateRows: 4, PromptTokens: 6, MaxNewTokens: 8, MicroBatch: 3, Sequence: 7}

// testDevice opens the plugin once for all tests. The programs most of them use are
// held for all, so that they are compiled once.
func testDevice(t testing.TB) *Device {
	t.Helper()
	plugintest.Needs(t)
	shared.Do(func() {
		if shared.device, shared.err = OpenDevice(DeviceOptions{ProgramCache: programs}); shared.err == nil {
			_, shared.err = shared.device.Programs(tiny(), nil, tinyShapes)
		}
	})
	require.NoError(t, shared.err)
	return shared.device
}

// tiny is a configuration that compiles quickly.
func tiny() Config {
	return Config{VocabSize: 37, HiddenSize: 16, IntermediateSize: 24, Layers: 2, Heads: 4, KVHeads: 2, HeadDim: 4,
		MaxPositions: 64, RMSNormEps: 1e-6, RopeTheta: 10000, TieEmbeddings: true, InitializerRange: 0.3}
}

func tinyParams(c Config) Params {
	p := NewParams(c, draw.Address{Seed: 7, Purpose: draw.Weights})
	// Biases and norms that are not 0 and 1, so that tests see them.
	for i, t := range c.Tensors() {
		if len(t.Shape) == 1 {
			r := draw.Address{Seed: 8, Purpose: draw.Weights, Step: int64(i)}.Rand()
			for j := range p.Values[i] {
				p.Values[i][j] += float32(r.NormFloat64() * 0.1)
			}
		}
	}
	return p
}

func tinyPrograms(t testing.TB, c Config) (*Programs, *State) {
	t.Helper()
	p, err := testDevice(t).Programs(c, nil, tinyShapes)
	require.NoError(t, err)
	s, err := p.NewState(tinyParams(c))
	require.NoError(t, err)
	t.Cleanup(func() { s.Free(); p.Free() })
	return p, s
}

func randomRows(seed uint64, c Config, rows, width int) [][]int32 {
	r := draw.Address{Seed: seed, Purpose: "test"}.Rand()
	out := make([][]int32, rows)
	for i := range out {
		for range width {
			out[i] = append(out[i], int32(r.IntN(c.VocabSize)))
		}
	}
	return out
}

// golden is what transformers computed; see the shared goldens.
type golden struct {
	Forward struct {
		IDs         [][]int32   `json:"ids"`
		LogitsLast  [][]float64 `json:"logits_last"`
		LogProbs    [][]float64 `json:"logprobs"`
		EntropyMean float64     `json:"entropy_mean"`
	} `json:"forward"`
	Loss   float64               `json:"loss"`
	Grads  map[string][2]float64 `json:"grad_norm_and_first"`
	Greedy struct {
		Prompt []int32 `json:"prompt"`
		New    []int32 `json:"new"`
		// Note says that only the tokenizer's ids were taken, if there is one.
		Note string `json:"note"`
	} `json:"greedy"`
	tokens int // ids of the tokenizer
}

// eachGolden runs a test on the golden of each family.
func eachGolden(t *testing.T, test func(t *testing.T, dir string, g golden)) {
	t.Helper()
	for _, name := range []string{"qwen2-tiny", "qwen3-tiny", "llama-tiny"} {
		t.Run(name, func(t *testing.T) {
			dir := refs.Folder(t, name, "golden.json", filepath.Join("testdata", name))
			b, err := os.ReadFile(filepath.Join(dir, "golden.json"))
			require.NoError(t, err)
			var g golden
			require.NoError(t, json.Unmarshal(b, &g))
			g.tokens = tokens(t, dir, filepath.Join("tokenizer", "testdata", name))
			test(t, dir, g)
		})
	}
}

// tokens is how many ids the tokenizer has of the first of the folders that has one.
func tokens(t *testing.T, folders ...string) int {
	t.Helper()
	for _, dir := range folders {
		b, err := os.ReadFile(filepath.Join(dir, "tokenizer.json"))
		if err != nil {
			continue
		}
		var file struct {
			Model struct{ Vocab map[string]int }
			Added []struct{ ID int } `json:"added_tokens"`
		}
		require.NoError(t, json.Unmarshal(b, &file))
		top := 0
		for _, id := range file.Model.Vocab {
			top = max(top, id)
		}
		for _, a := range file.Added {
			top = max(top, a.ID)
		}
		return top + 1
	}
	require.Fail(t, "no tokenizer.json", "%v", folders)
	return 0
}

var bg = context.Background()
