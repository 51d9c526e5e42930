package credit

import (
	"errors"
	"math"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/golden"
	"github.com/reprise-rl/reprise/model/loss"
)

// What an option or a number may be: just outside, at, and just inside of its range.
func TestRanges(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	of := func(_ any, err error) error { return err }
	two := func(_, _ any, err error) error { return err }
	one := [][]float64{{1}}
	epsilon := func(x float64) error { return of(GRPO(nil, nil, Options{Epsilon: x})) }
	outcome := func(x float64) error { return of(Promises([][]string{{"a"}}, []float64{x}, 1)) }
	klOf := func(x, policy, reference float64) error {
		_, _, err := KLInReward(one, [][]float64{{policy}}, [][]float64{{reference}}, [][]bool{{true}}, x, loss.K1)
		return err
	}
	kl := func(x float64) error { return klOf(x, 1, 1) }
	blocks := func(groups []int, outcomes [][]int) error {
		_, _, err := Blockwise(one, groups, outcomes)
		return err
	}
	gain := func(x float64) error { return of(EMPG(nil, nil, Modulation{Gain: x, FutureGain: x, Clarity: x})) }
	clip := func(low, high float64) error { return two(SeeUPOCorrections(nil, nil, nil, low, high)) }
	state := func(count int) error { return of(Observe([]StateValue{{Key: "a", Count: count}}, nil, nil, 0)) }
	span := func(spans ...Span) error { return of(Mask([][]Span{spans}, []int{3})) }
	long := func(length, limit, cache int) error { return of(Overlong(length, limit, cache)) }
	for name, c := range map[string]struct{ err, kind error }{
		"unit below 0":                 {of(Promises(nil, nil, -1e-9)), ErrInput},
		"unit 0":                       {of(Promises(nil, nil, 0)), nil},
		"unit 1":                       {of(Promises(nil, nil, 1)), nil},
		"unit above 1":                 {of(Promises(nil, nil, 1.005)), ErrInput},
		"outcome below 0":              {outcome(-1e-9), ErrRewards},
		"outcome 0":                    {outcome(0), nil},
		"outcome 1":                    {outcome(1), nil},
		"outcome above 1":              {outcome(1.005), ErrRewards},
		"epsilon below 0":              {epsilon(-1e-9), ErrInput},
		"epsilon 0":                    {epsilon(0), nil},
		"epsilon infinite":             {epsilon(inf), ErrInput},
		"coefficient below 0":          {kl(-1e-9), ErrInput},
		"coefficient 0":                {kl(0), nil},
		"coefficient infinite":         {kl(inf), ErrInput},
		"gain below 0":                 {gain(-1e-9), ErrInput},
		"gain 0":                       {gain(0), nil},
		"gain infinite":                {gain(inf), ErrInput},
		"least advantage below 0":      {of(WorthAStep(nil, -1e-9)), ErrInput},
		"least advantage 0":            {of(WorthAStep(nil, 0)), nil},
		"least advantage infinite":     {of(WorthAStep(nil, inf)), ErrInput},
		"low clip below 0":             {clip(-1e-9, .2), ErrInput},
		"clips of 0":                   {clip(0, 0), nil},
		"low clip below 1":             {clip(.995, .2), nil},
		"low clip 1":                   {clip(1, .2), ErrInput},
		"high clip below 0":            {clip(.2, -1e-9), ErrInput},
		"high clip above 1":            {clip(.2, 3), nil},
		"high clip infinite":           {clip(.2, inf), ErrInput},
		"a state of no trajectory":     {state(0), ErrInput},
		"of one":                       {state(1), nil},
		"turns that adjoin":            {span(Span{0, 1}, Span{1, 3}), nil},
		"turns that share a token":     {span(Span{0, 2}, Span{1, 3}), ErrInput},
		"a turn past the end":          {span(Span{2, 4}), ErrInput},
		"an empty turn":                {span(Span{1, 1}), ErrInput},
		"no token":                     {long(0, 10, 4), nil},
		"fewer than none":              {long(-1, 10, 4), ErrInput},
		"a cache of 0":                 {long(5, 10, 0), ErrInput},
		"of 1":                         {long(5, 10, 1), nil},
		"a cache as long as the limit": {long(5, 10, 10), nil},
		"a longer one":                 {long(5, 10, 11), ErrInput},
		"a ratio that is infinite":     {two(SeeUPOCorrections([]float64{1}, one, [][]float64{{1000}}, .2, .2)), ErrNotFinite},
		"a correction that is none":    {two(SeeUPOCorrections([]float64{nan}, one, one, .2, .2)), ErrNotFinite},
		"corrections of too many":      {two(SeeUPOCorrections([]float64{1}, one, nil, .2, .2)), ErrInput},
		"groups of fewer rows":         {blocks(nil, [][]int{{0}}), ErrInput},
		"log-probs not finite":         {klOf(1, nan, 1), ErrNotFinite},
		"of the reference":             {klOf(1, 1, nan), ErrNotFinite},
	} {
		t.Run(name, func(t *testing.T) {
			if c.kind == nil {
				require.NoError(t, c.err)
			} else {
				require.ErrorIs(t, c.err, c.kind)
			}
		})
	}
	// The place of a value that is not finite, at the first token of a row and inside a later turn.
	for at, want := range map[int]string{0: "row 0, turn 0 is NaN", 1: "row 0, token 1 is NaN", 4: "row 0, token 4 is NaN"} {
		values := [][]float64{{0, 0, 0, 0, 0}}
		values[0][at] = nan
		_, _, err := TurnGAE([][]float64{{1, 1}}, values, [][]Span{{{0, 2}, {3, 5}}}, Options{})
		require.ErrorIs(t, err, ErrNotFinite)
		require.ErrorContains(t, err, want)
	}
	_, _, err := TurnGAE(one, [][]float64{{nan, 0}}, [][]Span{{{0, 2}}}, Options{ValueAt: FinalToken})
	require.ErrorContains(t, err, "row 0, token 0 is NaN")
	// HiPER's values: those of every turn, and V^h where a segment begins.
	for name, c := range map[string]struct {
		change func(*HiPERTurns)
		kind   error
	}{
		"V^l":              {func(h *HiPERTurns) { h.Low[1] = nan }, ErrNotFinite},
		"V^c":              {func(h *HiPERTurns) { h.Choice[1] = inf }, ErrNotFinite},
		"V^h of the first": {func(h *HiPERTurns) { h.High[0] = nan }, ErrNotFinite},
		"V^h inside":       {func(h *HiPERTurns) { h.High[1] = nan }, nil},
		"V^h of a switch":  {func(h *HiPERTurns) { h.High[2] = nan }, ErrNotFinite},
	} {
		zero := func() []float64 { return make([]float64, 3) }
		h := HiPERTurns{Rewards: zero(), Switch: []bool{false, false, true}, Low: zero(), High: zero(), Choice: zero()}
		c.change(&h)
		_, err := HiPER(h, HiPEROptions{})
		if c.kind == nil {
			require.NoError(t, err, name)
		} else {
			require.ErrorIs(t, err, c.kind, name)
		}
	}
}

