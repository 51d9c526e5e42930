package loss

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/draw"
	"github.com/reprise-rl/reprise/model/golden"
)

// Ranges of options: just outside, at, and just inside.
func TestRanges(t *testing.T) {
	inf := math.Inf(1)
	mask, one := [][]bool{{true}}, [][]float64{{0}}
	of := func(_ any, err error) error { return err }
	lambda := func(x float64) error { return of(BranchWeights(mask, []bool{true}, x)) }
	divisor := func(x float64) error { return of(Weights(mask, nil, Constant, x)) }
	row := func(weights ...float64) error { return of(Weights(mask, weights, TokenMean, 0)) }
	weigh := func(m Mismatch) error { return of(m.Weigh(one, one, nil, mask)) }
	bounds := func(low, high float64) error {
		return weigh(Mismatch{Weight: NoWeight, Mask: TokenWeight, Low: low, High: high})
	}
	veto := func(x float64) error { return weigh(Mismatch{Weight: NoWeight, Veto: x}) }
	cut := func(x float64) error { return weigh(Mismatch{Weight: TokenWeight, Cap: x}) }
	batches := func(n, size, epochs int) error { return of(Minibatches(n, size, epochs, draw.Address{})) }
	pair := func(winner, loser int) error { return of(Preference([]float64{0, 0}, [][2]int{{winner, loser}})) }
	for name, c := range map[string]struct {
		err  error
		fits bool
	}{
		"lambda below 0": {lambda(-1e-9), false}, "lambda 0": {lambda(0), true}, "lambda infinite": {lambda(inf), false},
		"divisor 0": {divisor(0), false}, "divisor above 0": {divisor(1e-9), true}, "divisor below 0": {divisor(-1), false},
		"divisor infinite":   {divisor(inf), false},
		"row weight below 0": {row(-1e-9), false}, "row weight 0": {row(0), true}, "row weight infinite": {row(inf), false},
		"two for one row":                {row(1, 1), false},
		"blocks of a row weight below 0": {of(BlockWeights(mask, [][]int32{{0}}, []float64{-1})), false},
		"aggregation":                    {of(Weights(mask, nil, TurnMean, 1)), false},
		"low below 0":                    {bounds(-1e-9, 1), false}, "low 0": {bounds(0, 1), true}, "high is low": {bounds(1, 1), true},
		"high below low": {bounds(1, .999), false},
		"veto below 0":   {veto(-1e-9), false}, "veto 0": {veto(0), true}, "veto below 1": {veto(.999), true}, "veto 1": {veto(1), false},
		"cap 0": {cut(0), false}, "cap above 0": {cut(1e-9), true}, "cap below 0": {cut(-1), false},
		"one item": {batches(1, 1, 1), true}, "no item": {batches(0, 1, 1), false}, "minibatches of none": {batches(1, 0, 1), false},
		"no epoch":       {batches(1, 1, 0), false},
		"winner below 0": {pair(-1, 1), false}, "loser below 0": {pair(1, -1), false}, "winner 0": {pair(0, 1), true},
		"winner the last": {pair(1, 0), true},
		"winner beyond":   {pair(2, 0), false}, "loser beyond": {pair(0, 2), false},
		"shape of rows": {CheckShape("x", nil, mask), false}, "of tokens": {CheckShape("x", [][]float64{{0, 0}}, mask), false},
		"shape":           {CheckShape("x", one, mask), true},
		"below the least": {CheckAtLeast("x", 1.999, 2), false}, "the least": {CheckAtLeast("x", 2, 2), true},
		"infinite":              {CheckAtLeast("x", inf, 2), false},
		"turns of fewer rows":   {of(Mismatch{Weight: TurnWeight, Cap: 1}.Weigh(one, one, [][]int{}, mask)), false},
		"turns of fewer tokens": {of(Mismatch{Weight: TurnWeight, Cap: 1}.Weigh(one, one, [][]int{{}}, mask)), false},
	} {
		if c.fits {
			require.NoError(t, c.err, name)
		} else {
			require.ErrorIs(t, c.err, ErrInput, name)
		}
	}
	for _, e := range []KLEstimator{"k1", "k2", "k3", "abs"} {
		require.True(t, e.Valid(), e)
	}
	require.False(t, KLEstimator("").Valid() || KLEstimator("k4").Valid())
}

