package search

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/golden"
)

// Ranges of arguments: just outside, at, and just inside.
func TestRanges(t *testing.T) {
	inf := math.Inf(1)
	of := func(_ any, err error) error { return err }
	branch := func(u Uncertainty, weight, probability float64) error {
		_, _, err := Branches([]Uncertainty{u}, weight, probability)
		return err
	}
	at := func(x float64) error { return of(FitRecovery([]float64{x}, []bool{true})) }
	pick := func(draw float64) error { return of(Pick([]float64{1}, draw)) }
	among := func(draw float64) error { return of(Among([]Place{{}}, draw)) }
	keep := func(share float64) error { return of(Extremes(nil, share)) }
	pivots := func(gamma float64, segments, candidates int) error {
		return of(Recovery{}.Pivots(segments, candidates, gamma))
	}
	leaves := func(leaves ...Leaf) error { return of(Places(leaves)) }
	under := math.Nextafter(1, 0)
	for name, c := range map[string]struct {
		err  error
		fits bool
	}{
		"probability below 0": {branch(Uncertainty{}, 1, -1e-9), false}, "probability 0": {branch(Uncertainty{}, 1, 0), true},
		"probability 1": {branch(Uncertainty{}, 1, 1), true}, "probability above 1": {branch(Uncertainty{}, 1, 1.005), false},
		"weight below 0": {branch(Uncertainty{}, -1, .5), true}, "weight infinite": {branch(Uncertainty{}, inf, .5), false},
		"first infinite": {branch(Uncertainty{First: inf}, 1, .5), false}, "now infinite": {branch(Uncertainty{Now: inf}, 1, .5), false},
		"draw below 0": {branch(Uncertainty{Draw: -1e-9}, 1, .5), false}, "draw 0": {branch(Uncertainty{Draw: 0}, 1, .5), true},
		"draw below 1": {branch(Uncertainty{Draw: under}, 1, .5), true}, "draw 1": {branch(Uncertainty{Draw: 1}, 1, .5), false},
		"pivot below 0": {at(-1e-9), false}, "pivot 0": {at(0), true}, "pivot 1": {at(1), true}, "pivot above 1": {at(1.005), false},
		"pick below 0": {pick(-1e-9), false}, "pick 0": {pick(0), true}, "pick below 1": {pick(under), true}, "pick 1": {pick(1), false},
		"among below 0": {among(-1e-9), false}, "among 0": {among(0), true}, "among below 1": {among(under), true},
		"among 1":       {among(1), false},
		"share below 0": {keep(-1e-9), false}, "share 0": {keep(0), true}, "share 1": {keep(1), true},
		"share above 1": {keep(1.005), false},
		"gamma below 0": {pivots(-1e-9, 3, 2), false}, "gamma 0": {pivots(0, 3, 2), true}, "gamma infinite": {pivots(inf, 3, 2), false},
		"no candidate": {pivots(1, 3, 0), false}, "one": {pivots(1, 3, 1), true}, "all segments": {pivots(1, 3, 3), true},
		"one more": {pivots(1, 3, 4), false},
		"no turn":  {leaves(Leaf{0, 0}), false}, "one turn": {leaves(Leaf{0, 1}), true},
		"inherited by the first": {leaves(Leaf{1, 2}), false}, "all but one inherited": {leaves(Leaf{0, 2}, Leaf{1, 2}), true},
		"all inherited": {leaves(Leaf{0, 2}, Leaf{2, 2}), false}, "fewer than none": {leaves(Leaf{0, 2}, Leaf{-1, 2}), false},
	} {
		if c.fits {
			require.NoError(t, c.err, name)
		} else {
			require.ErrorIs(t, c.err, ErrInput, name)
		}
	}
}

