package loss

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/golden"
)

// worked reads the examples of testdata, worked out by hand in its comments.
func worked(t *testing.T, into any) {
	t.Helper()
	content, err := os.ReadFile("testdata/worked.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(content, into))
}

func near(t *testing.T, want, got [][]float64) {
	t.Helper()
	require.Len(t, got, len(want))
	for row := range want {
		golden.Near(t, want[row], got[row], 1e-9, "row %d", row)
	}
}

func TestWeightsWorked(t *testing.T) {
	var e struct {
		Weights struct {
			Mask       [][]bool
			RowWeights []float64 `json:"row_weights"`
			Divisor    float64
			Want       map[Aggregation][][]float64
		}
	}
	worked(t, &e)
	require.Len(t, e.Weights.Want, 4)
	for a, want := range e.Weights.Want {
		got, err := Weights(e.Weights.Mask, e.Weights.RowWeights, a, e.Weights.Divisor)
		require.NoError(t, err)
		near(t, want, got)
	}
}

func TestExplainedVarianceWorked(t *testing.T) {
	var e struct {
		ExplainedVariance struct {
			Values, Returns [][]float64
			Mask            [][]bool
			Want            float64
		} `json:"explained_variance"`
	}
	worked(t, &e)
	x := e.ExplainedVariance
	got, err := ExplainedVariance(x.Values, x.Returns, x.Mask)
	require.NoError(t, err)
	require.InDelta(t, x.Want, got, 1e-12)
	got, err = ExplainedVariance([][]float64{{1}}, [][]float64{{2}}, [][]bool{{true}})
	require.NoError(t, err)
	require.Zero(t, got)
}

func TestKLWorked(t *testing.T) {
	var e struct {
		KL struct {
			Cases []struct {
				Estimator KLEstimator
				D, KL, By float64
			}
		}
	}
	worked(t, &e)
	require.NotEmpty(t, e.KL.Cases)
	for _, c := range e.KL.Cases {
		kl, by := c.Estimator.Estimate(c.D-1, -1)
		require.InDelta(t, c.KL, kl, 1e-12, "%s at %v", c.Estimator, c.D)
		require.InDelta(t, c.By, by, 1e-12, "%s at %v", c.Estimator, c.D)
	}
	kl, by := KLEstimator("k4").Estimate(0, 0)
	require.True(t, math.IsNaN(kl) && math.IsNaN(by))
}
