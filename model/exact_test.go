package model

import (
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/plugin/plugintest"
	"github.com/reprise-rl/reprise/model/batch"
	"github.com/reprise-rl/reprise/model/draw"
)

// With -exact all cases of TestExact are computed, by programs that are compiled with the flags that runs have.
var allExact = flag.Bool("exact", false, "all cases of TestExact, compiled as for runs")

const (
	exactTokens = 4096 // that a case samples, at least
	exactCases  = 60
	fewExact    = 12 // are computed without -exact
)

// exactCase is one of the ways to sample and to score.
type exactCase struct {
	Mode        string // how turns are sampled
	Dtype       string
	Family      Family
	HeadDim     int
	Grouped     bool // two query heads for each of keys, or one
	Tied        bool
	Adapters    bool
	Temperature float32
	Score       string // the width of the scorer's rows
	Devices     int
	Threads     int
	Rows        int // of a pass
	Vocabulary  int
}

// exactLevels are the values of the fields of exactCase, in their order.
var exactLevels = [][]any{
	{"passes", "chunks", "shared", "blocks", "kept"}, {"float32", "bfloat16"}, {Qwen2, Qwen3, Llama}, {16, 32, 64, 96, 128},
	{true, false}, {true, false}, {false, true}, {float32(0), float32(0.7), float32(1)}, {"sequence", "narrower", "wide"}, {1, 2}, {4, 8},
	{16, 6, 13}, {97, 768},
}

// pairwise chooses cases such that each pair of levels of two fields comes as often as so many cases allow: of some drawn cases
// the next is the one with the rarest pairs.
func pairwise(n int) (out []exactCase) {
	r := draw.Address{Seed: 5, Purpose: "test"}.Rand()
	seen := map[[4]int]int{}
	pairs := func(levels []int, f func(key [4]int)) {
		for i := range levels {
			for j := range i {
				f([4]int{i, levels[i], j, levels[j]})
			}
		}
	}
	for range n {
		var best []int
		most := -1.0
		for range 200 {
			levels := make([]int, len(exactLevels))
			for i := range levels {
				levels[i] = r.IntN(len(exactLevels[i]))
			}
			value := 0.0
			pairs(levels, func(key [4]int) { value += math.Pow(4, -float64(seen[key])) })
			if value > most {
				best, most = levels, value
			}
		}
		pairs(best, func(key [4]int) { seen[key]++ })
		var c exactCase
		for i, level := range best {
			reflect.ValueOf(&c).Elem().Field(i).Set(reflect.ValueOf(exactLevels[i][level]))
		}
		out = append(out, c)
	}
	return out
}

func (e exactCase) name() string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(e), " ", "-"), "{}")
}

func (e exactCase) config() Config {
	c := Config{Family: e.Family, VocabSize: e.Vocabulary, HiddenSize: 48, IntermediateSize: 80, Layers: 2, Heads: 4, KVHeads: 4, HeadDim: e.HeadDim,
		MaxPositions: 1024, RMSNormEps: 1e-6, RopeTheta: 10000, TieEmbeddings: e.Tied, InitializerRange: 0.3}
	if e.Grouped {
		c.KVHeads = 2
	}
	if e.Adapters {
		c.LoRA = LoRA{Rank: 3, Alpha: 2, Targets: AllLinear}
	}
	return c
}

// turns are the shapes of each turn's sampler, and those of the scorer of all.
func (e exactCase) turns() (turns []Shapes, scorer Shapes) {
	widths, fresh := []int{24}, 32
	if e.Mode == "kept" {
		widths, fresh = []int{12, 30, 56}, 12
	}
	if e.Score == "wide" {
		for i := range widths {
			widths[i] += 520
		}
		if e.Mode != "kept" {
			fresh = 96 // of each prefill, which takes long
		}
	}
	last := widths[len(widths)-1]
	for i, width := range widths {
		sh := Shapes{GenerateRows: e.Rows, PromptTokens: width, MaxNewTokens: fresh}
		switch e.Mode {
		case "chunks":
			sh.ChunkTokens = 5
		case "shared":
			sh.SharedPrompts = 3
		case "blocks":
			sh.BlockRows, sh.ChunkTokens = 64, 4
		case "kept":
			sh.Append.Widest = last
			if i > 0 {
				sh.Append.Before, sh.Append.Tokens = widths[i-1], 13
			}
		}
		turns = append(turns, sh)
	}
	scorer = Shapes{MicroBatch: 8, Sequence: last + fresh}
	if e.Score == "narrower" {
		scorer.Narrower = [2]int{last + fresh - 7, (last + fresh) / 2}
	}
	return turns, scorer
}

