package model

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gomlx/go-xla/pjrt"
	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/batch"
	"github.com/reprise-rl/reprise/model/draw"
	refs "github.com/reprise-rl/reprise/model/golden"
	"github.com/reprise-rl/reprise/model/loss"
	"github.com/reprise-rl/reprise/model/loss/terms"
)

// tinyLoRA has adapters on some of the linear maps, and of another scale than 1.
func tinyLoRA() Config {
	c := tiny()
	c.LoRA = LoRA{Rank: 3, Alpha: 2, RSLoRA: true, Targets: AllLinear &^ 0b0010010, Base: "tiny"}
	return c
}

// tinyAdapters are adapters of which no number is 0.
func tinyAdapters(c Config) Params {
	p := NewParams(c, draw.Address{Seed: 3, Purpose: draw.LoRA})
	for i, t := range p.Config.Tensors() {
		if strings.HasSuffix(t.Name, adapterB) || t.Name == valueHeadName {
			r := draw.Address{Seed: 4, Purpose: "test", Step: int64(i)}.Rand()
			for j := range p.Values[i] {
				p.Values[i][j] = float32(0.3 * r.NormFloat64())
			}
		}
	}
	return p
}

// adapted is programs of a policy with adapters, the base model of tinyParams, and a policy
// over it.
func adapted(t testing.TB, c Config, sh Shapes) (*Programs, *Base, *State) {
	t.Helper()
	p, err := testDevice(t).Programs(c, nil, sh)
	require.NoError(t, err)
	base, err := p.LoadBase(tinyParams(c.Base()).source())
	require.NoError(t, err)
	s, err := p.Load(tinyAdapters(c).source().Over(base))
	require.NoError(t, err)
	t.Cleanup(func() { s.Free(); base.Free(); p.Free() })
	return p, base, s
}

// adapterGolden is what PEFT computed; see the shared goldens.
type adapterGolden struct {
	Base     string                `json:"base"`
	IDs      [][]int32             `json:"ids"`
	Without  [][]float64           `json:"logprobs_base"`
	With     [][]float64           `json:"logprobs"`
	Merged   [][]float64           `json:"logprobs_merged"`
	Exact    [][]float64           `json:"logprobs_float64"` // PEFT's in float64; not in all goldens
	Loss     float64               `json:"loss"`
	Grads    map[string][2]float64 `json:"grad_norm_and_first"`
	base, of *Folder
}

// adapterGoldens are the goldens of adapters by name, with their folders opened.
func adapterGoldens(t *testing.T) map[string]adapterGolden {
	t.Helper()
	out := map[string]adapterGolden{}
	folders, err := filepath.Glob(filepath.Join("testdata", "*", AdapterConfigFile))
	require.NoError(t, err)
	if root := os.Getenv(refs.Env); root != "" {
		more, err := filepath.Glob(filepath.Join(root, "*", AdapterConfigFile))
		require.NoError(t, err)
		folders = append(folders, more...)
	}
	require.NotEmpty(t, folders)
	for _, name := range folders {
		dir := filepath.Dir(name)
		b, err := os.ReadFile(filepath.Join(dir, "golden.json"))
		require.NoError(t, err)
		var g adapterGolden
		require.NoError(t, json.Unmarshal(b, &g))
		g.base, err = OpenFolder(filepath.Join(dir, "..", g.Base))
		require.NoError(t, err)
		g.of, err = OpenAdapter(dir, g.base.Config)
		require.NoError(t, err)
		t.Cleanup(func() { g.base.Close(); g.of.Close() })
		out[dir] = g
	}
	return out
}

func TestGoldenAdapters(t *testing.T) {
	for name, g := range adapterGoldens(t) {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, g.Base, g.of.Config.LoRA.Base)
			require.Len(t, g.of.Config.Tensors(), len(g.Grads))
			merged, err := Merge(g.base.First(), g.of.First())
			require.NoError(t, err)
			for _, of := range []struct {
				name    string
				weights Source
				want    [][]float64
			}{
				{"without", g.base.First(), g.Without}, {"with", g.of.First().On(g.base.First()), g.With}, {"merged", merged, g.Merged},
			} {
				lp, _, err := LogProbs(bg, testDevice(t), of.weights, g.IDs)
				require.NoError(t, err)
				require.Len(t, lp, len(of.want))
				for i, row := range of.want {
					for j, want := range row {
						require.InDelta(t, want, lp[i][j], 2e-5, "%s: row %d, token %d", of.name, i, j)
					}
				}
			}
		})
	}
}