// An algorithm that gets a batch without one of its fields, or with a row of it too few, says so if it
// reads it, and does the same if not.
func TestWhatABatchLacks(t *testing.T) {
	for _, a := range Algorithms {
		batch := func() reflect.Value {
			in := theBatch(t)
			if a.Values == hiperValues {
				ofSubgoals(t, &in)
			}
			return reflect.ValueOf(&in).Elem()
		}
		whole := batch().Interface().(Input)
		o := Options{Algorithm: a.Name, NormalizeByStd: true, Gamma: 0.5, StepWeight: 1}
		want, learned, err := Compute(whole, o)
		require.NoError(t, err)
		for i := range batch().NumField() {
			name := batch().Type().Field(i).Name
			if name == "Lengths" || name == "Past" || name == "Returns" && a.ByRole {
				continue // of every row, by construction; what may be missing
			}
			for _, lacks := range []string{"all", "a row", "one of a row"} {
				in := batch()
				field := in.Field(i)
				switch rows := field.Len(); {
				case lacks == "all":
					field.SetZero()
				case lacks == "a row":
					field.Set(field.Slice(0, rows-1))
				case name != "Turns" && field.Index(0).Kind() == reflect.Slice && field.Index(0).Len() != whole.Lengths[0]:
					// neither turns nor tokens, which are the shape
					field.Index(0).Set(field.Index(0).Slice(0, field.Index(0).Len()-1))
				}
				got, returns, err := Compute(in.Interface().(Input), o)
				if err == nil {
					require.Equal(t, want, got, "%s: %s lacks %s", a.Name, name, lacks)
					require.Equal(t, learned, returns, "%s: %s lacks %s", a.Name, name, lacks)
					continue
				}
				require.True(t, errors.Is(err, ErrInput) || errors.Is(err, ErrRewards), "%s: %s lacks %s: %v", a.Name, name, lacks, err)
			}
		}
	}
}

