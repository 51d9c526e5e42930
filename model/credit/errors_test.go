package credit_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/credit"
	"github.com/reprise-rl/reprise/model/credit/credittest"
	"github.com/reprise-rl/reprise/model/loss"
)

func TestErrors(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	one, mask := [][]float64{{0, 1}}, [][]bool{{true, true}}
	spans := [][]credit.Span{{{0, 2}}}
	first := func(_ any, err error) error { return err }
	kl := func(r, l, ref [][]float64, m [][]bool, c float64, e loss.KLEstimator) error {
		_, _, err := credit.KLInReward(r, l, ref, m, c, e)
		return err
	}
	credittest.Refused(t, map[string]credittest.Refusal{
		"span beyond":    {first(credit.Mask([][]credit.Span{{{0, 3}}}, []int{2})), credit.ErrInput, "row 0, turn 0 is at tokens 0 to 3, where 0 to 2 are free"},
		"span empty":     {first(credit.Mask([][]credit.Span{{{1, 1}}}, []int{2})), credit.ErrInput, "turn 0"},
		"span overlaps":  {first(credit.Mask([][]credit.Span{{{0, 2}, {1, 3}}}, []int{3})), credit.ErrInput, "turn 1 is at tokens 1 to 3, where 2 to 3 are free"},
		"span negative":  {first(credit.Mask([][]credit.Span{{{-1, 1}}}, []int{2})), credit.ErrInput, "turn 0"},
		"span rows":      {first(credit.Mask(nil, []int{2})), credit.ErrInput, "turns of 0 rows, lengths of 1"},
		"place":          {first(credit.TokenRewards([][]float64{{1}}, spans, []int{2}, "")), credit.ErrInput, `reward place ""`},
		"place reward":   {first(credit.TokenRewards([][]float64{{nan}}, spans, []int{2}, credit.AtEnd)), credit.ErrRewards, "row 0, turn 0"},
		"place spans":    {first(credit.TokenRewards([][]float64{{1}}, spans, []int{1}, credit.AtEnd)), credit.ErrInput, "turn 0"},
		"place rewards":  {first(credit.TokenRewards([][]float64{{}}, spans, []int{2}, credit.AtEnd)), credit.ErrInput, "row 0 has 0 rewards"},
		"sums":           {first(credit.TurnSums([][]float64{{1}}, spans)), credit.ErrInput, "turn 0"},
		"over rows":      {first(credit.OverRows(nil, mask)), credit.ErrInput, "0 advantages for 1 rows"},
		"over turns":     {first(credit.OverTurns(one, spans, []int{2})), credit.ErrInput, "row 0 has 2 advantages for 1 turns"},
		"over spans":     {first(credit.OverTurns(one, spans, []int{1})), credit.ErrInput, "turn 0"},
		"leave one out":  {first(credit.LeaveOneOut([]float64{inf}, []int{0})), credit.ErrRewards, "row 0 has +Inf"},
		"rate":           {first(credit.Observe(nil, nil, nil, 2)), credit.ErrInput, "rate is 2"},
		"states":         {first(credit.Observe(nil, []float64{1}, nil, 0)), credit.ErrRewards, "1 rewards, 0 state keys"},
		"kl coefficient": {kl(one, one, one, mask, -1, loss.K1), credit.ErrInput, "the coefficient is -1"},
		"kl estimator":   {kl(one, one, one, mask, 1, "k4"), credit.ErrInput, `KL estimator "k4"`},
		"kl rewards":     {kl(nil, one, one, mask, 1, loss.K1), credit.ErrInput, "0 rows of rewards"},
		"kl log-probs":   {kl(one, nil, one, mask, 1, loss.K1), credit.ErrInput, "0 rows of log-probs"},
		"kl reference":   {kl(one, one, nil, mask, 1, loss.K1), credit.ErrInput, "0 rows of reference log-probs"},
		"kl not finite":  {kl(one, [][]float64{{0, nan}}, one, mask, 1, loss.K1), credit.ErrNotFinite, "row 0, token 1 are NaN and 1"},
	})
}

func TestWorthAStepErrors(t *testing.T) {
	one := [][]float64{{1}}
	worth := func(least float64) error {
		_, err := credit.WorthAStep(one, least)
		return err
	}
	credittest.Refused(t, map[string]credittest.Refusal{
		"worth": {worth(-1), credit.ErrInput, "the least advantage is -1"},
	})
}

func TestFinite(t *testing.T) {
	for _, x := range []float64{0, math.Copysign(0, -1), -1, math.MaxFloat64, -math.MaxFloat64, math.SmallestNonzeroFloat64} {
		require.True(t, credit.Finite(x), "%v", x)
	}
	for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		require.False(t, credit.Finite(x), "%v", x)
	}
}