// Ties, probabilities of 0 and 1, and thresholds that are just missed, met and passed.
func TestEdges(t *testing.T) {
	// clamp(u − .25·(H − H₀), 0, 1) ≤ p
	for _, c := range []struct {
		first, now, draw, probability, compared float64
		branch                                  bool
	}{
		{0, 1, .75, .5, .5, true}, {0, 1, .7501, .5, .5001, false}, {0, 1, .7499, .5, .4999, true},
		{0, 0, 0, 0, 0, true}, {0, 1, .25, 0, 0, true}, {0, 1, .2501, 0, .0001, false},
		{1, 0, .9, 1, 1, true}, {1, 0, .9, .999, 1, false}, {.5, .5, .5, .5, .5, true},
	} {
		compared, branch, err := Branches([]Uncertainty{{First: c.first, Now: c.now, Draw: c.draw}}, .25, c.probability)
		require.NoError(t, err)
		golden.Near(t, []float64{c.compared}, compared, 1e-12)
		require.Equal(t, []bool{c.branch}, branch, "%+v", c)
	}

	// A fit takes 11 labels that are not all alike.
	for _, c := range []struct {
		labels, successes int
		fitted            bool
	}{{0, 0, false}, {10, 5, false}, {11, 5, true}, {12, 5, true}, {11, 0, false}, {11, 1, true}, {11, 10, true}, {11, 11, false}} {
		positions, saved := make([]float64, c.labels), make([]bool, c.labels)
		for i := range positions {
			positions[i], saved[i] = float64(i)/20, i < c.successes
		}
		fit, err := FitRecovery(positions, saved)
		require.NoError(t, err)
		require.Equal(t, c.fitted, fit.Fitted, "%d of %d labels", c.successes, c.labels)
		if !c.fitted {
			require.Equal(t, Recovery{}, fit)
		}
	}
	// All at one place, where the weight tells nothing: σ(bias) is the share of successes, 1 of 11.
	fit, err := FitRecovery(make([]float64, 11), append(make([]bool, 10), true))
	require.NoError(t, err)
	require.InDelta(t, 0, fit.Weight, 1e-12)
	require.InDelta(t, -math.Log(10), fit.Bias, 1e-9)
	require.InDelta(t, 1./11, fit.At(.7), 1e-9)
	require.Equal(t, .5, Recovery{Fitted: true}.At(1))
	w, b := Recovery{Bias: 800, Fitted: true}.step([]float64{0, 1}, []bool{true, true})
	require.Equal(t, [2]float64{0, 0}, [2]float64{w, b}, "no curvature, no step")
	w, b = Recovery{Bias: -800, Fitted: true}.step([]float64{0, 1}, []bool{true, false})
	require.Equal(t, [2]float64{0, 0}, [2]float64{w, b})

	// q ∝ x^γ with x = 1/4, 2/4, 3/4, 1.
	for gamma, want := range map[float64][]float64{0: {.25, .25, .25, .25}, 1: {.1, .2, .3, .4}, 2: {1. / 30, 4. / 30, 9. / 30, 16. / 30}} {
		q, err := Recovery{}.Pivots(4, 4, gamma)
		require.NoError(t, err)
		golden.Near(t, want, q, 1e-12, gamma)
	}
	q, err := Recovery{Weight: math.Log(3), Fitted: true}.Pivots(1, 1, 3)
	require.NoError(t, err)
	require.Equal(t, []float64{1}, q)
	// σ(ln 3·x) at ½ and 1 is .6339746 and .75.
	q, err = Recovery{Weight: math.Log(3), Fitted: true}.Pivots(2, 2, 0)
	require.NoError(t, err)
	golden.Near(t, []float64{.4580825, .5419175}, q, 1e-7)

	// A draw takes the first sum above it: never a probability of 0.
	for _, c := range []struct {
		q    []float64
		draw float64
		want int
	}{
		{[]float64{0, 1}, 0, 1}, {[]float64{1, 0}, .999, 0}, {[]float64{.5, 0, .5}, .5, 2}, {[]float64{.5, 0, .5}, .4999, 0},
		{[]float64{1}, 0, 0},
	} {
		got, err := Pick(c.q, c.draw)
		require.NoError(t, err)
		require.Equal(t, c.want, got, "%+v", c)
	}
	for _, c := range []struct {
		threshold float64
		branches  []float64
		saved     bool
	}{
		{0, nil, false}, {0, []float64{-1, 0}, false}, {0, []float64{0, 1e-9}, true}, {.5, []float64{.5}, false},
		{.5, []float64{.501}, true}, {-1, []float64{0}, true},
	} {
		require.Equal(t, c.saved, Saved(c.branches, c.threshold), "%+v", c)
	}
	require.Equal(t, Place{1, 1}, first(Among([]Place{{0, 0}, {1, 1}}, .5)))
	require.Equal(t, Place{0, 0}, first(Among([]Place{{0, 0}, {1, 1}}, .4999)))

	// Equal returns, the share rounded up.
	for _, c := range []struct {
		returns []float64
		want    int
	}{{[]float64{0}, 0}, {[]float64{0, 0, 0}, 0}, {[]float64{0, 1, 1}, 1}, {[]float64{-1, -2, -1}, 0}, {[]float64{0, -1, 2}, 2}} {
		require.Equal(t, c.want, first(BestOfN(c.returns)), "%v", c.returns)
	}
	for _, c := range []struct {
		share float64
		want  []int
	}{
		{0, []int{}}, {.001, []int{0}}, {.25, []int{0}}, {.26, []int{0, 3}}, {.5, []int{0, 3}}, {.75, []int{0, 1, 3}}, {1, []int{0, 1, 2, 3}},
	} {
		require.Equal(t, c.want, first(Extremes([]float64{0, 1, 3, 4}, c.share)), "%v", c.share)
	}
	require.Equal(t, []int{0, 1}, first(Extremes([]float64{2, 2, 2}, .5)))

	// A beam that is just wide enough, and one prefix narrower; one more turn than there are.
	beam := []Prefix{{[]int{0}, 0}, {[]int{1}, 0}}
	for width, want := range map[int][]Prefix{
		1: {{[]int{0, 0}, 0}}, 2: {{[]int{0, 0}, 0}, {[]int{0, 1}, 0}}, 3: {{[]int{0, 0}, 0}, {[]int{0, 1}, 0}, {[]int{1}, 0}},
		4: {{[]int{0, 0}, 0}, {[]int{0, 1}, 0}, {[]int{1}, 0}},
	} {
		require.Equal(t, want, first(Widen(beam, [][]float64{{0, 0}, {}}, width)), "%d wide", width)
	}
	// Two turns: the first choice pays now, the second later. A turn beyond the last does not count.
	rewards := map[int][]float64{0: {1, 0}, 1: {0, 2}, 2: {9, 9}}
	after := func(prefix []int) []float64 {
		if len(prefix) == 1 && prefix[0] == 0 {
			return []float64{0, 0}
		}
		return rewards[len(prefix)]
	}
	for _, c := range []struct {
		depth, turns int
		path         []int
		score        float64
		values       [][]float64
	}{
		{1, 2, []int{0, 0}, 1, [][]float64{{1, 0}, {0, 0}}}, {2, 2, []int{1, 1}, 2, [][]float64{{1, 2}, {0, 2}}},
		{3, 2, []int{1, 1}, 2, [][]float64{{1, 2}, {0, 2}}}, {2, 1, []int{0}, 1, [][]float64{{1, 0}}},
		{2, 3, []int{1, 1, 0}, 11, [][]float64{{1, 2}, {9, 11}, {9, 9}}},
	} {
		taken, values, err := Lookahead(after, c.depth, c.turns)
		require.NoError(t, err)
		require.Equal(t, c.values, values, "%+v", c)
		require.Equal(t, Prefix{c.path, c.score}, taken, "%+v", c)
	}
}

// first is a result whose error is nil.
func first[T any](x T, err error) T {
	if err != nil {
		panic(err)
	}
	return x
}
