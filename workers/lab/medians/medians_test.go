package medians

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		xs   []float64
		want float64
	}{
		{nil, 0},
		{[]float64{3}, 3},
		{[]float64{9, 1, 2}, 2},
		{[]float64{4, 1, 2, 9}, 3},
	} {
		require.Equal(t, c.want, Of(c.xs), "%v", c.xs)
	}
	xs := []float64{2, 1}
	Of(xs)
	require.Equal(t, []float64{2, 1}, xs, "the caller's order stays")
}

func TestMedianOf(t *testing.T) {
	length := func(s string) float64 { return float64(len(s)) }
	require.Equal(t, 2.0, By([]string{"abcd", "a", "ab"}, length))
	require.Zero(t, By(nil, length))
}

func TestMedianInterval(t *testing.T) {
	upTo := func(n int) []float64 {
		out := make([]float64, n)
		for i := range out {
			out[i] = float64(n - i)
		}
		return out
	}
	// The ranks are those of published tables of the sign test, at 95 %.
	for n, want := range map[int][2]float64{6: {1, 6}, 8: {1, 8}, 9: {2, 8}, 10: {2, 9}, 20: {6, 15}, 30: {10, 21}, 50: {18, 33}, 100: {40, 61}} {
		low, high, ok := Interval(upTo(n), 0.95)
		require.True(t, ok, "%d values", n)
		require.Equal(t, want, [2]float64{low, high}, "%d values", n)
	}
	low, high, ok := Interval(upTo(10000), 0.95)
	require.True(t, ok)
	require.InDelta(t, 5000.5-98, low, 2)
	require.InDelta(t, 5000.5+98, high, 2)
	for _, n := range []int{0, 1, 5} {
		_, _, ok := Interval(upTo(n), 0.95)
		require.False(t, ok, "%d values", n)
	}
	for _, confidence := range []float64{1, 2, math.NaN()} {
		_, _, ok := Interval(upTo(30), confidence)
		require.False(t, ok, "confidence %v", confidence)
	}
}
