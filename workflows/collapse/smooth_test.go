package collapse

import (
	"maps"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/store/canon"
)

func TestSmooth(t *testing.T) {
	names := []string{"a", "b", "c", "d"}
	nan, inf := canon.Float(math.NaN()), canon.Float(math.Inf(1))
	one := Smooth(nil, Metrics{"a": 1, "b": nan, "x": 7}, names, 0.75)
	require.Equal(t, Metrics{"a_ema": 1}, one, "the first value begins; what is not asked for stays away")
	two := Smooth(Metrics{"a_ema": 1, "a": 9, "b_ema": 2, "c_ema": 5, "d_ema": nan}, Metrics{"a": 3, "b": inf, "d": 4}, names, 0.75)
	require.Equal(t, Metrics{"a_ema": 1.5, "b_ema": 2, "c_ema": 5, "d_ema": 4}, two)
	require.Len(t, Curves(), 13)
}

// A branch that continues from an iteration's published metrics has the curve it would
// have had.
func TestSmoothGoesOnFromMetrics(t *testing.T) {
	var published []Metrics
	previous := Metrics{}
	for i := range 20 {
		m := Metrics{"a": canon.Float(math.Sin(float64(i)))}
		maps.Copy(m, Smooth(previous, m, []string{"a"}, DefaultDecay))
		published = append(published, m)
		previous = m
	}
	require.Equal(t, published[11]["a_ema"], Smooth(published[10], Metrics{"a": published[11]["a"]}, []string{"a"}, DefaultDecay)["a_ema"])
}