// Probabilities of 0 and 1, equal scores, bounds that are just missed, met and passed.
func TestEdges(t *testing.T) {
	// K3 is e^{−d} + d − 1, at most 10: at d = −2.61 it is 9.989051, at −2.615 10.052271.
	for d, want := range map[float64][2]float64{
		0: {0, 0}, -2.61: {9.9890508, -12.5990508}, -2.615: {10, 0}, -50: {10, 0}, 5: {4.0067379, .9932621}, 50: {10, 0},
	} {
		kl, by := K3.Estimate(d, 0)
		golden.Near(t, want[:], []float64{kl, by}, 1e-6, d)
	}
	for d, want := range map[float64][2]float64{0: {0, 0}, .5: {.5, 1}, -.5: {.5, -1}} {
		kl, by := KAbs.Estimate(d, 0)
		require.Equal(t, want, [2]float64{kl, by}, d)
	}

	// One token has no variance; of two the errors −1, 1 have 2, the targets 0, 4 have 8.
	explained := func(values, returns []float64, mask ...bool) float64 {
		got, err := ExplainedVariance([][]float64{values}, [][]float64{returns}, [][]bool{mask})
		require.NoError(t, err)
		return got
	}
	require.Equal(t, 0.0, explained([]float64{1, 9}, []float64{0, 4}, true, false))
	require.InDelta(t, 1-2/8.00001, explained([]float64{1, 3}, []float64{0, 4}, true, true), 1e-12)
	require.Equal(t, 1.0, explained([]float64{1, 1}, []float64{2, 2}, true, true), "equal targets, equal errors")

	// The whole in one, in two and in three, also where the last is just full.
	for size, want := range map[int][]int{1: {1, 1, 1, 1}, 2: {2, 2}, 3: {3, 1}, 4: {4}, 5: {4}} {
		got, err := Minibatches(4, size, 1, draw.Address{})
		require.NoError(t, err)
		var sizes []int
		for _, items := range got {
			sizes = append(sizes, len(items))
		}
		require.Equal(t, want, sizes, "minibatches of %d", size)
	}

	// Row 1 has no token, row 3 no weight. Σω = 1 + 3 = 4, Σωn = 2 + 9 = 11.
	mask := [][]bool{{true, true, false}, {false}, {true, true, true}, {true, true}}
	for aggregation, want := range map[Aggregation][2]float64{
		TokenMean: {1. / 11, 3. / 11}, SeqMeanTokenSum: {1. / 4, 3. / 4}, SeqMeanTokenMean: {1. / 8, 1. / 4}, Constant: {1. / 20, 3. / 20},
		SumConstant: {1. / 5, 3. / 5},
	} {
		got, err := Weights(mask, []float64{1, 7, 3, 0}, aggregation, 5)
		require.NoError(t, err)
		near(t, [][]float64{{want[0], want[0], 0}, {0}, {want[1], want[1], want[1]}, {0, 0}}, got)
	}
	for _, aggregation := range []Aggregation{TokenMean, SeqMeanTokenSum, SeqMeanTokenMean, Constant} {
		got, err := Weights([][]bool{{true}, {false}}, []float64{0, 1}, aggregation, 2)
		require.NoError(t, err)
		require.Equal(t, [][]float64{{0}, {0}}, got, "no row counts: %s", aggregation)
	}
	branches, err := BranchWeights([][]bool{{true, true}, {true, false, true}, {true}}, []bool{true, false, true}, .75)
	require.NoError(t, err)
	require.Equal(t, [][]float64{{.25, .25}, {.5, 0, .5}, {.25}}, branches)

	// −log σ(q_winner − q_loser): ln 2 of equal scores. Of two pairs the mean, ln 2 and ln(1 + e^{−ln 3}) = ln 4/3.
	scores, pairs := []float64{1, 1 + math.Log(3), 1}, [][2]int{{0, 2}, {1, 0}}
	preference, err := Preference(scores, pairs)
	require.NoError(t, err)
	require.InDelta(t, (math.Ln2+math.Log(4./3))/2, preference, 1e-12)
	// By the scores: winner −σ(q_loser − q_winner)/2, so −¼ and ¼ of the equal ones, −⅛ and ⅛ of the others.
	golden.Near(t, []float64{-.25 + .125, -.125, .25}, PreferenceGradient(scores, pairs), 1e-12)
	require.Equal(t, []float64{0, 0}, PreferenceGradient([]float64{1, 2}, nil))
}

