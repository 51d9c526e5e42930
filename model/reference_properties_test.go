package model

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/loss"
)

// At the parameters that scored the batch every ratio is 1: nothing is clipped,
// the KLs are 0, and the loss is the weighted advantage.
func TestOnPolicy(t *testing.T) {
	for _, ratio := range []loss.Ratio{"", loss.TokenRatio, loss.SequenceRatio} {
		b := randomBatch(5, 9, 0)
		b.OldLogProbs = b.LogProbs
		l, err := referencePolicy(b, PolicyOptions{Ratio: ratio, Clips: []Clip{{0, 0}}, DualClip: 3, Aggregation: loss.TokenMean})
		require.NoError(t, err)
		require.Zero(t, l.RatioMax)
		require.Zero(t, l.ClipFraction)
		require.Zero(t, l.DualClipFraction)
		require.Zero(t, l.BehaviourKL)
		require.Zero(t, l.ApproxKL)
		weights, err := loss.Weights(b.Mask, b.RowWeights, loss.TokenMean, 0)
		require.NoError(t, err)
		var want float64
		for row := range weights {
			for at, w := range weights[row] {
				want -= w * b.Advantages[row][at]
				require.Equal(t, -w*b.Advantages[row][at]+0, l.ByLogProb[row][at]+0)
			}
		}
		require.InDelta(t, want, l.Loss, 1e-12)
	}
}

// Values at tokens that were not sampled are not read.
func TestMaskedIsNotRead(t *testing.T) {
	b := randomBatch(6, 9, 0.5)
	o := PolicyOptions{Clips: []Clip{{0.2, 0.28}}, Aggregation: loss.TokenMean, EntropyCoefficient: 0.1, KLCoefficient: 0.1, KLEstimator: loss.K3}
	want, err := referencePolicy(b, o)
	require.NoError(t, err)
	for row, sampled := range b.Mask {
		for at, yes := range sampled {
			if !yes {
				for _, x := range [][][]float64{b.LogProbs, b.OldLogProbs, b.RefLogProbs, b.Advantages, b.Entropies} {
					x[row][at] = math.NaN()
				}
			}
		}
	}
	got, err := referencePolicy(b, o)
	require.NoError(t, err)
	require.Equal(t, want, got)
}

// A number that is not finite reaches the loss, so that the step can be skipped.
func TestNotFiniteReachesTheLoss(t *testing.T) {
	for _, bad := range []float64{math.NaN(), math.Inf(1)} {
		b := randomBatch(6, 3, 0.5)
		for at, yes := range b.Mask[0] {
			if yes {
				b.Advantages[0][at] = bad
			}
		}
		l, err := referencePolicy(b, PolicyOptions{Clips: []Clip{{0.2, 0.28}}, Aggregation: loss.TokenMean})
		require.NoError(t, err)
		require.False(t, finite(l.Loss))
	}
}

// The log-ratio is held within bounds, and the gradient is 0 beyond them.
func TestLogRatioIsBounded(t *testing.T) {
	for _, c := range []struct {
		ratio loss.Ratio
		most  float64
	}{{loss.TokenRatio, 20}, {loss.SequenceRatio, 10}} {
		b := PolicyBatch{LogProbs: [][]float64{{0}}, OldLogProbs: [][]float64{{-500}}, Advantages: [][]float64{{-1}}, Mask: [][]bool{{true}}}
		l, err := referencePolicy(b, PolicyOptions{Ratio: c.ratio, Clips: []Clip{{0.2, 0.28}}, Aggregation: loss.TokenMean})
		require.NoError(t, err)
		require.InDelta(t, math.Exp(c.most), l.Loss, 1e-3)
		require.Zero(t, l.ByLogProb[0][0])
	}
}

// A minibatch without a sampled token has a loss of 0.
func TestNothingSampled(t *testing.T) {
	l, err := referencePolicy(PolicyBatch{LogProbs: [][]float64{{0}}, OldLogProbs: [][]float64{{0}}, Advantages: [][]float64{{0}}, Mask: [][]bool{{false}}},
		PolicyOptions{Clips: []Clip{{}}, Aggregation: loss.TokenMean})
	require.NoError(t, err)
	require.Zero(t, l.Loss)
}

func TestSoftmax(t *testing.T) {
	logProbs, entropy := Softmax([]float64{1000, 1000, math.Inf(-1)})
	require.InDeltaSlice(t, []float64{-math.Ln2, -math.Ln2}, logProbs[:2], 1e-12)
	require.True(t, math.IsInf(logProbs[2], -1))
	require.InDelta(t, math.Ln2, entropy, 1e-12)
	require.Equal(t, []float64{0.5, -0.5, 0}, LogitGradient(logProbs, entropy, 0, 1, 0))
}
