package seeupo

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/credit"
	"github.com/reprise-rl/reprise/model/credit/credittest"
	"github.com/reprise-rl/reprise/model/golden"
)

func TestComputeWorked(t *testing.T) { credittest.ComputeWorked(t, Entry) }

func TestSeeUPOGolden(t *testing.T) {
	type in struct {
		Groups   []int
		Returns  []float64
		Turns    int
		Before   [][][]float64 `json:"logprob_before_update"`
		After    [][][]float64 `json:"logprob_after_update"`
		ClipLow  float64       `json:"clip_low"`
		ClipHigh float64       `json:"clip_high"`
	}
	type out struct {
		Order      []int
		Base       []float64 `json:"advantage_base"`
		Ratio      [][]float64
		Used       [][]float64 `json:"advantage_used"`
		Correction [][]float64 `json:"correction_after"`
	}
	g := golden.ReadMethod[in, out](t, "seeupo")
	for _, c := range g.Cases {
		base, err := SeeUPO(c.In.Returns, c.In.Groups)
		require.NoError(t, err)
		golden.Near(t, c.Out.Base, base, g.Tolerance)
		m := slices.Repeat([]float64{1}, len(base))
		var order []int
		for k := c.In.Turns - 1; k >= 0; k-- {
			order = append(order, k)
			for row, a := range base {
				require.InDelta(t, c.Out.Used[k][row], float64(a*m[row]), g.Tolerance, "turn %d, row %d", k, row)
			}
			var ratios []float64
			m, ratios, err = SeeUPOCorrections(m, c.In.Before[k], c.In.After[k], c.In.ClipLow, c.In.ClipHigh)
			require.NoError(t, err)
			golden.Near(t, c.Out.Ratio[k], ratios, g.Tolerance, "turn %d", k)
			golden.Near(t, c.Out.Correction[k], m, g.Tolerance, "turn %d", k)
		}
		require.Equal(t, c.Out.Order, order)
	}
}

func TestSeeUPOWorked(t *testing.T) {
	// Ratios of 1.1 at the last turn and 1.3 at the one before.
	m := []float64{1, 1}
	for _, ratio := range []float64{1.1, 1.3} {
		var ratios []float64
		var err error
		m, ratios, err = SeeUPOCorrections(m, [][]float64{{-1, -2}, {}}, [][]float64{{-1 + math.Log(ratio), -2 + math.Log(ratio)}, nil}, .2, .2)
		require.NoError(t, err)
		golden.Near(t, []float64{ratio, 1}, ratios, 1e-12, "a row that has ended has no ratio")
	}
	golden.Near(t, []float64{1.2, 1}, m, 1e-12)

	got, err := SeeUPO([]float64{1, 1, 1 + 1e-7, 5}, []int{0, 0, 1, 1})
	require.NoError(t, err)
	require.Less(t, got[2], 0.0)
	flat, err := SeeUPO([]float64{1, 1 + 1e-7, 4, 4}, []int{0, 0, 1, 1})
	require.NoError(t, err)
	golden.Near(t, []float64{-5e-8, 5e-8, 0, 0}, flat, 1e-15, "hardly any deviation: nothing is divided")
	rewards := make([]float64, 40)
	rewards[39] = 1
	got, err = SeeUPO(rewards, make([]int, 40))
	require.NoError(t, err)
	require.Equal(t, 3.0, got[39], "6.2 deviations, clipped")
}

