package selection

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// The range of each method's value: just outside, at, and just inside of each end.
func TestRanges(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		o    Options
		fits bool
	}{
		{Options{Method: "top_fraction", Value: 0}, false}, {Options{Method: "top_fraction", Value: 1e-9}, true},
		{Options{Method: "top_fraction", Value: 1}, true}, {Options{Method: "top_fraction", Value: 1.005}, false},
		{Options{Method: "top_count", Value: 0}, false}, {Options{Method: "top_count", Value: 1}, true},
		{Options{Method: "top_count", Value: 2}, true}, {Options{Method: "top_count", Value: -1}, false},
		{Options{Method: "top_count", Value: 2147483648}, true}, {Options{Method: "top_count", Value: 2147483649}, false},
		{Options{Method: "top_p", Value: -1e-9}, false}, {Options{Method: "top_p", Value: 0}, true},
		{Options{Method: "top_p", Value: 1}, true}, {Options{Method: "top_p", Value: 1.005}, false},
		{Options{Method: "top_p_softmax", Value: 0}, true}, {Options{Method: "top_p_softmax", Value: -0.5}, false},
		{Options{Method: "min_p", Value: 0}, true}, {Options{Method: "min_p", Value: -1e-9}, false},
		{Options{Method: "min_p", Value: 1}, true}, {Options{Method: "min_p", Value: 1.005}, false},
		{Options{Method: "min_p", Value: 0, Order: Smallest}, false}, {Options{Method: "min_p", Value: 1e-9, Order: Smallest}, true},
		{Options{Method: "min_p", Value: 1.005, Order: Smallest}, false},
		{Options{Method: "all", Slack: -1e-9}, false}, {Options{Method: "all", Slack: inf}, false},
		{Options{Method: "all", Floor: -1e-9}, false}, {Options{Method: "all", Floor: inf}, false},
		{Options{Method: "all", Floor: 0, Slack: 0}, true},
	} {
		_, err := Select(Groups{Rewards: [][]float64{{0, 1}}}, c.o)
		if c.fits {
			require.NoError(t, err, "%+v", c.o)
		} else {
			require.ErrorIs(t, err, ErrInput, "%+v", c.o)
		}
	}
	for _, c := range []struct {
		kept, groups int
		fits         bool
	}{{0, 1, true}, {1, 1, true}, {2, 1, false}, {-1, 1, false}, {0, 0, false}, {0, -1, false}} {
		_, err := LossScale(ScaleLinear, c.kept, c.groups)
		require.Equal(t, c.fits, err == nil, "%d of %d", c.kept, c.groups)
	}
}

