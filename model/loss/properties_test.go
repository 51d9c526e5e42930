package loss

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/draw"
)

// At the parameters that scored the batch every ratio is 1: nothing is clipped,
// the KLs are 0, and the loss is the weighted advantage.
func TestOnPolicy(t *testing.T) {
	for _, ratio := range []Ratio{"", TokenRatio, SequenceRatio} {
		b := randomBatch(5, 9, 0)
		b.OldLogProbs = b.LogProbs
		l, err := Policy(b, PolicyOptions{Ratio: ratio, Clips: []Clip{{0, 0}}, DualClip: 3, Aggregation: TokenMean})
		require.NoError(t, err)
		require.Zero(t, l.RatioMax)
		require.Zero(t, l.ClipFraction)
		require.Zero(t, l.DualClipFraction)
		require.Zero(t, l.BehaviourKL)
		require.Zero(t, l.ApproxKL)
		weights, err := Weights(b.Mask, b.RowWeights, TokenMean, 0)
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

// What lies at tokens that were not sampled is not read.
func TestMaskedIsNotRead(t *testing.T) {
	b := randomBatch(6, 9, 0.5)
	o := PolicyOptions{Clips: []Clip{{0.2, 0.28}}, Aggregation: TokenMean, EntropyCoefficient: 0.1, KLCoefficient: 0.1, KLEstimator: K3}
	want, err := Policy(b, o)
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
	got, err := Policy(b, o)
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
		l, err := Policy(b, PolicyOptions{Clips: []Clip{{0.2, 0.28}}, Aggregation: TokenMean})
		require.NoError(t, err)
		require.False(t, finite(l.Loss))
	}
}

// The log-ratio is held within bounds, and the gradient is 0 beyond them.
func TestLogRatioIsBounded(t *testing.T) {
	for _, c := range []struct {
		ratio Ratio
		most  float64
	}{{TokenRatio, 20}, {SequenceRatio, 10}} {
		b := PolicyBatch{LogProbs: [][]float64{{0}}, OldLogProbs: [][]float64{{-500}}, Advantages: [][]float64{{-1}}, Mask: [][]bool{{true}}}
		l, err := Policy(b, PolicyOptions{Ratio: c.ratio, Clips: []Clip{{0.2, 0.28}}, Aggregation: TokenMean})
		require.NoError(t, err)
		require.InDelta(t, math.Exp(c.most), l.Loss, 1e-3)
		require.Zero(t, l.ByLogProb[0][0])
	}
}

// Every weighting but the constant one averages: of equal losses, the loss.
func TestWeightsSum(t *testing.T) {
	b := randomBatch(7, 9, 0)
	for a, want := range map[Aggregation]float64{TokenMean: 1, SeqMeanTokenMean: 1} {
		weights, err := Weights(b.Mask, b.RowWeights, a, 0)
		require.NoError(t, err)
		var sum float64
		for _, row := range weights {
			for _, w := range row {
				sum += w
			}
		}
		require.InDelta(t, want, sum, 1e-12)
	}
	for _, mask := range [][][]bool{nil, {{false}}} {
		weights, err := Weights(mask, nil, TokenMean, 0)
		require.NoError(t, err)
		require.Equal(t, zeros(mask), weights)
	}
	l, err := Policy(PolicyBatch{LogProbs: [][]float64{{0}}, OldLogProbs: [][]float64{{0}}, Advantages: [][]float64{{0}}, Mask: [][]bool{{false}}},
		PolicyOptions{Clips: []Clip{{}}, Aggregation: TokenMean})
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

func TestMinibatches(t *testing.T) {
	a := draw.Address{Seed: 7, Branch: 1, Iteration: 3}
	got, err := Minibatches(10, 4, 3, a)
	require.NoError(t, err)
	require.Len(t, got, 9)
	for epoch := range 3 {
		var all []int
		for i, items := range got[3*epoch : 3*epoch+3] {
			require.Len(t, items, []int{4, 4, 2}[i])
			require.True(t, slices.IsSorted(items))
			all = append(all, items...)
		}
		slices.Sort(all)
		require.Equal(t, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, all)
	}
	require.NotEqual(t, got[:3], got[3:6])
	// The order is pinned: a change here changes every run.
	require.Equal(t, [][]int{{1, 4, 7, 8}, {0, 2, 5, 6}, {3, 9}}, got[:3])

	again, err := Minibatches(10, 4, 3, draw.Address{Seed: 7, Branch: 1, Iteration: 3, Purpose: draw.Sample, Step: 5})
	require.NoError(t, err)
	require.Equal(t, got, again)
	other, err := Minibatches(10, 4, 3, draw.Address{Seed: 7, Branch: 1, Iteration: 4})
	require.NoError(t, err)
	require.NotEqual(t, got, other)

	whole, err := Minibatches(3, 8, 2, a)
	require.NoError(t, err)
	require.Equal(t, [][]int{{0, 1, 2}, {0, 1, 2}}, whole)
	for _, bad := range [][3]int{{0, 1, 1}, {1, 0, 1}, {1, 1, 0}} {
		_, err := Minibatches(bad[0], bad[1], bad[2], a)
		require.ErrorIs(t, err, ErrInput)
	}
}
