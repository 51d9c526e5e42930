package credit

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/loss"
)

func TestErrors(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	one, mask := [][]float64{{0, 1}}, [][]bool{{true, true}}
	spans := [][]Span{{{0, 2}}}
	state := []StateValue{{Key: "a", Count: 1, Value: 0}}
	first := func(_ any, err error) error { return err }
	second := func(_, _ any, err error) error { return err }
	gae := func(r, v [][]float64, m [][]bool, o Options) error {
		a, g, err := GAE(r, v, m, o)
		return second(a, g, err)
	}
	turn := func(r, v [][]float64, s [][]Span, o Options) error {
		a, g, err := TurnGAE(r, v, s, o)
		return second(a, g, err)
	}
	kl := func(r, l, ref [][]float64, m [][]bool, c float64, e loss.KLEstimator) error {
		_, _, err := KLInReward(r, l, ref, m, c, e)
		return err
	}
	for name, c := range map[string]struct {
		err  error
		kind error
		text string
	}{
		"gae gamma":      {gae(one, one, mask, Options{Gamma: 1.1}), ErrInput, "Gamma is 1.1, must be from 0 to 1"},
		"gae lambda":     {gae(one, one, mask, Options{Lambda: nan}), ErrInput, "Lambda is NaN"},
		"gae rows":       {gae(one, nil, mask, Options{}), ErrInput, "0 rows of values, 1 of the mask"},
		"gae tokens":     {gae([][]float64{{1}}, one, mask, Options{}), ErrInput, "row 0 has 1 rewards for 2 tokens"},
		"gae reward":     {gae([][]float64{{0, inf}}, one, mask, Options{}), ErrRewards, "row 0, token 1 has +Inf"},
		"gae value":      {gae(one, [][]float64{{nan, 0}}, mask, Options{}), ErrNotFinite, "the value at row 0, token 0 is NaN"},
		"gae unsampled":  {gae(one, one, [][]bool{{true, false}}, Options{}), ErrRewards, "row 0 has 1 at token 1, which was not sampled"},
		"turn gamma":     {turn([][]float64{{1}}, one, spans, Options{TurnGamma: -1}), ErrInput, "TurnGamma is -1"},
		"turn lambda":    {turn([][]float64{{1}}, one, spans, Options{TurnLambda: 2}), ErrInput, "TurnLambda is 2"},
		"turn inside":    {turn([][]float64{{1}}, one, spans, Options{Lambda: 2}), ErrInput, "Lambda is 2"},
		"turn place":     {turn([][]float64{{1}}, one, spans, Options{ValueAt: "middle"}), ErrInput, `value place "middle"`},
		"turn rewards":   {turn([][]float64{{1, 2}}, one, spans, Options{}), ErrInput, "row 0 has 2 rewards for 1 turns"},
		"turn rows":      {turn(nil, one, spans, Options{}), ErrInput, "rewards of 0 rows, turns of 1"},
		"turn reward":    {turn([][]float64{{nan}}, one, spans, Options{}), ErrRewards, "row 0, turn 0 has NaN"},
		"turn value":     {turn([][]float64{{1}}, [][]float64{{inf, 0}}, spans, Options{}), ErrNotFinite, "the value of row 0, turn 0 is +Inf"},
		"inner value":    {turn([][]float64{{1}}, [][]float64{{0, inf}}, spans, Options{}), ErrNotFinite, "the value at row 0, token 1 is +Inf"},
		"upper rows":     {first(TurnAdvantages(one, nil, 1, 1)), ErrInput, "rewards of 1 rows, values of 0"},
		"upper turns":    {first(TurnAdvantages(one, [][]float64{{1}}, 1, 1)), ErrInput, "row 0 has 2 rewards and 1 values"},
		"span beyond":    {first(Mask([][]Span{{{0, 3}}}, []int{2})), ErrInput, "row 0, turn 0 is at tokens 0 to 3, where 0 to 2 are free"},
		"span empty":     {first(Mask([][]Span{{{1, 1}}}, []int{2})), ErrInput, "turn 0"},
		"span overlaps":  {first(Mask([][]Span{{{0, 2}, {1, 3}}}, []int{3})), ErrInput, "turn 1 is at tokens 1 to 3, where 2 to 3 are free"},
		"span negative":  {first(Mask([][]Span{{{-1, 1}}}, []int{2})), ErrInput, "turn 0"},
		"span rows":      {first(Mask(nil, []int{2})), ErrInput, "turns of 0 rows, lengths of 1"},
		"place":          {first(TokenRewards([][]float64{{1}}, spans, []int{2}, "")), ErrInput, `reward place ""`},
		"place reward":   {first(TokenRewards([][]float64{{nan}}, spans, []int{2}, AtEnd)), ErrRewards, "row 0, turn 0"},
		"place spans":    {first(TokenRewards([][]float64{{1}}, spans, []int{1}, AtEnd)), ErrInput, "turn 0"},
		"place rewards":  {first(TokenRewards([][]float64{{}}, spans, []int{2}, AtEnd)), ErrInput, "row 0 has 0 rewards"},
		"sums":           {first(TurnSums([][]float64{{1}}, spans)), ErrInput, "turn 0"},
		"over rows":      {first(OverRows(nil, mask)), ErrInput, "0 advantages for 1 rows"},
		"over turns":     {first(OverTurns(one, spans, []int{2})), ErrInput, "row 0 has 2 advantages for 1 turns"},
		"over spans":     {first(OverTurns(one, spans, []int{1})), ErrInput, "turn 0"},
		"leave one out":  {first(LeaveOneOut([]float64{inf}, []int{0})), ErrRewards, "row 0 has +Inf"},
		"reinforce":      {first(ReinforcePlusPlus(one, mask, 2)), ErrInput, "Gamma is 2"},
		"reinforce rows": {first(ReinforcePlusPlus(nil, mask, 1)), ErrInput, "0 rows of rewards"},
		"baseline":       {first(ReinforcePlusPlusBaseline([]float64{nan}, []int{0}, mask)), ErrRewards, "row 0"},
		"baseline rows":  {first(ReinforcePlusPlusBaseline(nil, nil, mask)), ErrInput, "0 advantages"},
		"gigpo gamma":    {first(GiGPO(nil, nil, nil, Options{Gamma: 3})), ErrInput, "Gamma is 3"},
		"gigpo weight":   {first(GiGPO(nil, nil, nil, Options{StepWeight: inf})), ErrInput, "StepWeight is +Inf"},
		"gigpo epsilon":  {first(GiGPO(nil, nil, nil, Options{Epsilon: -1})), ErrInput, "Epsilon is -1"},
		"gigpo reward":   {first(GiGPO([][]float64{{nan}}, []int{0}, [][]string{{"a"}}, Options{})), ErrRewards, "row 0, turn 0"},
		"gigpo keys":     {first(GiGPO(one, []int{0}, [][]string{{"a"}}, Options{})), ErrInput, "row 0 has 2 rewards and 1 state keys"},
		"gigpo rows":     {first(GiGPO(one, []int{0}, nil, Options{})), ErrInput, "rewards of 1 rows, state keys of 0"},
		"gigpo groups":   {first(GiGPO(one, nil, [][]string{{"a", "b"}}, Options{})), ErrRewards, "1 rewards, 0 group indexes"},
		"rate":           {first(Observe(nil, nil, nil, 2)), ErrInput, "rate is 2"},
		"states":         {first(Observe(nil, []float64{1}, nil, 0)), ErrRewards, "1 rewards, 0 state keys"},
		"state reward":   {first(StateBaseline(nil, []float64{nan}, []string{"a"})), ErrRewards, "row 0 has NaN"},
		"states twice":   {first(StateBaseline(append(state, state...), nil, nil)), ErrInput, "not sorted by key at 1"},
		"state value":    {first(StateBaseline([]StateValue{{Key: "a", Count: 1, Value: nan}}, nil, nil)), ErrInput, "state value 0"},
		"state count":    {first(StateBaseline([]StateValue{{Key: "a"}}, nil, nil)), ErrInput, "of 0 trajectories"},
		"kl coefficient": {kl(one, one, one, mask, -1, loss.K1), ErrInput, "the coefficient is -1"},
		"kl estimator":   {kl(one, one, one, mask, 1, "k4"), ErrInput, `KL estimator "k4"`},
		"kl rewards":     {kl(nil, one, one, mask, 1, loss.K1), ErrInput, "0 rows of rewards"},
		"kl log-probs":   {kl(one, nil, one, mask, 1, loss.K1), ErrInput, "0 rows of log-probs"},
		"kl reference":   {kl(one, one, nil, mask, 1, loss.K1), ErrInput, "0 rows of reference log-probs"},
		"kl not finite":  {kl(one, [][]float64{{0, nan}}, one, mask, 1, loss.K1), ErrNotFinite, "row 0, token 1 are NaN and 1"},
	} {
		t.Run(name, func(t *testing.T) {
			require.ErrorIs(t, c.err, c.kind)
			require.ErrorContains(t, c.err, c.text)
		})
	}
}

// A row alone in its batch, whose state is new, keeps its reward.
func TestStateBaselineAlone(t *testing.T) {
	got, err := StateBaseline(nil, []float64{3}, []string{"a"})
	require.NoError(t, err)
	require.Equal(t, []float64{3}, got)
}

func TestFinite(t *testing.T) {
	for _, x := range []float64{0, math.Copysign(0, -1), -1, math.MaxFloat64, -math.MaxFloat64, math.SmallestNonzeroFloat64} {
		require.True(t, Finite(x), "%v", x)
	}
	for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		require.False(t, Finite(x), "%v", x)
	}
}
