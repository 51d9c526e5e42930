package model

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/loss"
)

// randomBatch has rows of up to 9 tokens, some not sampled, in turns of three.
func randomBatch(seed uint64, rows int, spread float64) PolicyBatch {
	r := rand.New(rand.NewPCG(seed, 2))
	var b PolicyBatch
	for row := range rows {
		n := 3 + r.IntN(7)
		var lp, old, ref, adv, ent []float64
		var mask []bool
		var turns []int
		for t := range n {
			l := -3 * r.Float64()
			lp, old, ref = append(lp, l), append(old, l+spread*r.NormFloat64()), append(ref, l+0.5*r.NormFloat64())
			adv, ent = append(adv, r.NormFloat64()), append(ent, 2*r.Float64())
			mask, turns = append(mask, r.IntN(4) > 0 && row != 1), append(turns, t/3)
		}
		b.LogProbs, b.OldLogProbs, b.RefLogProbs = append(b.LogProbs, lp), append(b.OldLogProbs, old), append(b.RefLogProbs, ref)
		b.Advantages, b.Entropies = append(b.Advantages, adv), append(b.Entropies, ent)
		b.Mask, b.Turns = append(b.Mask, mask), append(b.Turns, turns)
		b.RowWeights = append(b.RowWeights, []float64{1, 0.5, 2, 0}[row%4])
	}
	return b
}

// slope is the central difference of f at x.
func slope(x *float64, f func() float64) float64 {
	const h = 1e-6
	at := *x
	defer func() { *x = at }()
	*x = at + h
	up := f()
	*x = at - h
	return (up - f()) / (2 * h)
}

// agrees computes a loss whose derivatives by log-probs and entropies must equal finite
// differences.
func agrees(t *testing.T, b PolicyBatch, o PolicyOptions) PolicyLoss {
	t.Helper()
	value := func() float64 {
		l, err := referencePolicy(b, o)
		require.NoError(t, err)
		return l.Loss
	}
	l, err := referencePolicy(b, o)
	require.NoError(t, err)
	for row := range b.LogProbs {
		for at := range b.LogProbs[row] {
			require.InDelta(t, slope(&b.LogProbs[row][at], value), l.ByLogProb[row][at], 1e-7)
			require.InDelta(t, slope(&b.Entropies[row][at], value), l.ByEntropy[row][at], 1e-7)
		}
	}
	return l
}

func TestPolicyGradient(t *testing.T) {
	clips := []Clip{{0.2, 0.28}, {0.1, 0.4}}
	for _, a := range []loss.Aggregation{loss.TokenMean, loss.SeqMeanTokenSum, loss.SeqMeanTokenMean, loss.Constant} {
		for _, e := range []loss.KLEstimator{loss.K1, loss.K2, loss.K3, loss.KAbs} {
			t.Run(fmt.Sprint(a, " ", e), func(t *testing.T) {
				o := PolicyOptions{Clips: clips, DualClip: 1.5, Aggregation: a, Divisor: 30, EntropyCoefficient: 0.01, KLCoefficient: 0.1, KLEstimator: e}
				b := randomBatch(1, 9, 0.6)
				l := agrees(t, b, o)
				require.Positive(t, l.ClipFraction)
				require.Positive(t, l.DualClipFraction)
				for row := range b.LogProbs {
					for at := range b.LogProbs[row] {
						if !b.Mask[row][at] || b.RowWeights[row] == 0 {
							require.Zero(t, l.ByLogProb[row][at])
							require.Zero(t, l.ByEntropy[row][at])
						}
					}
				}
			})
		}
	}
}

// If each row has one advantage and one weight, the sequence ratio's gradient is the
// derivative of the loss.
func TestSequenceGradient(t *testing.T) {
	for _, a := range []loss.Aggregation{loss.TokenMean, loss.SeqMeanTokenSum, loss.SeqMeanTokenMean, loss.Constant} {
		b := randomBatch(2, 9, 0.4)
		for row := range b.Advantages {
			for at := range b.Advantages[row] {
				b.Advantages[row][at] = b.Advantages[row][0]
			}
		}
		o := PolicyOptions{Ratio: loss.SequenceRatio, Clips: []Clip{{0.05, 0.05}}, Aggregation: a, Divisor: 30}
		l := agrees(t, b, o)
		require.Positive(t, l.ClipFraction)
		require.Less(t, l.ClipFraction, 1.0)
	}
}

