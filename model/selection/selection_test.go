package selection

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/golden"
)

func TestRewardStd(t *testing.T) {
	got, err := RewardStd([][]float64{{0, 1}, {0.15, 0.15, 0.15}, {1}, {}, {0, 0, 0, 1}})
	require.NoError(t, err)
	golden.Near(t, []float64{math.Sqrt(0.5), 0, 0, 0, 0.5}, got, 1e-15)
	require.Zero(t, got[1])
	_, err = RewardStd([][]float64{{0}, {1, math.NaN()}})
	require.ErrorIs(t, err, ErrRewards)
	require.EqualError(t, err, "unusable rewards: group 1, member 1 has NaN")
}

// TopFraction is the method top_fraction.
func TopFraction(scores []float64, keep float64) []int {
	return topFraction.Choose(scores, Options{Value: keep, Order: Largest}, len(scores))
}

func TestTopFraction(t *testing.T) {
	hundred := make([]float64, 100)
	for name, c := range map[string]struct {
		scores []float64
		keep   float64
		want   []int
	}{
		"quarter of eight":        {[]float64{0.1, 0.5, 0.2, 0.5, 0, 0.9, 0, 0}, 0.25, []int{1, 5}},
		"ties by the lower index": {[]float64{0, 0.5, 0.5, 0.5}, 0.5, []int{1, 2}},
		"at least one":            {[]float64{0, 0, 0}, 0.25, []int{0}},
		"rounds down":             {[]float64{1, 2, 3, 4, 5}, 0.5, []int{3, 4}},
		"all":                     {[]float64{1, 0}, 1, []int{0, 1}},
		"none there":              {nil, 0.5, []int{}},
		"product rounded low":     {hundred, 0.29, All(29)},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, TopFraction(c.scores, c.keep)) })
	}
	require.Equal(t, []int{0, 1, 2}, All(3))
}