// Figures at the places where a comparison turns: rewards of 0, equal scores, bounds that are just
// missed, met and passed. Figures are worked out beside them.
func TestFiguresAtTheEdges(t *testing.T) {
	// A turn has paid if its reward is above 0, and what was achieved stays.
	require.Equal(t, [][]int{{0, 1, 1, 1, 2}, {0, 0}, {0}, {}}, Achieved([][]float64{{1, 0, -1, 2, 5}, {0, 1}, {0}, {}}))

	for name, c := range map[string]struct {
		values    []float64
		mean, std float64
	}{"none": {nil, 0, 0}, "one": {[]float64{3}, 3, 0}, "equal": {[]float64{.1, .1, .1}, .1, 0}, "two": {[]float64{0, 2}, 1, math.Sqrt2}} {
		mean, std := MeanStd(c.values)
		require.Equal(t, c.mean, mean, name)
		require.InDelta(t, c.std, std, 1e-15, name)
	}

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

	// Two rows of a new state have each other, two alone in theirs too.
	require.Equal(t, []float64{1, -1, 6.5}, row(StateBaseline(nil, []float64{1, 0, 7}, []string{"a", "a", "b"})))
	require.Equal(t, []float64{-3, 3}, row(StateBaseline(nil, []float64{1, 4}, []string{"a", "b"})))

	// (0 − 1e-8)/(1e-8 + 1e-8): the addend of the deviation.
	golden.Near(t, []float64{-.5, .5}, row(HiPERScale([]float64{0, 2e-8})), 1e-9)

	// Rows without turns, also the last one. Over turns 3, 1, 1 have the mean 5/3; s has 3 and 1, t is alone.
	steps, err := GiGPO([][]float64{{}, {3}, {1, 0}, {}}, []int{0, 0, 0, 0}, [][]string{{}, {"s"}, {"s", "t"}, {}},
		Options{Own: Own{"over_turns": true}, StepWeight: 1})
	require.NoError(t, err)
	within(t, 1e-12, [][]float64{{}, {4./3 + 1}, {-2./3 - 1, -2. / 3}, {}}, steps)

	// Groups of equal returns have no factor.
	factors, err := Amplifications([][]float64{{0, 0}, {1, -1}}, [][]string{{"x", "y"}, {"x", "y"}}, []int{0, 1})
	require.NoError(t, err)
	require.Len(t, factors, 2)
	for i, agent := range []string{"x", "y"} {
		require.Equal(t, 1, factors[i].Group)
		require.Equal(t, agent, factors[i].Agent)
		require.InDelta(t, 1, factors[i].Factor, 1e-12)
	}

	// Rewards are summed where a turn has several, and a row is worth a step by any of its tokens.
	sums, err := TurnSums([][]float64{{1, 2, 4}}, [][]Span{{{0, 2}, {2, 3}}})
	require.NoError(t, err)
	require.Equal(t, [][]float64{{3, 4}}, sums)
	worth, err := WorthAStep([][]float64{{.5, 0}, {-.0099, .0099}, {0, -.01}, {.0101}}, .01)
	require.NoError(t, err)
	require.Equal(t, []bool{true, false, true, true}, worth)

	// Nothing sampled has no distance.
	penalised, mean, err := KLInReward([][]float64{{0}}, [][]float64{{1}}, [][]float64{{0}}, [][]bool{{false}}, 1, loss.K1)
	require.NoError(t, err)
	require.Equal(t, [][]float64{{0}}, penalised)
	require.Equal(t, 0.0, mean)

	for length, want := range map[int]float64{0: 0, 6: 0, 7: -.25, 10: -1, 11: -1} {
		got, err := Overlong(length, 10, 4)
		require.NoError(t, err)
		require.Equal(t, want, got, "%d tokens", length)
	}
	none := [][]float64{{0, 0}, {0}}
	require.Equal(t, none, overLargest(none))
	require.Equal(t, [][]float64{{.5, -1}, {.25}}, overLargest([][]float64{{1, -2}, {.5}}))
}

// What the reward model of iStar prefers in the batch of TestComputeWorked: see there for the sums q. Of
// six pairs it prefers two right, and one is equal. Their loss is log(1 + e^{q_loser − q_winner}).
func TestPreferWorked(t *testing.T) {
	in := theBatch(t)
	got, err := Prefer(in, Options{})
	require.NoError(t, err)
	within(t, 1e-12, [][]float64{{.15, -.2}, {.1, -.05}, {.1, .05}, {.05}, {.05, 0, -.1}, {-.05, .1}, {}, {.05}}, got.Rewards)
	require.Equal(t, [][2]int{{0, 2}, {0, 3}, {5, 2}, {5, 3}, {1, 4}, {1, 6}}, got.Pairs)
	above := func(x float64) float64 { return math.Log(1 + math.Exp(x)) }
	require.InDelta(t, (above(.2)+2*above(.1)+above(0)+above(-.1)+above(-.05))/6, got.Loss, 1e-12)
	require.InDelta(t, 2./6, got.Right, 1e-12)

	in.Successes = make([]bool, 8)
	none, err := Prefer(in, Options{})
	require.NoError(t, err)
	require.Empty(t, none.Pairs)
	require.Equal(t, 0.0, none.Loss)
	require.Equal(t, 0.0, none.Right)
	for row, weights := range none.Weights {
		require.Equal(t, make([]float64, in.Lengths[row]), weights)
	}
}
