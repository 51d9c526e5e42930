package credit_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/credit"
)

func TestGRPO(t *testing.T) {
	byStd := func(epsilon float64) credit.Options { return credit.Options{NormalizeByStd: true, Epsilon: epsilon} }
	for name, c := range map[string]struct {
		rewards []float64
		groups  []int
		o       credit.Options
		want    []float64
	}{
		"equal rewards are exactly 0": {[]float64{0.1, 0.1, 0.1}, []int{0, 0, 0}, byStd(1e-6), []float64{0, 0, 0}},
		"groups may be mixed":         {[]float64{1, 5, 0, 7}, []int{3, 9, 3, 9}, credit.Options{Epsilon: 1e-6}, []float64{0.5, -1, -0.5, 1}},
		"one row keeps its reward":    {[]float64{3}, []int{0}, byStd(1), []float64{1.5}},
		"no rows":                     {nil, nil, byStd(1e-6), []float64{}},
		"no epsilon":                  {[]float64{0, 0, 1, 1}, []int{0, 0, 1, 1}, byStd(0), []float64{0, 0, 0, 0}},
		"a floor below the deviation": {[]float64{0, 2, 4}, []int{0, 0, 0}, credit.Options{NormalizeByStd: true, Floor: 2}, []float64{-1, 0, 1}},
		"a floor above it":            {[]float64{0, 2, 4}, []int{0, 0, 0}, credit.Options{NormalizeByStd: true, Floor: 4}, []float64{-0.5, 0, 0.5}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := credit.GRPO(c.rewards, c.groups, c.o)
			require.NoError(t, err)
			require.Equal(t, c.want, got)
		})
	}
	for _, bad := range []float64{math.NaN(), math.Inf(1)} {
		_, err := credit.GRPO([]float64{0, bad}, []int{0, 0}, credit.Options{})
		require.ErrorIs(t, err, credit.ErrRewards)
		_, err = credit.GRPO([]float64{0, 1}, []int{0, 0}, credit.Options{Epsilon: bad})
		require.ErrorIs(t, err, credit.ErrInput)
	}
	_, err := credit.GRPO([]float64{0}, nil, credit.Options{})
	require.ErrorIs(t, err, credit.ErrRewards)
	_, err = credit.GRPO([]float64{0}, []int{0}, credit.Options{Floor: -1})
	require.EqualError(t, err, "unusable input: Floor is -1, must be at least 0")
}
