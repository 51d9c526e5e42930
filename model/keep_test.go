package model

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/batch"
	"github.com/reprise-rl/reprise/model/draw"
	"github.com/reprise-rl/reprise/model/loss"
	"github.com/reprise-rl/reprise/model/loss/terms"
)

// What was learned from a minibatch: its gradient by each tensor, and the metrics.
type learned struct {
	gradient Params
	metrics  []float32
}

// learnedOf passes a minibatch of drawn rows through programs. It requires a ratio of exactly 1
// at the parameters that scored it.
func learnedOf(t *testing.T, c Config, sh Shapes, l limits) learned {
	t.Helper()
	p, err := testDevice(t).programsWith(c, nil, sh, l)
	require.NoError(t, err)
	defer p.Free()
	params, base := NewParams(c, draw.Address{Seed: 7, Purpose: draw.Weights}), (*Base)(nil)
	if c.Adapted() {
		_, base, _ = adapted(t, tinyLoRA(), tinyShapes)
		params = tinyAdapters(c)
	} else if c.ValueHead {
		r := draw.Address{Seed: 5, Purpose: "test"}.Rand()
		for i := range params.Values[c.valueHead()] {
			params.Values[c.valueHead()][i] = float32(r.NormFloat64())
		}
	}
	s, err := p.Load(params.source().Over(base))
	require.NoError(t, err)
	defer s.Free()
	batches := []batch.MicroBatch{batchOf(randomRows(1, c, sh.MicroBatch, sh.Sequence), 1), batchOf(randomRows(2, c, sh.MicroBatch-1, sh.Sequence), -1)}
	if c.ValueHead {
		for i := range batches {
			batches[i].Columns[batch.Returns], err = p.Scorer.Values(bg, s, batches[i])
			require.NoError(t, err)
			for _, row := range batches[i].Columns[batch.Returns] {
				for at := range row {
					row[at] += 0.3
				}
			}
			batches[i].Columns[batch.OldValues] = batches[i].Columns[batch.Returns]
		}
		k := criticSettings()
		all, _, err := p.Learner.packAll(batches, k.reads(p.sh.Loss))
		require.NoError(t, err)
		grads, metrics := gradientsOf(t, p, s, all, pass{knobs: k.knobs(p.sh.Loss)})
		return learned{grads, metrics}
	}
	k := testSettings()
	k.KLCoefficient = 0
	if sh.Loss.Has(terms.DualClip) {
		k.Knobs = k.Knobs.With(terms.DualClip, 1.5)
	}
	if sh.Loss.KL != "" {
		k.KLCoefficient = 0.5
	}
	for i := range batches {
		batches[i].Columns[batch.OldLogProbs], _, err = p.Scorer.Score(bg, s, batches[i], k.Temperature)
		require.NoError(t, err)
		batches[i].Columns[batch.RefLogProbs] = batches[i].Columns[batch.OldLogProbs]
	}
	grads, metrics := gradients(t, p, s, batches, k, false)
	require.Zero(t, metrics[p.metric(terms.RatioMax)])
	return learned{grads, metrics}
}

// A forward pass that keeps its activations gives the bits of one that does not, in float32:
// the gradient of each tensor, and the metrics.
func TestKeptActivationsChangeNoBit(t *testing.T) {
	wide, untied, llama := benchConfig(), tiny(), tiny()
	wide.Layers = 2
	untied.TieEmbeddings, untied.KVHeads = false, untied.Heads
	llama.Family, llama.Pad, llama.TieEmbeddings = Llama, ID(3), false
	qwen3 := wide
	qwen3.Family, qwen3.HeadDim = Qwen3, 48
	chunked, blocks := defaultLimits, defaultLimits
	chunked.queries, chunked.logits, blocks.queries = 3, 37*10, 48
	small, large := Shapes{MicroBatch: 3, Sequence: 7}, Shapes{MicroBatch: 4, Sequence: 128}
	options := small
	options.Loss = LossOptions{Ratio: loss.SequenceRatio, KL: loss.K3, Guards: terms.DualClip}
	for _, test := range []struct {
		name   string
		config Config
		shapes Shapes
		limits limits
		long   bool
	}{
		{"tied", tiny(), small, defaultLimits, false},
		{"untied, a key for each query, in chunks", untied, options, chunked, false},
		{"llama", llama, small, defaultLimits, true},
		{"adapters", tinyLoRA(), small, defaultLimits, false},
		{"critic with adapters, in chunks", tinyLoRA().Critic(), small, chunked, false},
		{"the starter's width", wide, large, defaultLimits, true},
		{"the starter's width, qwen3, in blocks of queries", qwen3, large, blocks, false},
		{"the starter's width, critic", wide.Critic(), large, defaultLimits, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.long && *size == "" {
				t.Skip("`make size` runs it: other cases have its parts")
			}
			again := learnedOf(t, test.config, test.shapes, test.limits)
			test.shapes.Keep = true
			kept := learnedOf(t, test.config, test.shapes, test.limits)
			for i, ts := range test.config.Tensors() {
				require.Equal(t, again.gradient.Values[i], kept.gradient.Values[i], ts.Name)
			}
			require.Equal(t, again.metrics, kept.metrics)
		})
	}
}

// In bfloat16 kept activations are rounded and others need not be: the gradients differ by
// rounding alone.
func TestKeptActivationsInBfloat16(t *testing.T) {
	sh := Shapes{MicroBatch: 3, Sequence: 7, ComputeDtype: "bfloat16"}
	again := learnedOf(t, tiny(), sh, defaultLimits)
	sh.Keep = true
	kept := learnedOf(t, tiny(), sh, defaultLimits)
	var off, norm float64
	for i := range again.gradient.Values {
		for j, x := range again.gradient.Values[i] {
			d := float64(x - kept.gradient.Values[i][j])
			off, norm = off+d*d, norm+float64(x)*float64(x)
		}
	}
	t.Logf("the difference is %.2g of the gradient's norm", math.Sqrt(off/norm))
	require.Less(t, math.Sqrt(off/norm), 0.02)
}
