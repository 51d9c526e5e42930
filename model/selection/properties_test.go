package selection

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// methods are the names of all methods.
var methods = func() (names []string) {
	for _, m := range Methods {
		names = append(names, m.Name)
	}
	return names
}()

// Whatever the method: indexes ascend, each once; no dropped group has a better score
// than a kept one; and a flat group is not kept if flat ones are dropped.
func TestSelectKeepsTheBest(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 3))
		g := Groups{Rewards: make([][]float64, r.IntN(12))}
		for i := range g.Rewards {
			for range 1 + r.IntN(5) {
				g.Rewards[i] = append(g.Rewards[i], float64(r.IntN(3)))
			}
		}
		for _, method := range methods {
			for _, order := range []Order{Largest, Smallest} {
				o := Options{Method: method, Order: order, Value: []float64{0.25, 0.5, 1}[r.IntN(3)], DropFlat: r.IntN(2) == 0, Floor: r.Float64()}
				if method == "top_count" {
					o.Value = 2
				}
				got, err := Select(g, o)
				require.NoError(t, err)
				require.True(t, slices.IsSorted(got.Kept))
				kept := make([]bool, len(g.Rewards))
				for _, at := range got.Kept {
					require.False(t, kept[at])
					kept[at] = true
					require.False(t, o.DropFlat && got.Spreads[at] <= o.Floor)
				}
				for out := range kept {
					if kept[out] || o.DropFlat && got.Spreads[out] <= o.Floor {
						continue
					}
					for in := range kept {
						if !kept[in] {
							continue
						}
						better := got.Scores[out] > got.Scores[in]
						if order == Smallest {
							better = got.Scores[out] < got.Scores[in]
						}
						require.False(t, better, "%v %v", o, got)
						tied := method != "min_p" && got.Scores[out] == got.Scores[in]
						require.False(t, tied && out < in, "%v %v", o, got)
					}
				}
				again, err := Select(g, o)
				require.NoError(t, err)
				require.Equal(t, got, again)
			}
		}
	}
}

func TestVaried(t *testing.T) {
	require.Equal(t, []int{1, 3}, Varied([]float64{0, 1e-12, 0, 0.5}, 0))
	require.Equal(t, []int{3}, Varied([]float64{0, 1e-12, 0, 0.5}, 1e-10))
	require.Equal(t, []int{}, Varied(nil, 0))
}

func TestLossScale(t *testing.T) {
	for s, want := range map[Scaling]float64{ScaleNone: 1, ScaleLinear: 0.25, ScaleSqrt: 0.5} {
		got, err := LossScale(s, 2, 8)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for _, bad := range []struct {
		s            Scaling
		kept, groups int
	}{{"cubic", 1, 2}, {ScaleNone, 0, 0}, {ScaleNone, 3, 2}, {ScaleNone, -1, 2}} {
		_, err := LossScale(bad.s, bad.kept, bad.groups)
		require.ErrorIs(t, err, ErrInput)
	}
}

func TestSelectErrors(t *testing.T) {
	nan := math.NaN()
	g := Groups{Rewards: [][]float64{{0, 1}, {1, 1}}, Lengths: [][]float64{{1, nan}, {1, 1}}}
	for text, o := range map[string]Options{
		`method "best"`: {Method: "best"},
		`metric "luck"`: {Method: "all", Metric: "luck"},
		`order "up"`:    {Method: "all", Order: "up"},
		`method "top_fraction" with value 0, order "largest"`: {Method: "top_fraction"},
		`method "top_fraction" with value 1.5`:                {Method: "top_fraction", Value: 1.5},
		`method "top_count" with value 0.5`:                   {Method: "top_count", Value: 0.5},
		`method "top_count" with value 1.5`:                   {Method: "top_count", Value: 1.5},
		`method "top_count" with value +Inf`:                  {Method: "top_count", Value: math.Inf(1)},
		`method "top_p" with value NaN`:                       {Method: "top_p", Value: nan},
		`method "top_p_softmax" with value 1.1`:               {Method: "top_p_softmax", Value: 1.1},
		`method "min_p" with value 0, order "smallest"`:       {Method: "min_p", Order: Smallest},
		"Slack is -1, must be at least 0":                     {Method: "all", Slack: -1},
		"Floor is NaN, must be at least 0":                    {Method: "all", Floor: nan},
		`metric "entropy" of 0 groups, rewards of 2`:          {Method: "all", Metric: "entropy"},
	} {
		t.Run(text, func(t *testing.T) {
			_, err := Select(g, o)
			require.ErrorIs(t, err, ErrInput)
			require.ErrorContains(t, err, text)
		})
	}
	_, err := Select(g, Options{Method: "all", Metric: "length"})
	require.EqualError(t, err, "unusable rewards: group 0, member 1 has length NaN")
	_, err = Select(Groups{Rewards: [][]float64{{nan}}}, Options{Method: "all"})
	require.ErrorIs(t, err, ErrRewards)
}
