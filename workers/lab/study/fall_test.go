package study

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// stretches joins runs of equal values.
func stretches(of ...any) []float64 {
	var out []float64
	for i := 0; i < len(of); i += 2 {
		for range of[i].(int) {
			out = append(out, of[i+1].(float64))
		}
	}
	return out
}

// slope goes from one value to another in so many equal steps.
func slope(n int, from, to float64) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = from + (to-from)*float64(i)/float64(n-1)
	}
	return out
}

func TestFindFall(t *testing.T) {
	for name, c := range map[string]struct {
		rewards []float64
		want    Fall
		fell    bool
	}{
		"none":            {rewards: stretches(60, 0.2)},
		"empty":           {},
		"too short":       {rewards: stretches(10, 0.2, 9, 0.0)},
		"just long":       {rewards: stretches(10, 0.2, 10, 0.0), fell: true, want: Fall{Begins: 10, Seen: 19, From: 0.2, To: 0}},
		"a rise":          {rewards: slope(60, 0.1, 0.25)},
		"less than tenth": {rewards: stretches(30, 0.2, 30, 0.181)},
		// Six low values take the mean of ten from 0.2 to 0.2 − 0.6 × 0.04 and three of
		// its standard errors away, five do not.
		"a cliff":    {rewards: stretches(30, 0.2, 30, 0.16), fell: true, want: Fall{Begins: 30, Seen: 35, From: 0.2, To: 0.16}},
		"a dip":      {rewards: stretches(30, 0.2, 2, 0.16, 30, 0.2)},
		"it is back": {rewards: stretches(30, 0.2, 20, 0.1, 30, 0.2), fell: true, want: Fall{Begins: 30, Seen: 35, From: 0.2, To: 0.1, Recovered: true}},
		"half back":  {rewards: stretches(30, 0.2, 20, 0.1, 30, 0.15), fell: true, want: Fall{Begins: 30, Seen: 35, From: 0.2, To: 0.1}},
	} {
		t.Run(name, func(t *testing.T) {
			got, fell := FindFall(c.rewards)
			require.Equal(t, c.fell, fell)
			require.Equal(t, c.want.Begins, got.Begins)
			require.Equal(t, c.want.Seen, got.Seen)
			require.InDelta(t, c.want.From, got.From, 1e-12)
			require.InDelta(t, c.want.To, got.To, 1e-12)
			require.Equal(t, c.want.Recovered, got.Recovered)
		})
	}
}

// TestFallOfASlowDecline: it begins where the reward has lost a tenth of its best.
func TestFallOfASlowDecline(t *testing.T) {
	rewards := append(stretches(20, 0.2), slope(41, 0.2, 0.1)...)
	f, fell := FindFall(rewards)
	require.True(t, fell)
	require.Less(t, rewards[f.Begins], 0.18)
	require.GreaterOrEqual(t, rewards[f.Begins-1], 0.18)
	require.InDelta(t, 0.1, f.To, 0.02)
}

// TestFallsAreNotChance: shares of 128 episodes of a policy that does not change
// fall in fewer than one of a hundred runs.
func TestFallsAreNotChance(t *testing.T) {
	s := Setting{Probability: 0.25}
	r := rand.New(rand.NewPCG(1, 2))
	for _, share := range []float64{0.1, 0.5, 0.9} {
		falls := 0
		for range 500 {
			rewards := make([]float64, 100)
			for n := range rewards {
				high, any := 0, 0
				for range 128 {
					if r.Float64() < 0.97 {
						any++
						if r.Float64() < share {
							high++
						}
					}
				}
				rewards[n] = s.Expected(float64(high)/128, float64(any)/128)
			}
			if _, fell := FindFall(rewards); fell {
				falls++
			}
		}
		require.Less(t, falls, 5, "share %g", share)
	}
}

func TestWindow(t *testing.T) {
	mean, variance := window([]float64{9, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, 10)
	require.InDelta(t, 5.5, mean, 1e-12)
	require.InDelta(t, 55.0/6, variance, 1e-12) // (n²−1)/12 · n/(n−1) of 1…10
	require.True(t, math.IsNaN(finiteMean(nil)))
}