// Figures where a comparison turns: bounds that are just missed, met and passed.
func TestFiguresAtTheEdges(t *testing.T) {
	row := func(got []float64, err error) []float64 {
		require.NoError(t, err)
		return got
	}
	// Differences ±a and 0 have the deviation a. At 1e-6 nothing is divided; above, all is.
	for a, want := range map[float64]float64{.99e-6: .99e-6, 1e-6: 1e-6, 1.001e-6: 1, 2: 1} {
		golden.Near(t, []float64{want, -want, 0}, row(SeeUPO([]float64{a, -a, 0}, []int{0, 0, 0})), 1e-9*want, "%v", a)
	}
	// One of n that differs by 1 is (n−1)/√n deviations away: 2.846 of ten, 3.015 of eleven.
	for n, want := range map[int]float64{10: 9 / math.Sqrt(10), 11: 3} {
		for _, sign := range []float64{1, -1} {
			rewards := make([]float64, n)
			rewards[0] = sign
			require.InDelta(t, sign*want, row(SeeUPO(rewards, make([]int, n)))[0], 1e-12, "%v of %d", sign, n)
		}
	}
	// M ← clip(M·clip(q, .8, 1.25), .8, 1.25); a row without tokens in the turn keeps its M.
	before := [][]float64{{0}, {0}, {}, {0}, {0}, {0, 0}}
	after := [][]float64{{math.Log(.5)}, {math.Log(.5)}, {}, {math.Log(2)}, {math.Log(2)}, {math.Log(1.1), math.Log(.9)}}
	next, ratios, err := SeeUPOCorrections([]float64{1, 1.2, 1.15, 1, .9, 1}, before, after, .2, .25)
	require.NoError(t, err)
	golden.Near(t, []float64{.8, .96, 1.15, 1.25, 1.125, math.Sqrt(.99)}, next, 1e-12)
	golden.Near(t, []float64{.5, .5, 1, 2, 2, math.Sqrt(.99)}, ratios, 1e-12)
}

func TestErrors(t *testing.T) {
	nan := math.NaN()
	of := func(_ any, err error) error { return err }
	two := func(_, _ any, err error) error { return err }
	row := [][]float64{{1}}
	credittest.Refused(t, map[string]credittest.Refusal{
		"seeupo reward":     {of(SeeUPO([]float64{nan}, []int{0})), credit.ErrRewards, "row 0 has NaN"},
		"corrections rows":  {two(SeeUPOCorrections([]float64{1}, nil, row, .2, .2)), credit.ErrInput, "corrections of 1 rows, log-probs of 0 before and 1 after"},
		"corrections turn":  {two(SeeUPOCorrections([]float64{1}, row, [][]float64{{}}, .2, .2)), credit.ErrInput, "row 0 has 1 log-probs before and 0 after"},
		"corrections clip":  {two(SeeUPOCorrections(nil, nil, nil, 1, .2)), credit.ErrInput, "a clip of 1 below"},
		"corrections above": {two(SeeUPOCorrections(nil, nil, nil, .2, nan)), credit.ErrInput, "NaN above"},
		"corrections NaN":   {two(SeeUPOCorrections([]float64{1}, row, [][]float64{{nan}}, .2, .2)), credit.ErrNotFinite, "the correction of row 0"},
	})
}

func TestRanges(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	two := func(_, _ any, err error) error { return err }
	one := [][]float64{{1}}
	clip := func(low, high float64) error { return two(SeeUPOCorrections(nil, nil, nil, low, high)) }
	credittest.Ranges(t, map[string]credittest.Range{
		"low clip below 0":          {clip(-1e-9, .2), credit.ErrInput},
		"clips of 0":                {clip(0, 0), nil},
		"low clip below 1":          {clip(.995, .2), nil},
		"low clip 1":                {clip(1, .2), credit.ErrInput},
		"high clip below 0":         {clip(.2, -1e-9), credit.ErrInput},
		"high clip above 1":         {clip(.2, 3), nil},
		"high clip infinite":        {clip(.2, inf), credit.ErrInput},
		"a ratio that is infinite":  {two(SeeUPOCorrections([]float64{1}, one, [][]float64{{1000}}, .2, .2)), credit.ErrNotFinite},
		"a correction that is none": {two(SeeUPOCorrections([]float64{nan}, one, one, .2, .2)), credit.ErrNotFinite},
		"corrections of too many":   {two(SeeUPOCorrections([]float64{1}, one, nil, .2, .2)), credit.ErrInput},
	})
}