// Thresholds that are just missed, met and passed; scores of 0, equal scores.
func TestEdges(t *testing.T) {
	top := func(p, slack float64, scores ...float64) []int { return TopP(scores, p, slack, Largest) }
	soft := func(p float64, scores ...float64) []int { return TopPSoftmax(scores, p, Largest) }
	least := func(share float64, order Order, scores ...float64) []int { return MinP(scores, share, order) }
	for _, c := range []struct {
		what      string
		got, want []int
	}{
		// 4, 3, 2, 1: half of the sum is 5, seven tenths are 7, which the first two reach.
		{"below the sum of two", top(.699, 0, 1, 2, 3, 4), []int{2, 3}},
		{"the sum of two", top(.7, 0, 1, 2, 3, 4), []int{2, 3}},
		{"above it", top(.701, 0, 1, 2, 3, 4), []int{1, 2, 3}},
		{"the slack is in units of the score", top(.8, 1, 1, 2, 3, 4), []int{2, 3}},
		{"less slack", top(.8, .99, 1, 2, 3, 4), []int{1, 2, 3}},
		{"all but rounding", top(.9999, 0, 1, 2, 3, 4), []int{0, 1, 2, 3}},
		{"p 1 keeps those of 0 too", top(1, 0, 0, 1), []int{0, 1}},
		{"below 1 it does not", top(.999, 0, 0, 1), []int{1}},
		{"p 0", top(0, 0, 1, 2), []int{}},
		{"scores of 0", top(.5, 0, 0, 0), []int{}},
		{"a sum that is the slack", top(.5, 1, 1, 1), []int{}},
		{"a sum above the slack", top(.5, .999, 1, 1), []int{0}},
		{"a sum below 0 needs none", top(.5, 0, -1, -2, 2), []int{}},
		{"of negative scores", top(.1, 0, -1, -2), []int{}},
		{"of one that cannot reach it", TopP([]float64{-1, 3, 2}, .9, 0, Smallest), []int{}},
		{"a sum of large scores, within its rounding", top(.5, 0, 1e6, 1e6+.001), []int{1}},
		{"and beyond it", top(.5, 0, 1e6+.1, 1e6, .01), []int{0}},
		// e^{ln 3} to e^0 is three quarters to one.
		{"below three quarters", soft(.749, 0, math.Log(3)), []int{1}},
		{"three quarters", soft(.75, 0, math.Log(3)), []int{1}},
		{"above three quarters", soft(.751, 0, math.Log(3)), []int{0, 1}},
		{"half of four equal ones", soft(.5, 2, 2, 2, 2), []int{0, 1}},
		{"above half", soft(.501, 2, 2, 2, 2), []int{0, 1, 2}},
		{"nothing but one", soft(0, 2, 2), []int{0}},
		{"all", soft(1, 0, -800), []int{0, 1}},
		{"nearly all", soft(.999, 0, -8), []int{0}},
		{"none there", soft(.5), []int{}},
		{"none there, and all of them", soft(1), []int{}},
		{"the softmax of negatives", TopPSoftmax([]float64{math.Log(3), 0}, .75, Smallest), []int{1}},
		{"above three quarters of them", TopPSoftmax([]float64{math.Log(3), 0}, .751, Smallest), []int{0, 1}},
		{"scores that are far from 0", soft(.6, -900, -900.1), []int{0, 1}},
		{"and far above", soft(.6, 900, 899), []int{0}},
		// RAGEN's tolerance is 1e-10.
		{"a share of the best", least(.5, Largest, 2, 1, .999), []int{0, 1}},
		{"within the tolerance", least(.5, Largest, 2, 1-9e-11), []int{0, 1}},
		{"at the tolerance", least(.5, Largest, 2, 1-1e-10), []int{0, 1}},
		{"beyond it", least(.5, Largest, 2, 1-1.1e-10), []int{0}},
		{"a multiple of the least", least(.5, Smallest, 1, 2, 2.001), []int{0, 1}},
		{"of the least, within", least(.5, Smallest, 1, 2+9e-11), []int{0, 1}},
		{"of the least, at", least(.5, Smallest, 1, 2+1e-10), []int{0, 1}},
		{"of the least, beyond", least(.5, Smallest, 1, 2+1.1e-10), []int{0}},
		{"scores of 0 of scores of 0", least(.9, Largest, 0, 0), []int{0, 1}},
		{"share 0", least(0, Largest, 0, 1), []int{0, 1}},
		{"share 1", least(1, Largest, 1, 1, .999), []int{0, 1}},
		{"none", least(.5, Largest), []int{}},
		{"the floor itself is flat", Varied([]float64{.1, .0999, .1001, 0}, .1), []int{2}},
		{"no floor", Varied([]float64{0, 1e-300}, 0), []int{1}},
		{"none of some", TopCount([]float64{1, 2}, 0, Largest), []int{}},
		{"more than all", TopCount([]float64{1, 2}, 3, Largest), []int{0, 1}},
		{"equal ones", TopCount([]float64{1, 2, 2, 1}, 3, Largest), []int{0, 1, 2}},
		{"equal ones, from below", TopCount([]float64{1, 2, 2, 1}, 3, Smallest), []int{0, 1, 3}},
		{"the whole", Whole([][]bool{{false, true}, {}, {false}, {true}}), []int{1, 2}},
	} {
		require.Equal(t, c.want, c.got, c.what)
	}
	// ⌊keep·n⌋, at least one; products that are rounded low count as whole.
	for _, c := range []struct {
		keep    float64
		n, want int
	}{{.5, 4, 2}, {.5, 5, 2}, {.499, 4, 1}, {.01, 4, 1}, {1, 4, 4}, {.29, 100, 29}, {.57, 100, 57}, {.5, 1, 1}, {.99999, 4, 3}} {
		require.Equal(t, c.want, countOf(c.keep, c.n), "%v of %d", c.keep, c.n)
	}
	require.Equal(t, []float64{0, .5, 1, 1}, Reweight([]float64{0, 1, 2, 2}))
	require.Equal(t, []float64{1}, Reweight([]float64{1e-9}))

	// Flat and broken groups leave before the ranking; a fraction is of all groups.
	g := Groups{Rewards: [][]float64{{0, 0}, {0, 1}, {0, 2}, {0, 3}}, Broken: [][]bool{{false}, {false}, {false}, {true}}}
	for _, c := range []struct {
		o    Options
		want []int
	}{
		{Options{Method: "top_fraction", Value: .5, DropBroken: true}, []int{1, 2}},
		{Options{Method: "all", DropFlat: true}, []int{1, 2, 3}},
		{Options{Method: "all", DropFlat: true, Floor: math.Sqrt(.5)}, []int{2, 3}},
		{Options{Method: "all", DropFlat: true, DropBroken: true}, []int{1, 2}},
		{Options{Method: "top_count", Value: 3, Order: Smallest, DropFlat: true}, []int{1, 2, 3}},
	} {
		got, err := Select(g, c.o)
		require.NoError(t, err)
		require.Equal(t, c.want, got.Kept, "%+v", c.o)
	}
	g.Broken = g.Broken[:3]
	_, err := Select(g, Options{Method: "all", DropBroken: true})
	require.ErrorIs(t, err, ErrInput)
	_, err = Select(g, Options{Method: "all"})
	require.NoError(t, err, "what is broken is not read")
}

