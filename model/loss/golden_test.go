package loss

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/golden"
)

// tolerance is how far verl's numbers, of float32 and rounded to 7 places, may be.
const tolerance = 1e-5

// goldenCase is one of verl's; all tensors are [rows, tokens].
type goldenCase struct {
	Mask       [][]float64
	LossInputs struct {
		Old        [][]float64 `json:"old_logprob"`
		New        [][]float64 `json:"new_logprob"`
		Ref        [][]float64 `json:"ref_logprob"`
		Advantages [][]float64
	} `json:"loss_inputs"`
	Loss  map[string]float64
	Value struct {
		Values    [][]float64 `json:"vpreds"`
		OldValues [][]float64 `json:"old_values"`
		Returns   [][]float64
		Clip      float64 `json:"cliprange"`
		Loss      float64
	}
	Entropy struct {
		Logits [][][]float64 // [rows, tokens, vocabulary]
		Mean   float64
	}
}

func (c goldenCase) sampled() [][]bool {
	mask := make([][]bool, len(c.Mask))
	for row, tokens := range c.Mask {
		for _, m := range tokens {
			mask[row] = append(mask[row], m != 0)
		}
	}
	return mask
}

func (c goldenCase) batch() PolicyBatch {
	in := c.LossInputs
	return PolicyBatch{LogProbs: in.New, OldLogProbs: in.Old, RefLogProbs: in.Ref, Advantages: in.Advantages, Mask: c.sampled()}
}

func goldenCases(t *testing.T) []goldenCase {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(golden.Folder(t, "rl", "rl.json", "../credit/testdata"), "rl.json"))
	require.NoError(t, err)
	var file struct{ Cases []goldenCase }
	require.NoError(t, json.Unmarshal(content, &file))
	require.NotEmpty(t, file.Cases)
	return file.Cases
}

// The keys say the bounds and the aggregation. verl's dual clip is on, at 3.
func TestPolicyGolden(t *testing.T) {
	aggregations := map[string]Aggregation{
		"token-mean": TokenMean, "seq-mean-token-sum": SeqMeanTokenSum, "seq-mean-token-mean": SeqMeanTokenMean,
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
			o := PolicyOptions{Clips: []Clip{clip}, DualClip: 3, Aggregation: TokenMean}
			if parts[0] == "clipfrac" {
				l, err := Policy(c.batch(), o)
				require.NoError(t, err)
				require.InDelta(t, want, l.ClipFraction, tolerance, "case %d, %s", i, key)
				fractions++
				continue
			}
			require.Len(t, parts, 4, key)
			require.Contains(t, aggregations, parts[3])
			o.Aggregation = aggregations[parts[3]]
			l, err := Policy(c.batch(), o)
			require.NoError(t, err)
			require.InDelta(t, want, l.Policy, tolerance, "case %d, %s", i, key)
			require.Equal(t, l.Policy, l.Loss)
			losses++
		}
		require.Positive(t, losses, "case %d", i)
		require.Positive(t, fractions, "case %d", i)
	}
}

func TestKLGolden(t *testing.T) {
	for i, c := range goldenCases(t) {
		for name, e := range map[string]KLEstimator{"kl": K1, "abs": KAbs, "mse": K2, "low_var_kl": K3} {
			l, err := Policy(c.batch(), PolicyOptions{Clips: []Clip{{}}, Aggregation: TokenMean, KLCoefficient: 1, KLEstimator: e})
			require.NoError(t, err)
			want, ok := c.Loss["kl_"+name]
			require.True(t, ok)
			require.InDelta(t, want, l.KL, tolerance, "case %d, %s", i, name)
		}
	}
}

func TestValueGolden(t *testing.T) {
	for i, c := range goldenCases(t) {
		v := c.Value
		l, err := Value(ValueBatch{Values: v.Values, OldValues: v.OldValues, Returns: v.Returns, Mask: c.sampled()},
			ValueOptions{Clip: v.Clip, Aggregation: TokenMean})
		require.NoError(t, err)
		require.InDelta(t, v.Loss, l.Loss, tolerance, "case %d", i)
	}
}

func TestEntropyGolden(t *testing.T) {
	for i, c := range goldenCases(t) {
		b := c.batch()
		b.Entropies = zeros(b.Mask)
		for row := range b.Entropies {
			for at := range b.Entropies[row] {
				_, b.Entropies[row][at] = Softmax(c.Entropy.Logits[row][at])
			}
		}
		l, err := Policy(b, PolicyOptions{Clips: []Clip{{}}, Aggregation: TokenMean})
		require.NoError(t, err)
		require.InDelta(t, c.Entropy.Mean, l.Entropy, tolerance, "case %d", i)
	}
}