// Weights at their bounds, and what a batch says of them, as figures.
func TestMismatchEdges(t *testing.T) {
	weigh := func(m Mismatch, logs ...float64) Weighed {
		mask := make([]bool, len(logs))
		for i := range mask {
			mask[i] = true
		}
		got, err := m.Weigh([][]float64{logs}, [][]float64{make([]float64, len(logs))}, nil, [][]bool{mask})
		require.NoError(t, err)
		return got
	}
	masked := func(u Unit, low, high float64) Mismatch {
		return Mismatch{Weight: NoWeight, Mask: u, Low: low, High: high}
	}
	half, double := math.Log(.5), math.Log(2)
	for _, c := range []struct {
		what string
		m    Mismatch
		logs []float64
		want []float64
	}{
		{"below the cap", Mismatch{Weight: TokenWeight, Cap: 2.001}, []float64{double}, []float64{2}},
		{"above it", Mismatch{Weight: TokenWeight, Cap: 1.999}, []float64{double}, []float64{1.999}},
		{"at the bounds", masked(TokenWeight, .5, 2), []float64{half, double}, []float64{1, 1}},
		{"just outside", masked(TokenWeight, .501, 1.999), []float64{half, double, 0}, []float64{0, 0, 1}},
		{"at the veto", Mismatch{Weight: NoWeight, Veto: .5}, []float64{half, 0}, []float64{1, 1}},
		{"below it", Mismatch{Weight: NoWeight, Veto: .501}, []float64{half, 0}, []float64{0, 0}},
		{"a veto of 0", Mismatch{Weight: NoWeight}, []float64{-1e9, 0}, []float64{1, 1}},
		// The mean of 4 and 1 is 2, their product 4.
		{"geometric", masked(Geometric, 1.999, 2.001), []float64{2 * double, 0}, []float64{1, 1}},
		{"of the sequence", masked(SequenceWeight, 3.999, 4.001), []float64{2 * double, 0}, []float64{1, 1}},
		// e^20 and e^−20, whatever is beyond.
		{
			"large", Mismatch{Weight: TokenWeight, Cap: 1e12}, []float64{20, 25, 19.9},
			[]float64{485165195.4097903, 485165195.4097903, 438995622.7355058},
		},
		{
			"small", Mismatch{Weight: TokenWeight, Cap: 2}, []float64{-20, -25, -19.9},
			[]float64{2.061153622438558e-9, 2.061153622438558e-9, 2.277927041205371e-9},
		},
	} {
		got := weigh(c.m, c.logs...)
		require.Len(t, got.Weights[0], len(c.want), c.what)
		for i, w := range c.want {
			require.InDelta(t, w, got.Weights[0][i], 1e-12*w, c.what)
		}
	}
	// Weights 1, 3 and one that is dropped: mean 4/3, (1 + 3)²/(3·10), and 3/(4/3) if they are normalized. K3 is
	// w − ln w − 1 of 1, 3 and 8.
	m := Mismatch{Weight: TokenWeight, Cap: 9, Mask: TokenWeight, High: 5}
	got := weigh(m, 0, math.Log(3), math.Log(8))
	golden.Near(t, []float64{1, 3, 0}, got.Weights[0], 1e-12)
	golden.Near(t, []float64{16. / 30, (2 - math.Log(3) + 7 - math.Log(8)) / 3, 1. / 3, 4. / 3, 3},
		[]float64{got.EffectiveSamples, got.K3, got.Dropped, got.Mean, got.Max}, 1e-12)
	m.Normalize = true
	got = weigh(m, 0, math.Log(3), math.Log(8))
	golden.Near(t, []float64{.75, 2.25, 0}, got.Weights[0], 1e-12)
	require.InDelta(t, 4./3, got.Mean, 1e-12)

	none, err := m.Weigh([][]float64{{1}, {}}, [][]float64{{0}, {}}, nil, [][]bool{{false}, {}})
	require.NoError(t, err)
	require.Equal(t, Weighed{Weights: [][]float64{{0}, {}}}, none)
	m.High = .5
	require.Equal(t, Weighed{Weights: [][]float64{{0}}, Dropped: 1}, weigh(m, 0))
}