// Log-probs with adapters are as far from PEFT's in float64 as PEFT's own in float32 are: what differs between the two is rounding.
func TestGoldenAdaptersInFloat64(t *testing.T) {
	compared := 0
	for name, g := range adapterGoldens(t) {
		if g.Exact == nil {
			continue
		}
		lp, _, err := LogProbs(bg, testDevice(t), g.of.First().On(g.base.First()), g.IDs)
		require.NoError(t, err)
		ours, theirs, n := 0.0, 0.0, 0.0
		for i, row := range g.Exact {
			for j, exact := range row {
				ours, theirs, n = ours+math.Abs(float64(lp[i][j])-exact), theirs+math.Abs(g.With[i][j]-exact), n+1
			}
		}
		t.Logf("%s: mean distance from float64 %.3g, PEFT's %.3g", name, ours/n, theirs/n)
		require.Less(t, ours, 1.25*theirs, name)
		compared++
	}
	require.Equal(t, 2, compared)
}

func TestGoldenAdapterGradients(t *testing.T) {
	for name, g := range adapterGoldens(t) {
		t.Run(name, func(t *testing.T) {
			rows, width := len(g.IDs), len(g.IDs[0])
			p, err := testDevice(t).Programs(g.of.Config, nil, Shapes{MicroBatch: rows, Sequence: width})
			require.NoError(t, err)
			defer p.Free()
			s, err := p.Load(g.of.First().On(g.base.First()))
			require.NoError(t, err)
			defer s.Free()
			b := batchOf(g.IDs, 1)
			for _, mask := range b.Mask {
				for j := range mask {
					mask[j] = j > 0
				}
			}
			grads, metrics := gradients(t, p, s, []batch.MicroBatch{b}, Settings{Temperature: 1}, true)
			require.InDelta(t, g.Loss, metrics[p.metric(terms.PolicyLoss)], 1e-5)
			for i, ts := range g.of.Config.Tensors() {
				want, ok := g.Grads[strings.Replace(ts.Name, ".weight", ".default.weight", 1)]
				require.True(t, ok, ts.Name)
				var sum float64
				for _, x := range grads.Values[i] {
					sum += float64(x) * float64(x)
				}
				require.InEpsilon(t, want[0], math.Sqrt(sum), 1e-3, ts.Name)
				require.InDelta(t, want[1], grads.Values[i][0], 1e-3*want[0], ts.Name)
			}
		})
	}
}

// A merged policy says the same, token by token.
func TestGoldenAdapterGreedy(t *testing.T) {
	for name, g := range adapterGoldens(t) {
		t.Run(name, func(t *testing.T) {
			merged, err := Merge(g.base.First(), g.of.First())
			require.NoError(t, err)
			prompts := [][]int32{g.IDs[0][:8], g.IDs[1][:3]}
			o := GenerateOptions{MaxNewTokens: 12, IgnoreStop: true}
			want, err := GreedyOrSample(bg, testDevice(t), merged, prompts, o)
			require.NoError(t, err)
			got, err := GreedyOrSample(bg, testDevice(t), g.of.First().On(g.base.First()), prompts, o)
			require.NoError(t, err)
			require.Equal(t, want, got)
			base, err := GreedyOrSample(bg, testDevice(t), g.base.First(), prompts, o)
			require.NoError(t, err)
			require.NotEqual(t, base, got)
		})
	}
}

// New adapters add exact zeros: the policy's bits are those of the base model.
func TestNewAdaptersAreTheBase(t *testing.T) {
	for _, dtype := range []string{"float32", "bfloat16"} {
		t.Run(dtype, func(t *testing.T) {
			sh := tinyShapes
			sh.ComputeDtype = dtype
			c := tinyLoRA()
			p, base, _ := adapted(t, c, sh)
			s, err := p.LoadParams(Drawn(c, draw.Address{Seed: 9, Purpose: draw.LoRA}).Over(base))
			require.NoError(t, err)
			defer s.Free()
			q, err := testDevice(t).Programs(c.Base(), nil, sh)
			require.NoError(t, err)
			defer q.Free()
			full, err := q.UploadParams(tinyParams(c.Base()))
			require.NoError(t, err)
			defer full.Free()
			b := batchOf(randomRows(1, c, 3, 7), 1)
			lp, entropy, err := p.Scorer.Score(bg, s, b, 0.8)
			require.NoError(t, err)
			lp2, entropy2, err := q.Scorer.Score(bg, full, b, 0.8)
			require.NoError(t, err)
			require.Equal(t, lp2, lp)
			require.Equal(t, entropy2, entropy)
			in := GenerateInput{Prompts: randomRows(2, c, 4, 5), Uniforms: uniforms(3, 4, 8), Temperature: 1}
			out, err := p.Sampler.Generate(bg, s, in)
			require.NoError(t, err)
			out2, err := q.Sampler.Generate(bg, full, in)
			require.NoError(t, err)
			require.Equal(t, out2, out)
		})
	}
}

