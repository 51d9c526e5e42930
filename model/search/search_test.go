package search

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/golden"
)

// tree draws rewards whose sums are exact. Some prefixes end early.
func tree(seed uint64, candidates, turns int) Rewards {
	return func(prefix []int) []float64 {
		at := seed
		for _, candidate := range prefix {
			at = 31*at + uint64(candidate) + 1
		}
		r := rand.New(rand.NewPCG(at, 1))
		if len(prefix) == turns || len(prefix) > 0 && r.Float64() < .2 {
			return nil
		}
		rewards := make([]float64, candidates)
		for i := range rewards {
			rewards[i] = float64(r.IntN(9)-4) / 4
		}
		return rewards
	}
}

// best is the largest return below a prefix, by going through all of them.
func best(after Rewards, prefix Prefix) float64 {
	rewards := after(prefix.Path)
	if len(rewards) == 0 {
		return prefix.Score
	}
	most := math.Inf(-1)
	for candidate, r := range rewards {
		path := append(append([]int(nil), prefix.Path...), candidate)
		most = max(most, best(after, Prefix{path, prefix.Score + r}))
	}
	return most
}

func TestSearchesFindTheBest(t *testing.T) {
	for seed := range uint64(50) {
		after := tree(seed, 3, 4)
		want := best(after, Prefix{})
		ahead, _, err := Lookahead(after, 4, 4)
		require.NoError(t, err)
		require.Equal(t, want, ahead.Score, "a lookahead to the end finds the best leaf")
		trace, err := Beam(after, 81, 4)
		require.NoError(t, err)
		require.Equal(t, want, trace[len(trace)-1][0].Score, "so does a beam that holds all")

		greedy, _, err := Lookahead(after, 1, 4)
		require.NoError(t, err)
		narrow, err := Beam(after, 1, 4)
		require.NoError(t, err)
		require.Equal(t, greedy, narrow[len(narrow)-1][0], "a beam of one is greedy")

		plain := tree(seed, 1, 4)
		rolled, err := Beam(plain, 2, 4)
		require.NoError(t, err)
		for k, beam := range rolled {
			require.Len(t, beam, 1, "turn %d: one candidate is a plain rollout", k)
			require.Equal(t, make([]int, k+1), beam[0].Path)
		}
	}
}

// A finished prefix competes with its score; among equals the parent comes first, then the child.
func TestWiden(t *testing.T) {
	beam := []Prefix{{[]int{0}, 1}, {[]int{1}, 1}, {[]int{2}, .5}}
	got, err := Widen(beam, [][]float64{{0, .5}, nil, {.5, 1}}, 5)
	require.NoError(t, err)
	require.Equal(t, []Prefix{{[]int{0, 1}, 1.5}, {[]int{2, 1}, 1.5}, {[]int{0, 0}, 1}, {[]int{1}, 1}, {[]int{2, 0}, 1}}, got)
	got, err = Widen(beam, [][]float64{nil, nil, nil}, 2)
	require.NoError(t, err)
	require.Equal(t, beam[:2], got)
	trace, err := Beam(func([]int) []float64 { return nil }, 1, 3)
	require.NoError(t, err)
	require.Empty(t, trace, "nothing to search")
}

func TestExtremes(t *testing.T) {
	kept, err := Extremes([]float64{0, 1, 2, 9}, .6)
	require.NoError(t, err)
	require.Equal(t, []int{0, 1, 3}, kept, "3 of 4: the share is rounded up")
	kept, err = Extremes([]float64{1, 1, 1}, .5)
	require.NoError(t, err)
	require.Equal(t, []int{0, 1}, kept, "equal ones rank by index")
	kept, err = Extremes(nil, .5)
	require.NoError(t, err)
	require.Empty(t, kept)
}

// Labels that a line separates have a finite fit, because the weight has a penalty.
func TestFitRecovery(t *testing.T) {
	var x []float64
	var saved []bool
	for i := range leastLabels {
		x, saved = append(x, float64(i)/10), append(saved, i < 5)
	}
	fit, err := FitRecovery(x, saved)
	require.NoError(t, err)
	require.True(t, fit.Fitted)
	require.Negative(t, fit.Weight)
	w, b := fit.step(x, saved)
	require.InDelta(t, 0, math.Abs(w)+math.Abs(b), 1e-12, "the gradient is 0 at the fit")
	for _, off := range []Recovery{{Weight: 1e-3}, {Weight: -1e-3}, {Bias: 1e-3}, {Bias: -1e-3}} {
		other := Recovery{Weight: fit.Weight + off.Weight, Bias: fit.Bias + off.Bias, Fitted: true}
		require.Greater(t, other.cost(x, saved), fit.cost(x, saved))
	}
	// Few successes among a whole window of failures at one place, in a few steps.
	for range 10_000 {
		x, saved = append(x, 1), append(saved, false)
	}
	fit, err = FitRecovery(x, saved)
	require.NoError(t, err)
	w, b = fit.step(x, saved)
	require.InDelta(t, 0, math.Abs(w)+math.Abs(b), 1e-9)

	for name, labels := range map[string][]bool{"too few": make([]bool, 3), "all alike": make([]bool, 20)} {
		if name == "too few" {
			labels[0] = true
		}
		fit, err := FitRecovery(make([]float64, len(labels)), labels)
		require.NoError(t, err)
		require.Equal(t, Recovery{}, fit, name)
		require.Equal(t, 1.0, fit.At(.5), name)
		q, err := fit.Pivots(4, 4, 0)
		require.NoError(t, err)
		require.Equal(t, []float64{.25, .25, .25, .25}, q, "uniform")
		q, err = fit.Pivots(4, 3, 1)
		require.NoError(t, err)
		golden.Near(t, []float64{1. / 6, 2. / 6, 3. / 6}, q, 1e-15, "the last turn is no pivot")
	}
}

