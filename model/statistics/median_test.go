package statistics

import (
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
		require.Equal(t, c.want, Median(c.xs), "%v", c.xs)
	}
	xs := []float64{2, 1}
	Median(xs)
	require.Equal(t, []float64{2, 1}, xs, "the caller's order stays")
}

func TestMedianOf(t *testing.T) {
	length := func(s string) float64 { return float64(len(s)) }
	require.Equal(t, 2.0, MedianOf([]string{"abcd", "a", "ab"}, length))
	require.Zero(t, MedianOf(nil, length))
}
