package statistics

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// The examples of Newcombe 1998, Two-Sided Confidence Intervals for the Single
// Proportion, table I, method 3.
func TestWilson(t *testing.T) {
	for _, c := range []struct{ successes, trials, low, high float64 }{
		{81, 263, 0.2553, 0.3662},
		{15, 148, 0.0624, 0.1605},
		{0, 20, 0, 0.1611},
		{1, 29, 0.0061, 0.1718},
		{5, 10, 0.2366, 0.7634},
	} {
		low, high := Wilson(c.successes, c.trials, Z95)
		require.InDelta(t, c.low, low, 5e-5)
		require.InDelta(t, c.high, high, 5e-5)
	}
}

// The ends are where the rate seen is z standard errors away; the interval of the
// failures is the other way round.
func TestWilsonIsTheScoreInterval(t *testing.T) {
	for _, n := range []float64{1, 2, 7.5, 256, 1e6, 1e12} {
		for _, share := range []float64{0, 0.001, 0.3, 0.5, 1} {
			for _, z := range []float64{0.1, Z95, 4} {
				low, high := Wilson(share*n, n, z)
				require.True(t, 0 <= low && low <= share && share <= high && high <= 1)
				for _, p := range []float64{low, high} {
					if p > 0 && 1-p > 1e-6 {
						require.InEpsilon(t, z, math.Abs(share-p)/math.Sqrt(p*(1-p)/n), 1e-4)
					}
				}
				l, h := Wilson(n-share*n, n, z)
				require.InDelta(t, low, 1-h, 1e-12)
				require.InDelta(t, high, 1-l, 1e-12)
			}
		}
	}
	low, high := Wilson(0, 0, Z95)
	require.Equal(t, []float64{0, 1}, []float64{low, high})
	low, high = Wilson(256, 256, Z95)
	require.Equal(t, 1.0, high)
	require.InDelta(t, 256/(256+Z95*Z95), low, 1e-12)
}

func TestWilsonRefuses(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range [][3]float64{{-1, 5, 1}, {6, 5, 1}, {nan, 5, 1}, {1, nan, 1}, {1, inf, 1}, {1, 5, 0}, {1, 5, nan}, {1, 5, inf}} {
		low, high := Wilson(c[0], c[1], c[2])
		require.True(t, math.IsNaN(low) && math.IsNaN(high), c)
	}
}

func TestEffectiveTrials(t *testing.T) {
	for name, c := range map[string]struct {
		successes, samples []int
		want               float64
	}{
		"one of each":                         {[]int{1, 0, 0, 1, 1}, []int{1, 1, 1, 1, 1}, 5},
		"one of each, all solved":             {[]int{1, 1}, []int{1, 1}, 2},
		"alike in every instance":             {[]int{4, 0, 4, 0}, []int{4, 4, 4, 4}, 4},
		"all solved: nothing is known":        {[]int{4, 4, 4}, []int{4, 4, 4}, 3},
		"as different as they can be":         {[]int{2, 2, 2}, []int{4, 4, 4}, 12},
		"one instance":                        {[]int{2}, []int{4}, 1},
		"none":                                {nil, nil, 0},
		"by hand: between 2/3, within 2/3":    {[]int{2, 1, 0, 1}, []int{2, 2, 2, 2}, 8 / (1 + 1.0/7)},
		"by hand, other sizes: correlation 1": {[]int{3, 0}, []int{3, 1}, 4 / 2.5},
	} {
		require.InDelta(t, c.want, EffectiveTrials(c.successes, c.samples), 1e-12, name)
	}
	for _, c := range [][2][]int{{{1}, {1, 1}}, {{2}, {1}}, {{-1}, {1}}, {{0}, {0}}} {
		require.True(t, math.IsNaN(EffectiveTrials(c[0], c[1])))
		low, high := WilsonClustered(c[0], c[1], Z95)
		require.True(t, math.IsNaN(low) && math.IsNaN(high))
	}
}

func TestWilsonClustered(t *testing.T) {
	same := func(wantLow, wantHigh, low, high float64) {
		t.Helper()
		require.Equal(t, []float64{wantLow, wantHigh}, []float64{low, high})
	}
	wantLow, wantHigh := Wilson(3, 5, Z95)
	low, high := WilsonClustered([]int{1, 0, 0, 1, 1}, []int{1, 1, 1, 1, 1}, Z95)
	same(wantLow, wantHigh, low, high)
	// Copies of a sample add no information.
	low, high = WilsonClustered([]int{8, 0, 0, 8, 8}, []int{8, 8, 8, 8, 8}, Z95)
	require.InDelta(t, wantLow, low, 1e-12)
	require.InDelta(t, wantHigh, high, 1e-12)
	wantLow, wantHigh = Wilson(0, 0, Z95)
	low, high = WilsonClustered(nil, nil, Z95)
	same(wantLow, wantHigh, low, high)
	low, high = WilsonClustered([]int{8, 8}, []int{8, 8}, Z95)
	wantLow, wantHigh = Wilson(2, 2, Z95)
	same(wantLow, wantHigh, low, high)
}

// The clustered interval holds the rate about 95 times of 100 where samples of an
// instance are alike; the plain one does not.
func TestCoverage(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	const trials, instances, samples = 2000, 64, 8
	all := make([]int, instances)
	for i := range all {
		all[i] = samples
	}
	clustered, plain := 0, 0
	for range trials {
		successes, sum := make([]int, instances), 0
		for i := range successes {
			// An instance is solved seldom or often: 0.4 on the whole.
			p := 0.1
			if r.Float64() < 0.375 {
				p = 0.9
			}
			for range samples {
				if r.Float64() < p {
					successes[i]++
				}
			}
			sum += successes[i]
		}
		if low, high := WilsonClustered(successes, all, Z95); low <= 0.4 && 0.4 <= high {
			clustered++
		}
		if low, high := Wilson(float64(sum), instances*samples, Z95); low <= 0.4 && 0.4 <= high {
			plain++
		}
	}
	require.InDelta(t, 0.95, float64(clustered)/trials, 0.02)
	require.Less(t, float64(plain)/trials, 0.75)
}