// exactDevice opens the devices of a case.
func exactDevice(t *testing.T, e exactCase) *Device {
	t.Setenv("PJRT_NPROC", fmt.Sprint(e.Threads))
	d, err := OpenDevice(DeviceOptions{ProgramCache: programs, VirtualDevices: e.Devices})
	require.NoError(t, err)
	t.Cleanup(d.Close)
	return d
}

// exactState prepares programs, and loads the policy of a case, or the one that other programs have loaded.
func exactPrograms(t *testing.T, d *Device, c Config, sh Shapes) *Programs {
	p, err := d.Programs(c, nil, sh)
	require.NoError(t, err)
	t.Cleanup(p.Free)
	return p
}

func exactState(t *testing.T, p *Programs) *State {
	if !p.c.Adapted() {
		s, err := p.NewState(tinyParams(p.c))
		require.NoError(t, err)
		t.Cleanup(s.Free)
		return s
	}
	base, err := p.LoadBase(tinyParams(p.c.Base()).source())
	require.NoError(t, err)
	s, err := p.Load(tinyAdapters(p.c).source().Over(base))
	require.NoError(t, err)
	t.Cleanup(func() { s.Free(); base.Free() })
	return s
}

// sampled are the log-probs and entropies of a row's tokens, by place; of what was not sampled they are missing.
type sampled struct {
	ids                 []int32
	logProbs, entropies map[int]float32
}

// sample plays the turns of rows, with prompts of random lengths.
func (e exactCase) sample(t *testing.T, turns []*Programs, s *State, rows int) []sampled {
	r := draw.Address{Seed: 11, Purpose: "test"}.Rand()
	out := make([]sampled, rows)
	for i := range out {
		n := 1 + r.IntN(turns[0].sh.PromptTokens)
		if e.Score == "wide" {
			n = turns[0].sh.PromptTokens - r.IntN(20)
		}
		out[i] = sampled{randomRows(uint64(100+i/2), turns[0].c, 1, n)[0], map[int]float32{}, map[int]float32{}} // pairs begin alike
	}
	var kept *Kept
	for turn, p := range turns {
		in := GenerateInput{Temperature: e.Temperature, Stop: []int32{3}, IgnoreStop: true, Uniforms: uniforms(uint64(turn), rows, p.sh.MaxNewTokens)}
		for i := range out {
			if turn > 0 { // what the environment says
				more := randomRows(uint64(1000*turn+i), p.c, 1, 1+r.IntN(p.sh.PromptTokens-turns[turn-1].sh.PromptTokens-p.sh.MaxNewTokens))[0]
				out[i].ids = append(out[i].ids, more...)
			}
			in.Prompts = append(in.Prompts, out[i].ids)
		}
		var err error
		if e.Mode == "kept" {
			kept, err = p.Sampler.Append(bg, s, kept, in.Prompts, nil)
			require.NoError(t, err)
			in.Kept = kept
		}
		got, err := p.Sampler.Generate(bg, s, in)
		require.NoError(t, err)
		for i := range out {
			for j := range got.Tokens[i] {
				at := len(out[i].ids) + j
				out[i].logProbs[at], out[i].entropies[at] = got.LogProbs[i][j], got.Entropies[i][j]
			}
			out[i].ids = append(out[i].ids[:len(out[i].ids):len(out[i].ids)], got.Tokens[i]...)
		}
	}
	if kept != nil {
		kept.Free()
	}
	return out
}

// differing scores rows, and counts the tokens, and those of which a number differs.
func (e exactCase) differing(t *testing.T, p *Programs, s *State, rows []sampled) (differ, tokens int) {
	temperature := e.Temperature
	if temperature == 0 {
		temperature = 1
	}
	var batches []batch.MicroBatch
	for from := 0; from < len(rows); from += p.sh.MicroBatch {
		var b batch.MicroBatch
		for _, row := range rows[from:min(from+p.sh.MicroBatch, len(rows))] {
			b.Lengths = append(b.Lengths, int32(len(row.ids)))
			b.Width = max(b.Width, len(row.ids))
		}
		width := p.sh.Sequence
		for _, narrower := range p.sh.Narrower {
			if narrower >= b.Width {
				width = narrower
			}
		}
		b.Width = width
		for _, row := range rows[from:min(from+p.sh.MicroBatch, len(rows))] {
			b.IDs = append(b.IDs, append(row.ids[:len(row.ids):len(row.ids)], make([]int32, width-len(row.ids))...))
		}
		batches = append(batches, b)
	}
	scores, err := p.Scorer.ScoreAll(bg, s, batches, temperature)
	require.NoError(t, err)
	for i, row := range rows {
		of := scores[i/p.sh.MicroBatch]
		for at, lp := range row.logProbs {
			tokens++
			k := i % p.sh.MicroBatch
			if math.Float32bits(lp) != math.Float32bits(of.LogProbs[k][at]) || math.Float32bits(row.entropies[at]) != math.Float32bits(of.Entropies[k][at]) {
				differ++
			}
		}
	}
	return differ, tokens
}

