package credit_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/credit"
	"github.com/reprise-rl/reprise/model/credit/credittest"
	"github.com/reprise-rl/reprise/model/loss"
)

func TestRanges(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	of := func(_ any, err error) error { return err }
	one := [][]float64{{1}}
	epsilon := func(x float64) error { return of(credit.GRPO(nil, nil, credit.Options{Epsilon: x})) }
	klOf := func(x, policy, reference float64) error {
		_, _, err := credit.KLInReward(one, [][]float64{{policy}}, [][]float64{{reference}}, [][]bool{{true}}, x, loss.K1)
		return err
	}
	kl := func(x float64) error { return klOf(x, 1, 1) }
	state := func(count int) error {
		return of(credit.Observe([]credit.StateValue{{Key: "a", Count: count}}, nil, nil, 0))
	}
	span := func(spans ...credit.Span) error { return of(credit.Mask([][]credit.Span{spans}, []int{3})) }
	long := func(length, limit, cache int) error { return of(credit.Overlong(length, limit, cache)) }
	credittest.Ranges(t, map[string]credittest.Range{
		"epsilon below 0":              {epsilon(-1e-9), credit.ErrInput},
		"epsilon 0":                    {epsilon(0), nil},
		"epsilon infinite":             {epsilon(inf), credit.ErrInput},
		"coefficient below 0":          {kl(-1e-9), credit.ErrInput},
		"coefficient 0":                {kl(0), nil},
		"coefficient infinite":         {kl(inf), credit.ErrInput},
		"least advantage below 0":      {of(credit.WorthAStep(nil, -1e-9)), credit.ErrInput},
		"least advantage 0":            {of(credit.WorthAStep(nil, 0)), nil},
		"least advantage infinite":     {of(credit.WorthAStep(nil, inf)), credit.ErrInput},
		"a state of no trajectory":     {state(0), credit.ErrInput},
		"of one":                       {state(1), nil},
		"turns that adjoin":            {span(credittest.At(0, 1), credittest.At(1, 3)), nil},
		"turns that share a token":     {span(credittest.At(0, 2), credittest.At(1, 3)), credit.ErrInput},
		"a turn past the end":          {span(credittest.At(2, 4)), credit.ErrInput},
		"an empty turn":                {span(credittest.At(1, 1)), credit.ErrInput},
		"no token":                     {long(0, 10, 4), nil},
		"fewer than none":              {long(-1, 10, 4), credit.ErrInput},
		"a cache of 0":                 {long(5, 10, 0), credit.ErrInput},
		"of 1":                         {long(5, 10, 1), nil},
		"a cache as long as the limit": {long(5, 10, 10), nil},
		"a longer one":                 {long(5, 10, 11), credit.ErrInput},
		"log-probs not finite":         {klOf(1, nan, 1), credit.ErrNotFinite},
		"of the reference":             {klOf(1, 1, nan), credit.ErrNotFinite},
	})
}

func TestMeanStd(t *testing.T) {
	for name, c := range map[string]struct {
		values    []float64
		mean, std float64
	}{"none": {nil, 0, 0}, "one": {[]float64{3}, 3, 0}, "equal": {[]float64{.1, .1, .1}, .1, 0}, "two": {[]float64{0, 2}, 1, math.Sqrt2}} {
		mean, std := credit.MeanStd(c.values)
		require.Equal(t, c.mean, mean, name)
		require.InDelta(t, c.std, std, 1e-15, name)
	}
}

// Groups of equal returns have no factor.
func TestAmplificationsOfEqualReturns(t *testing.T) {
	factors, err := credit.Amplifications([][]float64{{0, 0}, {1, -1}}, [][]string{{"x", "y"}, {"x", "y"}}, []int{0, 1})
	require.NoError(t, err)
	require.Len(t, factors, 2)
	for i, agent := range []string{"x", "y"} {
		require.Equal(t, 1, factors[i].Group)
		require.Equal(t, agent, factors[i].Agent)
		require.InDelta(t, 1, factors[i].Factor, 1e-12)
	}
}

// Rewards are summed where a turn has several, and a row is worth a step by any of its tokens.
func TestSumsAtTheEdges(t *testing.T) {
	sums, err := credit.TurnSums([][]float64{{1, 2, 4}}, [][]credit.Span{{{0, 2}, {2, 3}}})
	require.NoError(t, err)
	require.Equal(t, [][]float64{{3, 4}}, sums)
	worth, err := credit.WorthAStep([][]float64{{.5, 0}, {-.0099, .0099}, {0, -.01}, {.0101}}, .01)
	require.NoError(t, err)
	require.Equal(t, []bool{true, false, true, true}, worth)

	// Nothing sampled has no distance.
	penalised, mean, err := credit.KLInReward([][]float64{{0}}, [][]float64{{1}}, [][]float64{{0}}, [][]bool{{false}}, 1, loss.K1)
	require.NoError(t, err)
	require.Equal(t, [][]float64{{0}}, penalised)
	require.Equal(t, 0.0, mean)

	for length, want := range map[int]float64{0: 0, 6: 0, 7: -.25, 10: -1, 11: -1} {
		got, err := credit.Overlong(length, 10, 4)
		require.NoError(t, err)
		require.Equal(t, want, got, "%d tokens", length)
	}
}
