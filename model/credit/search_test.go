package credit

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/golden"
)

// The worked numbers of HiPER's description, and segments that are told apart.
func TestHiPERWorked(t *testing.T) {
	in := HiPERTurns{
		Rewards: []float64{0, 0, 0, 1}, Switch: []bool{true, false, true, false},
		Low: []float64{.2, .3, .4, .5}, High: []float64{.1, math.NaN(), .6, math.NaN()}, Choice: make([]float64, 4), Ended: true,
	}
	o := HiPEROptions{Gamma: 1, TurnLambda: 1, SegmentLambda: .95}
	got, err := HiPER(in, o)
	require.NoError(t, err)
	require.Equal(t, [][2]int{{0, 1}, {2, 3}}, got.Segments)
	golden.Near(t, []float64{.4, .3, .6, .5}, got.Low, 1e-12)
	golden.Near(t, []float64{.88, .4}, got.High, 1e-12)
	golden.Near(t, []float64{.6, .6, 1, 1}, got.Choice, 1e-12, "no value of its own: what the segment returns and what follows it")

	// A cut trajectory goes on with its own last values, if that is asked for.
	in.Ended = false
	cut, err := HiPER(in, o)
	require.NoError(t, err)
	require.Equal(t, got, cut)
	o.Bootstrap = true
	cut, err = HiPER(in, o)
	require.NoError(t, err)
	golden.Near(t, []float64{.4, .3, 1.1, 1}, cut.Low, 1e-12, "V^l of the last turn is added")
	require.InDelta(t, 1, cut.High[1], 1e-12, "V^h of the last segment is added")
	in.Ended = true
	ended, err := HiPER(in, o)
	require.NoError(t, err)
	require.Equal(t, got, ended)

	// One segment, and one value for both: the subgoal's advantage is the first action's. The first
	// turn begins a segment although it does not say so.
	in.Switch, in.High = make([]bool, 4), in.Low
	one, err := HiPER(in, o)
	require.NoError(t, err)
	require.Equal(t, [][2]int{{0, 3}}, one.Segments)
	require.InDelta(t, one.Low[0], one.High[0], 1e-12)

	none, err := HiPER(HiPERTurns{}, o)
	require.NoError(t, err)
	require.Empty(t, none.Segments)
}

// With one turn a segment, and λ and values alike, the two levels are the same GAE.
func TestHiPEROfSegmentsOfOneTurn(t *testing.T) {
	e := randomEpisodes(t, 3, 12)
	for _, rewards := range e.rewards {
		values := make([]float64, len(rewards))
		for k, r := range rewards {
			values[k] = r/2 - .1
		}
		all := slices.Repeat([]bool{true}, len(rewards))
		got, err := HiPER(HiPERTurns{Rewards: rewards, Switch: all, Low: values, High: values, Choice: values, Ended: true},
			HiPEROptions{Gamma: .9, TurnLambda: .5, SegmentLambda: .8})
		require.NoError(t, err)
		want, err := TurnAdvantages([][]float64{rewards}, [][]float64{values}, .9, .8)
		require.NoError(t, err)
		golden.Near(t, want[0], got.High, 1e-12)
		want, err = TurnAdvantages([][]float64{rewards}, [][]float64{values}, .9, 0)
		require.NoError(t, err)
		golden.Near(t, want[0], got.Low, 1e-12, "nothing is carried over a boundary")
		golden.Near(t, want[0], got.Choice, 1e-12)
	}
}

func TestHiPERScale(t *testing.T) {
	got, err := HiPERScale([]float64{1, 3})
	require.NoError(t, err)
	golden.Near(t, []float64{-1, 1}, got, 1e-7)
	for _, equal := range [][]float64{{}, {.3}, {.1, .1, .1}} {
		got, err := HiPERScale(equal)
		require.NoError(t, err)
		require.Equal(t, make([]float64, len(equal)), got)
	}
}

func TestHiPERShape(t *testing.T) {
	rewards := []float64{1, 2, 3, 4}
	keeps, changed, invalid := []bool{true, true, false, true}, []bool{true, true, true, false}, []bool{true, false, false, true}
	got, err := HiPERShape(rewards, keeps, changed, invalid, HiPERShaping{Keep: -.5, Changed: -.25, Invalid: .125})
	require.NoError(t, err)
	require.Equal(t, []float64{.875, 1.25, 3, 3.375}, got)
	require.Equal(t, []float64{1, 2, 3, 4}, rewards)
	// Half of the turns keep: −2 · ½, divided among two.
	got, err = HiPERShape(rewards, keeps, make([]bool, 4), make([]bool, 4), HiPERShaping{Keep: -2, Shared: true})
	require.NoError(t, err)
	require.Equal(t, []float64{1, 1.5, 3, 3.5}, got)
}

