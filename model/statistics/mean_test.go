package statistics

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// Points known from tables.
func TestTQuantile(t *testing.T) {
	for _, c := range []struct {
		probability float64
		freedom     int
		want        float64
	}{
		{0.975, 1, 12.706204736}, {0.975, 2, 4.302652730}, {0.975, 3, 3.182446305}, {0.975, 4, 2.776445105},
		{0.975, 5, 2.570581836}, {0.975, 10, 2.228138852}, {0.975, 30, 2.042272456}, {0.975, 100, 1.983971519},
		{0.95, 2, 2.919985580}, {0.95, 9, 1.833112933}, {0.995, 4, 4.604094871}, {0.995, 20, 2.845339710},
		{0.9995, 1, 636.619248769}, {0.9, 6, 1.439755747}, {0.025, 4, -2.776445105}, {0.5, 7, 0},
	} {
		require.InDelta(t, c.want, TQuantile(c.probability, c.freedom), 1e-8*max(1, c.want), "%v of %d", c.probability, c.freedom)
	}
	require.InDelta(t, Z95, TQuantile(0.975, 2_000_000), 3e-6, "the normal distribution's in the limit")
}

// Against the closed forms of one and two degrees of freedom.
func TestTQuantileClosedForms(t *testing.T) {
	for _, p := range []float64{0.0001, 0.1, 0.4, 0.5001, 0.6, 0.9, 0.975, 0.999, 0.9999} {
		require.InEpsilon(t, math.Tan(math.Pi*(p-0.5)), TQuantile(p, 1), 1e-10)
		require.InEpsilon(t, (2*p-1)*math.Sqrt(2/(4*p*(1-p))), TQuantile(p, 2), 1e-10)
	}
	for _, p := range []float64{0, 1, -1, 2, math.NaN()} {
		require.True(t, math.IsNaN(TQuantile(p, 3)))
	}
	require.True(t, math.IsNaN(TQuantile(0.9, 0)))
}

// Against the density, integrated by Simpson's rule.
func TestTWithin(t *testing.T) {
	for _, freedom := range []int{1, 2, 3, 4, 5, 8, 13, 50, 51, 1000} {
		nu := float64(freedom)
		upper, _ := math.Lgamma((nu + 1) / 2)
		lower, _ := math.Lgamma(nu / 2)
		density := func(x float64) float64 {
			return math.Exp(upper-lower-(nu+1)/2*math.Log1p(x*x/nu)) / math.Sqrt(nu*math.Pi)
		}
		for _, end := range []float64{0.1, 1, 2.5, 6} {
			const steps = 4000
			h := end / steps
			sum := density(0) + density(end)
			for i := 1; i < steps; i++ {
				sum += density(float64(i)*h) * float64(2+2*(i%2))
			}
			require.InDelta(t, 2*sum*h/3, tWithin(end, freedom), 1e-11, "%v of %d", end, freedom)
		}
	}
}

func TestMean(t *testing.T) {
	e := Mean([]float64{0.91, 0.95, 0.87}, 0.95)
	require.Equal(t, 3, e.N)
	require.InDelta(t, 0.91, e.Mean, 1e-15)
	require.InDelta(t, 0.04, e.Deviation, 1e-15)
	require.InDelta(t, 0.91-4.302652730*0.04/math.Sqrt(3), e.Low, 1e-9)
	require.InDelta(t, 0.91+4.302652730*0.04/math.Sqrt(3), e.High, 1e-9)
	wide := Mean([]float64{1, 2, 3, 4, 5}, 0.99)
	require.InDelta(t, 3-4.604094871*math.Sqrt(0.5), wide.Low, 1e-8)

	equal := Mean([]float64{0.1, 0.1, 0.1}, 0.95)
	require.Equal(t, Estimate{N: 3, Mean: 0.1, Low: 0.1, High: 0.1}, equal)
	one := Mean([]float64{7}, 0.95)
	require.Equal(t, 7.0, one.Mean)
	require.True(t, math.IsNaN(one.Deviation) && math.IsNaN(one.Low) && math.IsNaN(one.High))
	require.True(t, math.IsNaN(Mean(nil, 0.95).Mean))
	for _, confidence := range []float64{0, 1, -0.5, math.NaN()} {
		e := Mean([]float64{1, 2}, confidence)
		require.Equal(t, 1.5, e.Mean)
		require.Greater(t, e.Deviation, 0.7)
		require.True(t, math.IsNaN(e.Low) && math.IsNaN(e.High), confidence)
	}
}