func TestValueGradient(t *testing.T) {
	for _, clip := range []float64{0, 0.3} {
		p := randomBatch(3, 9, 1)
		b := ValueBatch{Values: p.LogProbs, OldValues: p.OldLogProbs, Returns: p.Advantages, Mask: p.Mask, RowWeights: p.RowWeights}
		o := ValueOptions{Clip: clip, Aggregation: loss.TokenMean}
		value := func() float64 {
			l, err := referenceValue(b, o)
			require.NoError(t, err)
			return l.Loss
		}
		l, err := referenceValue(b, o)
		require.NoError(t, err)
		require.Equal(t, clip > 0, l.ClipFraction > 0)
		for row := range b.Values {
			for at := range b.Values[row] {
				require.InDelta(t, slope(&b.Values[row][at], value), l.ByValue[row][at], 1e-7)
			}
		}
	}
}

// tinyModel is a policy and a critic on 4 features: logits are weights·features, the
// value a product of its own.
type tinyModel struct {
	weights  [5][4]float64 // [vocabulary][features]
	critic   [4]float64
	features [][][4]float64 // [rows][tokens]
	ids      [][]int
}

func (m *tinyModel) logits(row, at int) []float64 {
	out := make([]float64, len(m.weights))
	for i, w := range m.weights {
		for f, x := range m.features[row][at] {
			out[i] += w[f] * x
		}
	}
	out[4] = math.Inf(-1) // an id that the tokenizer lacks
	return out
}

// The whole loss, policy, entropy, KL and critic, differentiated down to the
// weights of a model, against finite differences.
func TestWholeGradient(t *testing.T) {
	b := randomBatch(4, 7, 0)
	values := ValueBatch{Returns: b.Advantages, OldValues: loss.Zeros(b.Mask), Values: loss.Zeros(b.Mask), Mask: b.Mask, RowWeights: b.RowWeights}
	r := rand.New(rand.NewPCG(4, 4))
	m := &tinyModel{}
	for row := range b.Mask {
		m.features, m.ids = append(m.features, make([][4]float64, len(b.Mask[row]))), append(m.ids, make([]int, len(b.Mask[row])))
		for at := range b.Mask[row] {
			m.ids[row][at] = r.IntN(4)
			for f := range m.features[row][at] {
				m.features[row][at][f] = r.NormFloat64()
			}
		}
	}
	draw := func(scale float64) {
		for i := range m.weights {
			for f := range m.weights[i] {
				m.weights[i][f] += scale * r.NormFloat64()
			}
		}
	}
	forward := func() {
		for row := range b.Mask {
			for at := range b.Mask[row] {
				lps, entropy := Softmax(m.logits(row, at))
				b.LogProbs[row][at], b.Entropies[row][at] = lps[m.ids[row][at]], entropy
				values.Values[row][at] = 0
				for f, x := range m.features[row][at] {
					values.Values[row][at] += m.critic[f] * x
				}
			}
		}
	}
	copyTo := func(to [][]float64) {
		for row := range to {
			copy(to[row], b.LogProbs[row])
		}
	}
	draw(1)
	forward()
	copyTo(b.RefLogProbs)
	draw(0.2)
	forward()
	copyTo(b.OldLogProbs)
	draw(0.2)
	for f := range m.critic {
		m.critic[f] = r.NormFloat64()
	}

	o := PolicyOptions{Clips: []Clip{{0.2, 0.28}}, DualClip: 3, Aggregation: loss.SeqMeanTokenMean,
		EntropyCoefficient: 0.1, KLCoefficient: 0.2, KLEstimator: loss.K3}
	vo := ValueOptions{Clip: 0.5, Aggregation: loss.TokenMean}
	losses := func() (PolicyLoss, ValueLoss) {
		forward()
		l, err := referencePolicy(b, o)
		require.NoError(t, err)
		v, err := referenceValue(values, vo)
		require.NoError(t, err)
		return l, v
	}
	l, v := losses()
	require.Positive(t, l.ClipFraction)
	var byWeight [5][4]float64
	var byCritic [4]float64
	for row := range b.Mask {
		for at := range b.Mask[row] {
			lps, entropy := Softmax(m.logits(row, at))
			g := LogitGradient(lps, entropy, m.ids[row][at], l.ByLogProb[row][at], l.ByEntropy[row][at])
			require.Zero(t, g[4])
			for f, x := range m.features[row][at] {
				for i := range g {
					byWeight[i][f] += g[i] * x
				}
				byCritic[f] += v.ByValue[row][at] * x
			}
		}
	}
	whole := func() float64 {
		l, v := losses()
		return l.Loss + v.Loss
	}
	for i := range m.weights {
		for f := range m.weights[i] {
			require.InDelta(t, slope(&m.weights[i][f], whole), byWeight[i][f], 1e-7)
		}
	}
	for f := range m.critic {
		require.InDelta(t, slope(&m.critic[f], whole), byCritic[f], 1e-7)
	}
}