func TestPick(t *testing.T) {
	q := []float64{.25, .5, .25}
	for draw, want := range map[float64]int{0: 0, .2499: 0, .25: 1, .75: 2, .999: 2} {
		got, err := Pick(q, draw)
		require.NoError(t, err)
		require.Equal(t, want, got, "draw %v", draw)
	}
	got, err := Pick([]float64{.3, .3}, .9)
	require.NoError(t, err)
	require.Equal(t, 1, got)
	require.False(t, Saved(nil, 0))
	require.False(t, Saved([]float64{0, 0}, 0))
	require.True(t, Saved([]float64{0, .1}, 0))
}

func TestSearchErrors(t *testing.T) {
	nan := math.NaN()
	bad := func([]int) []float64 { return []float64{nan} }
	second := func(prefix []int) []float64 {
		if len(prefix) == 0 {
			return []float64{1, 2}
		}
		return bad(prefix)
	}
	widen := func(width int, rewards ...[]float64) error {
		_, err := Widen([]Prefix{{}}, rewards, width)
		return err
	}
	ahead := func(after Rewards, depth int) error {
		_, _, err := Lookahead(after, depth, 3)
		return err
	}
	of := func(_ any, err error) error { return err }
	branches := func(r Uncertainty, w, p float64) error {
		_, _, err := Branches([]Uncertainty{r}, w, p)
		return err
	}
	for want, err := range map[string]error{
		"a beam of width 0":                         widen(0, nil),
		"rewards after 2 prefixes, a beam of 1":     widen(1, nil, nil),
		"the reward after prefix [], candidate 0":   widen(1, []float64{nan}),
		"a lookahead of depth 0":                    ahead(bad, 0),
		"the value after prefix [], candidate 0":    ahead(second, 2),
		"the value after prefix [1], candidate 0":   ahead(second, 1),
		"the best of no returns":                    of(BestOfN(nil)),
		"return 1 is NaN":                           of(BestOfN([]float64{0, nan})),
		"return 0 is NaN":                           of(Extremes([]float64{nan}, 1)),
		"the share of members kept is 2":            of(Extremes(nil, 2)),
		"1 positions of pivots, 0 labels":           of(FitRecovery([]float64{1}, nil)),
		"pivot 0 is at 2":                           of(FitRecovery([]float64{2}, []bool{true})),
		"4 candidates for a pivot in 3 segments":    of(Recovery{}.Pivots(3, 4, 1)),
		"0 candidates for a pivot in 3 segments":    of(Recovery{}.Pivots(3, 0, 1)),
		"gamma is -1":                               of(Recovery{}.Pivots(3, 3, -1)),
		"the weights of the pivots sum to 0":        of(Recovery{}.Pivots(2, 1, 1e9)),
		"draw 1 from a distribution over 1":         of(Pick([]float64{1}, 1)),
		"draw 0 from a distribution over 0":         of(Pick(nil, 0)),
		"an entropy weight of NaN":                  branches(Uncertainty{}, nan, .5),
		"a probability of 2":                        branches(Uncertainty{}, .2, 2),
		"row 0 has entropies of NaN and 0":          branches(Uncertainty{First: nan}, .2, .5),
		"row 0 has entropies of 0 and 0, and draws": branches(Uncertainty{Draw: 1}, .2, .5),
	} {
		require.ErrorIs(t, err, ErrInput, want)
		require.ErrorContains(t, err, want)
	}
	_, err := Beam(bad, 1, 3)
	require.ErrorIs(t, err, ErrInput)
}

// Certainty decides between rows with the same draw, and the value stays between 0 and 1.
func TestBranches(t *testing.T) {
	compared, branch, err := Branches([]Uncertainty{
		{First: .2, Now: .7, Draw: .55}, {First: .7, Now: .2, Draw: .45}, {First: 0, Now: 1, Draw: .1}, {First: 1, Now: 0, Draw: .9},
	}, .2, .5)
	require.NoError(t, err)
	golden.Near(t, []float64{.45, .55, 0, 1}, compared, 1e-15)
	require.Equal(t, []bool{true, false, true, false}, branch)
}