// The gradient of the whole loss by every adapter, and by a critic's adapters and head.
func TestAdapterGradientsAgreeWithDifferences(t *testing.T) {
	c := tinyLoRA()
	c.TieEmbeddings = false
	legal := make([]bool, c.VocabSize)
	for i := range legal {
		legal[i] = i < 30
	}
	k := testSettings()
	k.Temperature, k.EntropyCoefficient, k.KLCoefficient = 0.8, 0.3, 0.5
	o := LossOptions{KL: loss.K3}
	p, err := testDevice(t).Programs(c, legal, Shapes{MicroBatch: 3, Sequence: 8, Loss: o})
	require.NoError(t, err)
	defer p.Free()
	d := inFloat64(t, p, legal, k.Temperature)
	d.below(t, tinyParams(c.Base()))
	adapters := tinyAdapters(c)
	batches := d.awayFromKinks(t, adapters, o)
	require.NoError(t, batch.Weigh(batches, loss.SeqMeanTokenMean, 40))
	all, _, err := p.Learner.packAll(batches, k.reads(p.sh.Loss, false))
	require.NoError(t, err)
	m := d.minibatch(t, lossOnly(widened(p)), all, k.knobs(p.sh.Loss, false))
	defer m.free()
	_, want := d.agreeWithDifferences(t, adapters, m, p.metric(terms.ClipFraction), p.metric(terms.DualClipFraction))
	base, err := p.LoadBase(tinyParams(c.Base()).source())
	require.NoError(t, err)
	defer base.Free()
	s, err := p.LoadParams(adapters.source().Over(base))
	require.NoError(t, err)
	defer s.Free()
	got, _ := gradients(t, p, s, batches, k, false)
	requireRounded(t, want, got)
}

func TestCriticAdapterGradientsAgreeWithDifferences(t *testing.T) {
	policy := tinyLoRA()
	c := policy.Critic()
	q, err := testDevice(t).Programs(c, nil, Shapes{MicroBatch: 3, Sequence: 7})
	require.NoError(t, err)
	defer q.Free()
	p, base, _ := adapted(t, policy, tinyShapes)
	s, err := q.Load(tinyAdapters(c).source().Over(base))
	require.NoError(t, err)
	defer s.Free()
	require.NotNil(t, p)
	d := inFloat64(t, q, nil, 1)
	d.below(t, tinyParams(policy.Base()))
	b := criticBatch(t, q, s, 1)
	all, _, err := q.Learner.packAll([]batch.MicroBatch{b}, criticSettings().reads(q.sh.Loss))
	require.NoError(t, err)
	m := d.minibatch(t, valueLossOnly(widened(q)), all, criticSettings().knobs(q.sh.Loss))
	defer m.free()
	_, want := d.agreeWithDifferences(t, tinyAdapters(c), m, q.metric(terms.ValueClipFraction))
	got, _ := gradientsOf(t, q, s, all, pass{knobs: criticSettings().knobs(q.sh.Loss)})
	requireRounded(t, want, got)
}

// A policy, its critic and its reference have one base on the device, which is released with
// the last of them.
func TestStatesShareTheirBase(t *testing.T) {
	c := tinyLoRA()
	p, err := testDevice(t).Programs(c, nil, tinyShapes)
	require.NoError(t, err)
	defer p.Free()
	q, err := testDevice(t).Programs(c.Critic(), nil, Shapes{MicroBatch: 3, Sequence: 7})
	require.NoError(t, err)
	defer q.Free()
	before := pjrt.BuffersAlive()
	base, err := p.LoadBase(tinyParams(c.Base()).source())
	require.NoError(t, err)
	weights := len(c.Frozen())
	require.EqualValues(t, weights, pjrt.BuffersAlive()-before)
	s, err := p.Load(tinyAdapters(c).source().Over(base))
	require.NoError(t, err)
	reference, err := p.LoadParams(tinyAdapters(c).source().Over(base))
	require.NoError(t, err)
	critic, err := q.Load(s.NewCritic(1))
	require.NoError(t, err)
	adapters := len(c.Tensors())
	require.EqualValues(t, weights+3*adapters+adapters+3*(adapters+2), pjrt.BuffersAlive()-before)
	require.Equal(t, []float32{0}, requireSnapshot(t, critic).Params.Values[adapters+1], "the critic's bias")
	require.Equal(t, requireSnapshot(t, s).Params.Values, requireSnapshot(t, critic).Params.Values[:adapters])

	print, err := base.Fingerprint()
	require.NoError(t, err)
	b := scoredBatch(t, p, s, 1, 1)
	next, m, err := p.Learner.Update(bg, s, []batch.MicroBatch{b, b}, testSettings())
	require.NoError(t, err)
	require.Zero(t, m.RatioMax)
	require.Positive(t, m.GradNorm)
	same, err := base.Fingerprint()
	require.NoError(t, err)
	require.Equal(t, print, same, "an update leaves the base as it is")

	base.Free()
	base.Free()
	_, err = base.Fingerprint()
	require.NoError(t, err, "its states use it")
	reference.Free()
	critic.Free()
	_, _, err = p.Scorer.Score(bg, next, b, 1)
	require.NoError(t, err)
	next.Free()
	_, err = base.Fingerprint()
	require.ErrorIs(t, err, ErrFreed)
	_, err = p.Load(tinyAdapters(c).source().Over(base))
	require.ErrorIs(t, err, ErrFreed)
	require.LessOrEqual(t, pjrt.BuffersAlive(), before) // buffers of tests before may be freed meanwhile
}