// What ranks members: lengths above 0, rewards and scores that are finite; equal ones by index.
func TestMembersAtTheEdges(t *testing.T) {
	inf := math.Inf(1)
	one := func(reward, length float64) Groups {
		return Groups{Rewards: [][]float64{{reward}}, Lengths: [][]float64{{length}}}
	}
	for _, c := range []struct {
		g    Groups
		fits bool
	}{
		{one(0, 1), true}, {one(0, 1e-300), true}, {one(0, 0), false}, {one(0, -1), false},
		{one(inf, 1), false}, {one(1e300, 1e-300), false}, {one(1, inf), true},
	} {
		_, err := Members(c.g, "reward_per_token", 1)
		if c.fits {
			require.NoError(t, err, "%+v", c.g)
		} else {
			require.ErrorIs(t, err, ErrRewards, "%+v", c.g)
		}
	}
	_, err := Members(one(1, 0), "shortest", 1)
	require.ErrorIs(t, err, ErrRewards, "no token is not the shortest")
	g := Groups{Rewards: [][]float64{{0, 2, -2, 4}, {0, 0, 0, 0}}, Lengths: [][]float64{{2, 1, 2, 4}, {2, 1, 1, 3}}}
	for metric, want := range map[string][][]int{
		"shortest": {{0, 1}, {1, 2}}, "reward_per_token": {{1, 3}, {0, 1}}, "deviation": {{2, 3}, {0, 1}}, "return": {{1, 3}, {0, 1}},
	} {
		got, err := Members(g, metric, 2)
		require.NoError(t, err)
		require.Equal(t, want, got, metric)
	}
}

// What each metric gives, as figures; which of them read a pass over all rows.
func TestMetricsWorked(t *testing.T) {
	g := Groups{
		Rewards: [][]float64{{0, 2}, {1, 1}, {-1}}, Entropies: [][]float64{{1, 3}, {0, 0}, {2}},
		Exact: [][]float64{{.5, 0}, {4, 0}, {1}}, Lengths: [][]float64{{1, 2}, {3, 3}, {7}},
	}
	want := map[string][]float64{
		"reward_std": {math.Sqrt2, 0, 0}, "reward": {1, 1, -1}, "entropy": {2, 0, 2}, "entropy_std": {math.Sqrt2, 0, 0},
		"exact_entropy": {.25, 2, 1}, "length": {1.5, 3, 7},
	}
	require.Len(t, Metrics, len(want))
	for _, m := range Metrics {
		got, err := Score(g, m.Name)
		require.NoError(t, err)
		require.Equal(t, want[m.Name], got, m.Name)
		require.Equal(t, m.Name == "exact_entropy", m.Exact, m.Name)
	}
	byDefault, err := Select(g, Options{Method: "top_count", Value: 1})
	require.NoError(t, err)
	require.Equal(t, Result{Kept: []int{0}, Scores: want["reward_std"], Spreads: want["reward_std"]}, byDefault)
}
