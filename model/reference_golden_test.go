package model

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	refs "github.com/reprise-rl/reprise/model/golden"
	"github.com/reprise-rl/reprise/model/loss"
)

func goldenBatch(c refs.RL) PolicyBatch {
	in := c.LossInputs
	return PolicyBatch{LogProbs: in.New, OldLogProbs: in.Old, RefLogProbs: in.Ref, Advantages: in.Advantages, Mask: c.Sampled()}
}

func goldenCases(t *testing.T) []refs.RL { return refs.RLCases(t, "credit/testdata") }

// The keys say the bounds and the aggregation. verl's dual clip is on, at 3.
func TestPolicyGolden(t *testing.T) {
	aggregations := map[string]loss.Aggregation{
		"token-mean": loss.TokenMean, "seq-mean-token-sum": loss.SeqMeanTokenSum, "seq-mean-token-mean": loss.SeqMeanTokenMean,
	}
	for i, c := range goldenCases(t) {
		losses, fractions := 0, 0
		for key, want := range c.Loss {
			parts := strings.Split(key, "_")
			if parts[0] != "clip" && parts[0] != "clipfrac" {
				continue
			}
			require.GreaterOrEqual(t, len(parts), 3, key)
			var clip Clip
			_, err := fmt.Sscan(parts[1]+" "+parts[2], &clip.Low, &clip.High)
			require.NoError(t, err, key)
			o := PolicyOptions{Clips: []Clip{clip}, DualClip: 3, Aggregation: loss.TokenMean}
			if parts[0] == "clipfrac" {
				l, err := referencePolicy(goldenBatch(c), o)
				require.NoError(t, err)
				require.InDelta(t, want, l.ClipFraction, refs.RLTolerance, "case %d, %s", i, key)
				fractions++
				continue
			}
			require.Len(t, parts, 4, key)
			require.Contains(t, aggregations, parts[3])
			o.Aggregation = aggregations[parts[3]]
			l, err := referencePolicy(goldenBatch(c), o)
			require.NoError(t, err)
			require.InDelta(t, want, l.Policy, refs.RLTolerance, "case %d, %s", i, key)
			require.Equal(t, l.Policy, l.Loss)
			losses++
		}
		require.Positive(t, losses, "case %d", i)
		require.Positive(t, fractions, "case %d", i)
	}
}

func TestKLGolden(t *testing.T) {
	for i, c := range goldenCases(t) {
		for name, e := range map[string]loss.KLEstimator{"kl": loss.K1, "abs": loss.KAbs, "mse": loss.K2, "low_var_kl": loss.K3} {
			l, err := referencePolicy(goldenBatch(c), PolicyOptions{Clips: []Clip{{}}, Aggregation: loss.TokenMean, KLCoefficient: 1, KLEstimator: e})
			require.NoError(t, err)
			want, ok := c.Loss["kl_"+name]
			require.True(t, ok)
			require.InDelta(t, want, l.KL, refs.RLTolerance, "case %d, %s", i, name)
		}
	}
}

func TestValueGolden(t *testing.T) {
	for i, c := range goldenCases(t) {
		v := c.Value
		l, err := referenceValue(ValueBatch{Values: v.Values, OldValues: v.OldValues, Returns: v.Returns, Mask: c.Sampled()},
			ValueOptions{Clip: v.Clip, Aggregation: loss.TokenMean})
		require.NoError(t, err)
		require.InDelta(t, v.Loss, l.Loss, refs.RLTolerance, "case %d", i)
	}
}

func TestEntropyGolden(t *testing.T) {
	for i, c := range goldenCases(t) {
		b := goldenBatch(c)
		b.Entropies = loss.Zeros(b.Mask)
		for row := range b.Entropies {
			for at := range b.Entropies[row] {
				_, b.Entropies[row][at] = Softmax(c.Entropy.Logits[row][at])
			}
		}
		l, err := referencePolicy(b, PolicyOptions{Clips: []Clip{{}}, Aggregation: loss.TokenMean})
		require.NoError(t, err)
		require.InDelta(t, c.Entropy.Mean, l.Entropy, refs.RLTolerance, "case %d", i)
	}
}
