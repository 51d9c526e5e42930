package hiper

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/credit"
	"github.com/reprise-rl/reprise/model/credit/credittest"
	"github.com/reprise-rl/reprise/model/golden"
)

func TestComputeWorked(t *testing.T) { credittest.ComputeWorked(t, Entry) }

// A case is one trajectory. high and normalised numbers are at the first turns of segments.
func TestHiPERGolden(t *testing.T) {
	type in struct {
		Rewards       []float64
		Switch        []bool
		Low           []float64 `json:"value_low"`
		High          []float64 `json:"value_high"`
		Term          []float64 `json:"value_term"`
		Gamma         float64
		TurnLambda    float64 `json:"lambda_turn"`
		SegmentLambda float64 `json:"lambda_segment"`
		Done          bool
		Bootstrap     bool `json:"bootstrap_truncated"`
	}
	type out struct {
		Segments       [][2]int
		Low            []float64 `json:"advantage_low"`
		High           []float64 `json:"advantage_high_at_starts"`
		Term           []float64 `json:"advantage_term"`
		ReturnLow      []float64 `json:"return_low"`
		ReturnHigh     []float64 `json:"return_high_at_starts"`
		ReturnTerm     []float64 `json:"return_term"`
		NormalizedLow  []float64 `json:"normalized_low"`
		NormalizedHigh []float64 `json:"normalized_high_at_starts"`
	}
	g := golden.ReadMethod[in, out](t, "hiper")
	for _, c := range g.Cases {
		got, err := HiPER(
			HiPERTurns{Rewards: c.In.Rewards, Switch: c.In.Switch, Low: c.In.Low, High: c.In.High, Choice: c.In.Term, Ended: c.In.Done},
			HiPEROptions{Gamma: c.In.Gamma, TurnLambda: c.In.TurnLambda, SegmentLambda: c.In.SegmentLambda, Bootstrap: c.In.Bootstrap},
		)
		require.NoError(t, err)
		require.Equal(t, c.Out.Segments, got.Segments)
		golden.Near(t, c.Out.Low, got.Low, g.Tolerance)
		golden.Near(t, c.Out.High, got.High, g.Tolerance)
		golden.Near(t, c.Out.Term, got.Choice, g.Tolerance)
		for k := range got.Low {
			require.InDelta(t, c.Out.ReturnLow[k], got.Low[k]+c.In.Low[k], g.Tolerance)
			require.InDelta(t, c.Out.ReturnTerm[k], got.Choice[k]+c.In.Term[k], g.Tolerance)
		}
		require.Len(t, c.Out.ReturnHigh, len(got.High))
		for j, segment := range got.Segments {
			require.InDelta(t, c.Out.ReturnHigh[j], got.High[j]+c.In.High[segment[0]], g.Tolerance)
		}
		low, err := HiPERScale(got.Low)
		require.NoError(t, err)
		golden.Near(t, c.Out.NormalizedLow, low, g.Tolerance)
		high, err := HiPERScale(got.High)
		require.NoError(t, err)
		golden.Near(t, c.Out.NormalizedHigh, high, g.Tolerance)
	}
}

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

	// With bootstrap a cut trajectory continues with its own last values.
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
	e := credittest.RandomEpisodes(t, 3, 12)
	for _, rewards := range e.Rewards {
		values := make([]float64, len(rewards))
		for k, r := range rewards {
			values[k] = r/2 - .1
		}
		all := slices.Repeat([]bool{true}, len(rewards))
		got, err := HiPER(HiPERTurns{Rewards: rewards, Switch: all, Low: values, High: values, Choice: values, Ended: true},
			HiPEROptions{Gamma: .9, TurnLambda: .5, SegmentLambda: .8})
		require.NoError(t, err)
		want := overTurns(rewards, values, .9, .8)
		golden.Near(t, want, got.High, 1e-12)
		want = overTurns(rewards, values, .9, 0)
		golden.Near(t, want, got.Low, 1e-12, "nothing is carried over a boundary")
		golden.Near(t, want, got.Choice, 1e-12)
	}
}