func requireSnapshot(t testing.TB, s *State) Snapshot {
	t.Helper()
	out, err := s.Download()
	require.NoError(t, err)
	return out
}

// The sampler's log-probs are those of the training program, whole or in chunks.
func TestAdaptersSampleAsTheyScore(t *testing.T) {
	c := tinyLoRA()
	p, base, s := adapted(t, c, tinyShapes)
	sh := tinyShapes
	sh.ChunkTokens = 3
	q, err := testDevice(t).Programs(c, nil, sh)
	require.NoError(t, err)
	defer q.Free()
	in := GenerateInput{Prompts: randomRows(2, c, 4, 3), Uniforms: uniforms(3, 4, 8), Temperature: 1}
	whole, err := p.Sampler.Generate(bg, s, in)
	require.NoError(t, err)
	chunks, err := q.Sampler.Generate(bg, s, in)
	require.NoError(t, err)
	require.Equal(t, whole, chunks)
	b := batch.MicroBatch{}
	for i := range 3 {
		b.IDs = append(b.IDs, append(append([]int32{}, in.Prompts[i]...), whole.Tokens[i][:4]...))
		b.Lengths = append(b.Lengths, 7)
	}
	lp, _, err := p.Scorer.Score(bg, s, b, 1)
	require.NoError(t, err)
	for i := range lp {
		require.InDeltaSlice(t, whole.LogProbs[i][:4], lp[i][3:], 2e-5)
	}
	require.Equal(t, c.Base(), base.Config())
}

func TestDrawnAdapters(t *testing.T) {
	c := tinyLoRA()
	at := draw.Address{Seed: 1, Purpose: draw.LoRA}
	p := NewParams(c, at)
	some := c
	some.LoRA.Targets, _ = ParseTargets([]string{"down_proj"})
	q := NewParams(some, at)
	for i, ts := range c.Tensors() {
		var square float64
		for _, x := range p.Values[i] {
			square += float64(x) * float64(x)
			require.LessOrEqual(t, math.Abs(float64(x)), 1/math.Sqrt(float64(ts.Shape[1])))
		}
		if strings.HasSuffix(ts.Name, adapterB) {
			require.Zero(t, square)
		} else { // the variance of a uniform number within ±1/√in
			require.InEpsilon(t, 1/(3*float64(ts.Shape[1])), square/float64(ts.Elements()), 0.5, ts.Name)
		}
		for j, other := range some.Tensors() {
			if other.Name == ts.Name {
				require.Equal(t, p.Values[i], q.Values[j], "other targets do not change it")
			}
		}
	}
	require.NotEqual(t, p.Values[0], p.Values[2])
	require.NotEqual(t, p.Values, NewParams(c, draw.Address{Seed: 2, Purpose: draw.LoRA}).Values)
}

func TestBadBases(t *testing.T) {
	c := tinyLoRA()
	p, base, s := adapted(t, c, tinyShapes)
	_, err := p.Load(tinyAdapters(c).source())
	require.ErrorIs(t, err, ErrInput)
	require.ErrorContains(t, err, "without their base")
	other := c.Base()
	other.HiddenSize = 32
	_, err = p.LoadBase(NewParams(other, draw.Address{}).source())
	require.ErrorIs(t, err, ErrInput)
	half := tinyShapes
	half.ComputeDtype = "bfloat16"
	q, err := testDevice(t).Programs(c, nil, half)
	require.NoError(t, err)
	defer q.Free()
	_, err = q.Load(tinyAdapters(c).source().Over(base))
	require.ErrorContains(t, err, "the base model is in Float32, the programs compute in BFloat16")
	_, _, err = q.Scorer.Score(bg, s, batchOf(randomRows(1, c, 3, 7), 1), 1)
	require.ErrorContains(t, err, "the programs compute in BFloat16")
	plain, _ := tinyPrograms(t, tiny())
	_, err = plain.LoadBase(tinyParams(tiny()).source())
	require.ErrorIs(t, err, ErrInput)
	_, err = Merge(tinyParams(other).source(), tinyAdapters(c).source())
	require.ErrorIs(t, err, ErrInput)
	_, err = Merge(tinyParams(c.Base()).source(), tinyParams(c.Base()).source())
	require.ErrorIs(t, err, ErrInput)
}