// run computes a case, and counts as differing does.
func (e exactCase) run(t *testing.T) (differ, tokens int) {
	d := exactDevice(t, e)
	turns, scorer := e.turns()
	var samplers []*Programs
	for _, sh := range turns {
		sh.ComputeDtype, sh.Exact = e.Dtype, true
		samplers = append(samplers, exactPrograms(t, d, e.config(), sh))
	}
	scorer.ComputeDtype, scorer.Exact = e.Dtype, true
	p := exactPrograms(t, d, e.config(), scorer)
	s := exactState(t, p)
	rows := e.sample(t, samplers, s, (exactTokens+len(turns)*turns[0].MaxNewTokens-1)/(len(turns)*turns[0].MaxNewTokens))
	return e.differing(t, p, s, rows)
}

// What the sampler gives for a token, its log-prob and the entropy, is what the scorer gives, to the bit: in cases that pair each way
// of sampling with each way of scoring.
func TestExact(t *testing.T) {
	plugintest.Needs(t)
	computed, wide := 0, 0
	for i, e := range pairwise(exactCases) {
		if !*allExact { // a wide case takes ten times as long as others: one, and of small heads
			if computed == fewExact || e.Score == "wide" && (wide > 0 || e.HeadDim > 32) {
				continue
			}
			if e.Score == "wide" {
				wide++
			}
		}
		computed++
		t.Run(fmt.Sprintf("%02d-%s", i, e.name()), func(t *testing.T) {
			differ, tokens := e.run(t)
			require.GreaterOrEqual(t, tokens, exactTokens)
			require.Zero(t, differ, "of %d tokens the sampler's numbers are not the scorer's", tokens)
		})
	}
	require.Equal(t, map[bool]int{true: exactCases, false: fewExact}[*allExact], computed)
	require.Equal(t, !*allExact, wide == 1)
}

// exactFaults are lines of this package, and what makes the sampler's numbers other than the scorer's in their place.
var exactFaults = []struct{ name, file, line, fault string }{
	{"products with one row", "attend.go", "x.Shape().Dimensions[axis] > 1", "x.Shape().Dimensions[axis] > 0"},
	{"another formula in the head", "head.go", "d.logProb(graph.ReduceSum(graph.Where(hot, l, scalar(l, 0)), -1))",
		"graph.Sub(graph.ReduceSum(graph.Where(hot, l, scalar(l, 0)), -1), d.logSum())"},
	{"reductions by the library", "device.go", " --xla_cpu_experimental_ynn_fusion_type=-reduce", ""},
}

// Each planted fault turns the short form of TestExact red.
func TestExactFaults(t *testing.T) {
	if !*allExact {
		t.Skip("it compiles this package anew for each fault; run with -exact")
	}
	for _, f := range exactFaults {
		t.Run(f.name, func(t *testing.T) {
			source, err := os.ReadFile(f.file)
			require.NoError(t, err)
			require.Equal(t, 1, strings.Count(string(source), f.line))
			dir := t.TempDir()
			planted, overlay := filepath.Join(dir, f.file), filepath.Join(dir, "overlay.json")
			require.NoError(t, os.WriteFile(planted, []byte(strings.Replace(string(source), f.line, f.fault, 1)), 0o600))
			here, err := filepath.Abs(f.file)
			require.NoError(t, err)
			content, err := json.Marshal(map[string]any{"Replace": map[string]string{here: planted}})
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(overlay, content, 0o600))
			cmd := exec.CommandContext(t.Context(), "go", "test", "-overlay", overlay, "-run", "^TestExact$", "-count=1", "-failfast", ".")
			cmd.Env = append(os.Environ(), "XLA_FLAGS=") // a device that is open here has its own flags in it
			out, err := cmd.CombinedOutput()
			require.Error(t, err, "%s", out)
			require.Contains(t, string(out), "tokens the sampler's numbers are not the scorer's")
		})
	}
}