func TestTreeGRPOWorked(t *testing.T) {
	o := Options{NormalizeByStd: true}
	// The trees are numbered within their groups.
	rewards := []float64{1, 0, 0, 0, 2, 2, 2, 2}
	groups, trees := []int{0, 0, 0, 0, 1, 1, 1, 1}, []int{0, 0, 1, 1, 0, 0, 1, 2}
	got, err := TreeGRPO(rewards, groups, trees, o)
	require.NoError(t, err)
	half := 1 / math.Sqrt2
	golden.Near(t, []float64{1.5 + half, -.5 - half, -.5, -.5, 0, 0, 0, 0}, got, 1e-12)
	code, err := TreeGRPOCode(rewards, groups, trees, o)
	require.NoError(t, err)
	golden.Near(t, []float64{half, -half, 0, 0, 0, 0, 0, 0}, code, 1e-12, "which tree is better is lost")
	// A leaf alone in its tree is compared with the group only.
	got, err = TreeGRPO([]float64{1, 3}, []int{0, 0}, []int{0, 1}, Options{})
	require.NoError(t, err)
	require.Equal(t, []float64{-1, 1}, got)
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

func TestIStarWorked(t *testing.T) {
	model := [][][]float64{{{3, 1}, {-1, -1}}, {{1}, {1}}}
	old := [][][]float64{{{0, 0}, {0, 0}}, {{0}, {0}}}
	r, err := StepRewards(model, old, .05)
	require.NoError(t, err)
	within(t, 1e-12, [][]float64{{.2, -.1}, {.05, .05}}, r)
	z := math.Sqrt(1.5)
	none, group := []float64{0, 0}, []int{0, 0}
	got, err := IStar(none, r, group, 1, Options{NormalizeByStd: true})
	require.NoError(t, err)
	within(t, 1e-12, [][]float64{{z, -z}, {0, 0}}, got)
	// First turns .2 and .05: mean .125, times 2.
	got, err = IStarCode([]float64{1, 0}, r, group, .5)
	require.NoError(t, err)
	within(t, 1e-12, [][]float64{{1 + .075, 1 - .225}, {-1 - .075, -1 - .075}}, got)
	// Groups do not see each other, and a trajectory may have no turn.
	got, err = IStarCode(none, [][]float64{{.5, 1}, {}}, []int{0, 1}, 1)
	require.NoError(t, err)
	within(t, 0, [][]float64{{.5, 1}, {}}, got)
	got, err = IStar([]float64{2, 2}, [][]float64{{.5}, {3}}, []int{0, 1}, 1, Options{NormalizeByStd: true})
	require.NoError(t, err)
	within(t, 0, [][]float64{{2}, {2}}, got)
}

func TestPromisesWorked(t *testing.T) {
	keys, outcomes := [][]string{{"a", "b", "c"}, {"a", "d", "a"}}, []float64{1, 0}
	got, err := Promises(keys[:1], outcomes[:1], .95)
	require.NoError(t, err)
	require.InDelta(t, .95*.95, got[0].Value, 1e-12)
	require.Equal(t, 1.0, got[2].Value)
	got, err = Promises([][]string{{"a", "b", "c"}, {"a", "d", "e"}}, outcomes, .95)
	require.NoError(t, err)
	require.InDelta(t, .45125, got[0].Value, 1e-12)
	code, err := PromisesCode([][]string{{"a", "b", "c"}, {"a", "d", "e"}}, outcomes, .95)
	require.NoError(t, err)
	require.InDelta(t, .5, code[0].Value, 1e-12)
	require.InDelta(t, (1-.95*.95)/2, code[4].Value, 1e-12, "a late failure is half a success")
	got, err = Promises(keys, outcomes, .95)
	require.NoError(t, err)
	require.Equal(t, "a", got[0].Key)
	require.Equal(t, 3, got[0].Visits, "each visit counts")
	got, err = Promises(nil, nil, 1)
	require.NoError(t, err)
	require.Empty(t, got)
}

func TestSearchErrors(t *testing.T) {
	nan := math.NaN()
	of := func(_ any, err error) error { return err }
	two := func(_, _ any, err error) error { return err }
	turn := HiPERTurns{Rewards: []float64{1}, Switch: []bool{true}, Low: []float64{1}, High: []float64{1}, Choice: []float64{1}}
	with := func(change func(*HiPERTurns)) error {
		other := turn
		change(&other)
		return of(HiPER(other, HiPEROptions{}))
	}
	one := [][][]float64{{{1}}}
	row := [][]float64{{1}}
	for name, c := range map[string]struct {
		err  error
		kind error
		text string
	}{
		"tree reward":       {of(TreeGRPO([]float64{nan}, []int{0}, []int{0}, Options{})), ErrRewards, "row 0 has NaN"},
		"tree rows":         {of(TreeGRPO([]float64{1}, []int{0}, nil, Options{})), ErrInput, "trees of 0 rows, 1 rewards"},
		"tree code reward":  {of(TreeGRPOCode([]float64{nan}, []int{0}, []int{0}, Options{})), ErrRewards, "row 0 has NaN"},
		"tree code rows":    {of(TreeGRPOCode([]float64{1}, []int{0}, nil, Options{})), ErrInput, "trees of 0 rows"},
		"seeupo reward":     {of(SeeUPO([]float64{nan}, []int{0})), ErrRewards, "row 0 has NaN"},
		"corrections rows":  {two(SeeUPOCorrections([]float64{1}, nil, row, .2, .2)), ErrInput, "corrections of 1 rows, log-probs of 0 before and 1 after"},
		"corrections turn":  {two(SeeUPOCorrections([]float64{1}, row, [][]float64{{}}, .2, .2)), ErrInput, "row 0 has 1 log-probs before and 0 after"},
		"corrections clip":  {two(SeeUPOCorrections(nil, nil, nil, 1, .2)), ErrInput, "a clip of 1 below"},
		"corrections above": {two(SeeUPOCorrections(nil, nil, nil, .2, nan)), ErrInput, "NaN above"},
		"corrections NaN":   {two(SeeUPOCorrections([]float64{1}, row, [][]float64{{nan}}, .2, .2)), ErrNotFinite, "the correction of row 0"},
		"step rows":         {of(StepRewards(one, nil, 1)), ErrInput, "log-probs of 1 rows by the reward model and of 0 by the policy"},
		"step beta":         {of(StepRewards(nil, nil, nan)), ErrInput, "beta NaN"},
		"step turns":        {of(StepRewards(one, [][][]float64{{}}, 1)), ErrInput, "row 0 has 1 turns by the reward model and 0"},
		"step tokens":       {of(StepRewards(one, [][][]float64{{{}}}, 1)), ErrInput, "row 0, turn 0 has 1 log-probs"},
		"step NaN":          {of(StepRewards(one, [][][]float64{{{nan}}}, 1)), ErrNotFinite, "the reward of row 0, turn 0 is NaN"},
		"istar rows":        {of(IStar([]float64{1}, nil, []int{0}, 1, Options{})), ErrInput, "1 returns, step rewards of 0 rows"},
		"istar alpha":       {of(IStarCode(nil, nil, nil, nan)), ErrInput, "alpha NaN"},
		"istar reward":      {of(IStar([]float64{1}, [][]float64{{nan}}, []int{0}, 1, Options{})), ErrRewards, "row 0, turn 0 has NaN"},
		"istar return":      {of(IStar([]float64{nan}, row, []int{0}, 1, Options{})), ErrRewards, "row 0 has NaN"},
		"promise gamma":     {of(Promises(nil, nil, 2)), ErrInput, "Gamma is 2"},
		"promise rows":      {of(Promises(nil, []float64{1}, 1)), ErrRewards, "1 rewards, 0 rows of keys"},
		"promise outcome":   {of(PromisesCode([][]string{{"a"}}, []float64{2}, 1)), ErrRewards, "the outcome of row 0 is 2"},
		"hiper options":     {of(HiPER(turn, HiPEROptions{SegmentLambda: 2})), ErrInput, "SegmentLambda is 2"},
		"hiper turns":       {with(func(h *HiPERTurns) { h.Low = nil }), ErrInput, "1 rewards, 1 switches, 0 low"},
		"hiper reward":      {with(func(h *HiPERTurns) { h.Rewards = []float64{nan} }), ErrRewards, "row 0, turn 0 has NaN"},
		"hiper value":       {with(func(h *HiPERTurns) { h.High = []float64{nan} }), ErrNotFinite, "the values of turn 0"},
		"hiper scale":       {of(HiPERScale([]float64{nan})), ErrNotFinite, "advantage 0 is NaN"},
		"hiper shape":       {of(HiPERShape([]float64{1}, nil, nil, nil, HiPERShaping{})), ErrInput, "1 rewards, 0 keeps"},
	} {
		t.Run(name, func(t *testing.T) {
			require.ErrorIs(t, c.err, c.kind)
			require.ErrorContains(t, c.err, c.text)
		})
	}
}