// overTurns is GAE over turns: A_k = r_k + γ·V_{k+1} − V_k + γλ·A_{k+1}, and 0 after the last turn.
func overTurns(rewards, values []float64, gamma, lambda float64) []float64 {
	out := make([]float64, len(rewards))
	var advantage, next float64
	for k := len(rewards) - 1; k >= 0; k-- {
		advantage = rewards[k] + gamma*next - values[k] + gamma*lambda*advantage
		out[k], next = advantage, values[k]
	}
	return out
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

// (0 − 1e-8)/(1e-8 + 1e-8): the addend of the deviation.
func TestHiPERScaleOfLittle(t *testing.T) {
	row := func(got []float64, err error) []float64 {
		require.NoError(t, err)
		return got
	}
	golden.Near(t, []float64{-.5, .5}, row(HiPERScale([]float64{0, 2e-8})), 1e-9)
}

func TestHiPERShape(t *testing.T) {
	rewards := []float64{1, 2, 3, 4}
	keeps, changed, invalid := []bool{true, true, false, true}, []bool{true, true, true, false}, []bool{true, false, false, true}
	got, err := HiPERShape(rewards, keeps, changed, invalid, HiPERShaping{Keep: -.5, Changed: -.25, Invalid: .125})
	require.NoError(t, err)
	require.Equal(t, []float64{.375, 1.25, 3, 3.375}, got)
	require.Equal(t, []float64{1, 2, 3, 4}, rewards)
	// Three of four turns keep: −2 · ¾, divided among three.
	got, err = HiPERShape(rewards, keeps, make([]bool, 4), make([]bool, 4), HiPERShaping{Keep: -2, Shared: true})
	require.NoError(t, err)
	require.Equal(t, []float64{.5, 1.5, 3, 3.5}, got)
	// A trajectory of one turn: the authors' code divides nothing among it, and has the fixed penalty.
	for shared, want := range map[bool]float64{true: 1, false: -1} {
		got, err = HiPERShape(rewards[:1], keeps[:1], changed[:1], make([]bool, 1), HiPERShaping{Keep: -2, Shared: shared, Changed: -4})
		require.NoError(t, err)
		require.Equal(t, []float64{want}, got)
	}
}

func TestErrors(t *testing.T) {
	nan := math.NaN()
	of := func(_ any, err error) error { return err }
	turn := HiPERTurns{Rewards: []float64{1}, Switch: []bool{true}, Low: []float64{1}, High: []float64{1}, Choice: []float64{1}}
	with := func(change func(*HiPERTurns)) error {
		other := turn
		change(&other)
		return of(HiPER(other, HiPEROptions{}))
	}
	credittest.Refused(t, map[string]credittest.Refusal{
		"hiper options": {of(HiPER(turn, HiPEROptions{SegmentLambda: 2})), credit.ErrInput, "SegmentLambda is 2"},
		"hiper turns":   {with(func(h *HiPERTurns) { h.Low = nil }), credit.ErrInput, "1 rewards, 1 switches, 0 low"},
		"hiper reward":  {with(func(h *HiPERTurns) { h.Rewards = []float64{nan} }), credit.ErrRewards, "row 0, turn 0 has NaN"},
		"hiper value":   {with(func(h *HiPERTurns) { h.High = []float64{nan} }), credit.ErrNotFinite, "the values of turn 0"},
		"hiper scale":   {of(HiPERScale([]float64{nan})), credit.ErrNotFinite, "advantage 0 is NaN"},
		"hiper shape":   {of(HiPERShape([]float64{1}, nil, nil, nil, HiPERShaping{})), credit.ErrInput, "1 rewards, 0 keeps"},
	})
}

// HiPER's values: those of every turn, and V^h where a segment begins.
func TestThePlacesOfValues(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for name, c := range map[string]struct {
		change func(*HiPERTurns)
		kind   error
	}{
		"V^l":              {func(h *HiPERTurns) { h.Low[1] = nan }, credit.ErrNotFinite},
		"V^c":              {func(h *HiPERTurns) { h.Choice[1] = inf }, credit.ErrNotFinite},
		"V^h of the first": {func(h *HiPERTurns) { h.High[0] = nan }, credit.ErrNotFinite},
		"V^h inside":       {func(h *HiPERTurns) { h.High[1] = nan }, nil},
		"V^h of a switch":  {func(h *HiPERTurns) { h.High[2] = nan }, credit.ErrNotFinite},
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
