package gae

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/credit"
	"github.com/reprise-rl/reprise/model/credit/credittest"
)

func TestErrors(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	one, mask := [][]float64{{0, 1}}, [][]bool{{true, true}}
	spans := [][]credit.Span{{credittest.At(0, 2)}}
	first := func(_ any, err error) error { return err }
	second := func(_, _ any, err error) error { return err }
	gae := func(r, v [][]float64, m [][]bool, o credit.Options) error {
		a, g, err := GAE(r, v, m, o)
		return second(a, g, err)
	}
	turn := func(r, v [][]float64, s [][]credit.Span, o credit.Options) error {
		a, g, err := TurnGAE(r, v, s, o)
		return second(a, g, err)
	}
	credittest.Refused(t, map[string]credittest.Refusal{
		"gae gamma":     {gae(one, one, mask, credit.Options{Gamma: 1.1}), credit.ErrInput, "Gamma is 1.1, must be from 0 to 1"},
		"gae lambda":    {gae(one, one, mask, credit.Options{Lambda: nan}), credit.ErrInput, "Lambda is NaN"},
		"gae rows":      {gae(one, nil, mask, credit.Options{}), credit.ErrInput, "0 rows of values, 1 of the mask"},
		"gae tokens":    {gae([][]float64{{1}}, one, mask, credit.Options{}), credit.ErrInput, "row 0 has 1 rewards for 2 tokens"},
		"gae reward":    {gae([][]float64{{0, inf}}, one, mask, credit.Options{}), credit.ErrRewards, "row 0, token 1 has +Inf"},
		"gae value":     {gae(one, [][]float64{{nan, 0}}, mask, credit.Options{}), credit.ErrNotFinite, "the value at row 0, token 0 is NaN"},
		"gae unsampled": {gae(one, one, [][]bool{{true, false}}, credit.Options{}), credit.ErrRewards, "row 0 has 1 at token 1, which was not sampled"},
		"turn gamma":    {turn([][]float64{{1}}, one, spans, credit.Options{TurnGamma: -1}), credit.ErrInput, "TurnGamma is -1"},
		"turn lambda":   {turn([][]float64{{1}}, one, spans, credit.Options{TurnLambda: 2}), credit.ErrInput, "TurnLambda is 2"},
		"turn inside":   {turn([][]float64{{1}}, one, spans, credit.Options{Lambda: 2}), credit.ErrInput, "Lambda is 2"},
		"turn place":    {turn([][]float64{{1}}, one, spans, credit.Options{ValueAt: "middle"}), credit.ErrInput, `value place "middle"`},
		"turn rewards":  {turn([][]float64{{1, 2}}, one, spans, credit.Options{}), credit.ErrInput, "row 0 has 2 rewards for 1 turns"},
		"turn rows":     {turn(nil, one, spans, credit.Options{}), credit.ErrInput, "rewards of 0 rows, turns of 1"},
		"turn reward":   {turn([][]float64{{nan}}, one, spans, credit.Options{}), credit.ErrRewards, "row 0, turn 0 has NaN"},
		"turn value":    {turn([][]float64{{1}}, [][]float64{{inf, 0}}, spans, credit.Options{}), credit.ErrNotFinite, "the value of row 0, turn 0 is +Inf"},
		"inner value":   {turn([][]float64{{1}}, [][]float64{{0, inf}}, spans, credit.Options{}), credit.ErrNotFinite, "the value at row 0, token 1 is +Inf"},
		"upper rows":    {first(TurnAdvantages(one, nil, 1, 1)), credit.ErrInput, "rewards of 1 rows, values of 0"},
		"upper turns":   {first(TurnAdvantages(one, [][]float64{{1}}, 1, 1)), credit.ErrInput, "row 0 has 2 rewards and 1 values"},
	})
}

// The place of a value that is not finite, at the first token of a row and inside a later turn.
func TestThePlaceOfAValue(t *testing.T) {
	nan, one := math.NaN(), [][]float64{{1}}
	for at, want := range map[int]string{0: "row 0, turn 0 is NaN", 1: "row 0, token 1 is NaN", 4: "row 0, token 4 is NaN"} {
		values := [][]float64{{0, 0, 0, 0, 0}}
		values[0][at] = nan
		_, _, err := TurnGAE([][]float64{{1, 1}}, values, [][]credit.Span{{credittest.At(0, 2), credittest.At(3, 5)}}, credit.Options{})
		require.ErrorIs(t, err, credit.ErrNotFinite)
		require.ErrorContains(t, err, want)
	}
	_, _, err := TurnGAE(one, [][]float64{{nan, 0}}, [][]credit.Span{{credittest.At(0, 2)}}, credit.Options{ValueAt: credit.FinalToken})
	require.ErrorContains(t, err, "row 0, token 0 is NaN")
}
