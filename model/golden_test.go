package model

import (
	"math"
	"slices"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/batch"
	"github.com/reprise-rl/reprise/model/loss/terms"
)

func TestGoldenLogProbs(t *testing.T) { eachGolden(t, goldenLogProbs) }

func goldenLogProbs(t *testing.T, dir string, g golden) {
	f, err := OpenFolder(dir)
	require.NoError(t, err)
	lp, ent, err := LogProbs(bg, testDevice(t), f.First(), g.Forward.IDs)
	require.NoError(t, err)
	require.Len(t, lp, len(g.Forward.LogProbs))
	var sum float64
	var n int
	for i, row := range g.Forward.LogProbs {
		require.Len(t, lp[i], len(row))
		require.Len(t, ent[i], len(row)+1)
		for j, want := range row {
			require.InDelta(t, want, lp[i][j], 2e-5, "row %d, token %d", i, j)
		}
		for _, e := range ent[i] {
			sum += float64(e)
			n++
		}
	}
	t.Logf("entropy mean over L: %v, want %v", sum/float64(n), g.Forward.EntropyMean)
	require.InDelta(t, g.Forward.EntropyMean, sum/float64(n), 2e-5)
}

// lastLogits runs the layers and the head on the last position, in a program of
// the test's own.
func lastLogits(t *testing.T, p *Programs, s *State, ids [][]int32) [][]float32 {
	rows, width := p.sh.MicroBatch, p.sh.Sequence
	prog := &program{name: "logits", device: p.device, build: func(in *inputs) []*graph.Node {
		w := p.net.weights(in)
		b := p.Scorer.batchInputs(in)
		x := p.net.embed(w.embedding, b.flat)
		for _, l := range w.layers {
			x, _ = p.net.layer(l, x, b.sequences)
		}
		x = graph.Reshape(graph.SliceAxis(graph.Reshape(x, rows, width, p.c.HiddenSize), 1, graph.AxisRange(width-1, width)), rows, p.c.HiddenSize)
		hd := head{t: p.net, weight: w.head, legal: b.legal, inverse: b.inverse}
		return []*graph.Node{graph.ConvertDType(hd.logits(p.net.norm(x, w.norm)), dtypes.Float32)}
	}}
	flat := []int32{}
	for _, row := range ids {
		flat = append(flat, row...)
	}
	p.device.run.Lock()
	defer p.device.run.Unlock()
	idBuf, err := upload(p.device, 0, flat, rows, width)
	require.NoError(t, err)
	one, err := upload(p.device, 0, []float32{1})
	require.NoError(t, err)
	out, err := prog.call(slices.Concat(s.params, []compute.Buffer{idBuf}, p.Scorer.rope.first, p.legal.first, []compute.Buffer{one})...)
	require.NoError(t, err)
	v, err := download[float32](out[0], rows*p.c.VocabSize)
	require.NoError(t, err)
	logits := make([][]float32, rows)
	for i := range logits {
		logits[i] = v[i*p.c.VocabSize : (i+1)*p.c.VocabSize]
	}
	return logits
}

func TestGoldenLogitsLossAndGradients(t *testing.T) { eachGolden(t, goldenLogitsLossAndGradients) }

func goldenLogitsLossAndGradients(t *testing.T, dir string, g golden) {
	f, err := OpenFolder(dir)
	require.NoError(t, err)
	rows, width := len(g.Forward.IDs), len(g.Forward.IDs[0])
	p, err := testDevice(t).Programs(f.Config, nil, Shapes{MicroBatch: rows, Sequence: width})
	require.NoError(t, err)
	s, err := p.Load(f.First())
	require.NoError(t, err)

	for i, row := range lastLogits(t, p, s, g.Forward.IDs) {
		for j, want := range g.Forward.LogitsLast[i] {
			require.InDelta(t, want, row[j], 5e-5, "row %d, id %d", i, j)
		}
	}

	b := batch.MicroBatch{IDs: g.Forward.IDs}
	for range rows {
		b.Lengths = append(b.Lengths, int32(width))
		mask := make([]bool, width)
		for j := 1; j < width; j++ {
			mask[j] = true
		}
		b.Mask = append(b.Mask, mask)
	}
	grads, metrics := gradients(t, p, s, []batch.MicroBatch{b}, Settings{Temperature: 1}, true)
	require.InDelta(t, g.Loss, metrics[p.metric(terms.PolicyLoss)], 1e-5)
	for i, ts := range f.Config.Tensors() {
		want, ok := g.Grads[ts.Name]
		require.True(t, ok, ts.Name)
		var sum float64
		for _, x := range grads.Values[i] {
			sum += float64(x) * float64(x)
		}
		require.InEpsilon(t, want[0], math.Sqrt(sum), 1e-3, ts.Name)
		require.InDelta(t, want[1], grads.Values[i][0], 1e-3*want[0], ts.Name)
	}
}

// gradients downloads a minibatch's gradient and metrics without applying it.
func gradients(t testing.TB, p *Programs, s *State, b []batch.MicroBatch, k Settings, supervised bool) (Params, []float32) {
	t.Helper()
	all, _, err := p.Learner.packAll(b, k.reads(p.sh.Loss, supervised))
	require.NoError(t, err)
	return gradientsOf(t, p, s, all, pass{temperature: k.Temperature, knobs: k.knobs(p.sh.Loss, supervised)})
}

func gradientsOf(t testing.TB, p *Programs, s *State, all []packed, how pass) (Params, []float32) {
	t.Helper()
	p.device.run.Lock()
	defer p.device.run.Unlock()
	var acc accumulated
	defer acc.free()
	for _, b := range all {
		if b.tokens > 0 {
			require.NoError(t, p.Learner.backward(s, b, how, &acc))
		}
	}
	grads := zeroParams(p.c)
	for i, b := range acc.grads {
		require.NoError(t, fetch(b, grads.Values[i]))
	}
	metrics, err := download[float32](acc.metrics, p.Learner.metricCount())
	require.NoError(t, err)
	return grads, metrics
}

func TestGoldenGreedy(t *testing.T) { eachGolden(t, goldenGreedy) }

func goldenGreedy(t *testing.T, dir string, g golden) {
	f, err := OpenFolder(dir)
	require.NoError(t, err)
	var legal []bool
	if g.Greedy.Note != "" {
		legal = make([]bool, f.Config.VocabSize)
		for i := range legal {
			legal[i] = i < g.tokens
		}
	}
	got, err := GreedyOrSample(bg, testDevice(t), f.First(), [][]int32{g.Greedy.Prompt, g.Greedy.Prompt[:3]},
		GenerateOptions{MaxNewTokens: len(g.Greedy.New), IgnoreStop: true, Legal: legal})
	require.NoError(t, err)
	require.Equal(t, g.Greedy.New, got[0])
}
