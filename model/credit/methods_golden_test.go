package credit

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/golden"
	"github.com/reprise-rl/reprise/model/loss"
)

// within compares numbers by rows.
func within(t *testing.T, tolerance float64, want, got [][]float64) {
	t.Helper()
	require.Len(t, got, len(want))
	for row := range want {
		golden.Near(t, want[row], got[row], tolerance, "row %d", row)
	}
}

// spansOf are turns of the given lengths, one after another.
func spansOf(lengths []int) (spans []Span, end int) {
	for _, n := range lengths {
		spans = append(spans, Span{end, end + n})
		end += n
	}
	return spans, end
}

func TestGDPOGolden(t *testing.T) {
	type in struct {
		Groups, Lengths []int
		Components      map[string][]float64
		Weights         map[string]float64
		Epsilon         float64
	}
	type out struct{ Sum, Advantage []float64 }
	g := golden.ReadMethod[in, out](t, "gdpo")
	for _, c := range g.Cases {
		var names []string
		for name := range c.In.Components {
			names = append(names, name)
		}
		slices.Sort(names)
		components, mask := make([][]float64, len(c.In.Groups)), make([][]bool, len(c.In.Groups))
		var weights []float64
		for _, name := range names {
			weights = append(weights, c.In.Weights[name])
			for row, v := range c.In.Components[name] {
				components[row] = append(components[row], v)
			}
		}
		for row, n := range c.In.Lengths {
			mask[row] = slices.Repeat([]bool{true}, n)
		}
		o := Options{NormalizeByStd: true, Epsilon: c.In.Epsilon}
		sums, err := ComponentSums(components, weights, c.In.Groups, o)
		require.NoError(t, err)
		golden.Near(t, c.Out.Sum, sums, g.Tolerance)
		tokens, err := GDPO(components, weights, c.In.Groups, mask, o)
		require.NoError(t, err)
		for row, advantage := range c.Out.Advantage {
			golden.Near(t, slices.Repeat([]float64{advantage}, len(mask[row])), tokens[row], g.Tolerance)
		}
	}
}

func TestEMPGGolden(t *testing.T) {
	type in struct {
		StepEntropy [][]float64 `json:"step_entropy"`
		Advantages  []float64
		K           float64
		KFuture     float64 `json:"k_future"`
		Zeta        float64
	}
	type out struct{ Scaling, Modulated, Advantage [][]float64 }
	g := golden.ReadMethod[in, out](t, "empg")
	for _, c := range g.Cases {
		m := Modulation{Gain: c.In.K, FutureGain: c.In.KFuture, Clarity: c.In.Zeta}
		places, err := entropyPlaces(c.In.StepEntropy)
		require.NoError(t, err)
		within(t, g.Tolerance, c.Out.Scaling, entropyScaling(places, m.Gain))
		before, err := modulated(c.In.Advantages, c.In.StepEntropy, m)
		require.NoError(t, err)
		within(t, g.Tolerance, c.Out.Modulated, before)
		got, err := EMPG(c.In.Advantages, c.In.StepEntropy, m)
		require.NoError(t, err)
		within(t, g.Tolerance, c.Out.Advantage, got)
	}
}

// A case's rows have two blocks, and outcome is that of the first.
func TestBlockwiseGolden(t *testing.T) {
	type in struct {
		Rewards     [][]float64
		Outcome     []int
		TokenLosses [][][]float64 `json:"token_losses"`
	}
	type out struct {
		Baseline, Advantage [][]float64
		AdvantageGroupMean  [][]float64 `json:"advantage_group_mean"`
		Loss                float64
	}
	g := golden.ReadMethod[in, out](t, "blockwise")
	for _, c := range g.Cases {
		rows := len(c.In.Rewards)
		groups, same, outcomes := make([]int, rows), make([][]int, rows), make([][]int, rows)
		mask, turns, losses := make([][]bool, rows), make([][]int32, rows), make([][]float64, rows)
		for row, o := range c.In.Outcome {
			for k, block := range c.In.TokenLosses[row] {
				outcomes[row], same[row] = append(outcomes[row], o), append(same[row], 0)
				mask[row] = append(mask[row], slices.Repeat([]bool{true}, len(block))...)
				turns[row] = append(turns[row], slices.Repeat([]int32{int32(k)}, len(block))...)
				losses[row] = append(losses[row], block...)
			}
		}
		got, _, err := Blockwise(c.In.Rewards, groups, outcomes)
		require.NoError(t, err)
		within(t, g.Tolerance, c.Out.Advantage, got)
		for row := range got {
			for k, a := range got[row] {
				require.InDelta(t, c.Out.Baseline[row][k], c.In.Rewards[row][k]-a, g.Tolerance)
			}
		}
		groupMean, _, err := Blockwise(c.In.Rewards, groups, same)
		require.NoError(t, err)
		within(t, g.Tolerance, c.Out.AdvantageGroupMean, groupMean)
		weights, err := loss.BlockWeights(mask, turns, nil)
		require.NoError(t, err)
		var sum float64
		for row := range losses {
			for i, l := range losses[row] {
				sum += weights[row][i] * l
			}
		}
		require.InDelta(t, c.Out.Loss, sum, g.Tolerance)
	}
}

func TestDrMASGolden(t *testing.T) {
	type in struct {
		Rows []struct {
			Group, Trajectory int
			Agent             string
			Reward            float64
		}
		Epsilon float64
	}
	type out struct {
		PerAgent      []float64 `json:"advantage_per_agent"`
		Global        []float64 `json:"advantage_global"`
		Amplification map[string]float64
	}
	g := golden.ReadMethod[in, out](t, "drmas")
	for _, c := range g.Cases {
		// Rows of a trajectory are adjacent.
		var returns [][]float64
		var agents [][]string
		var groups []int
		for i, r := range c.In.Rows {
			if i == 0 || r.Trajectory != c.In.Rows[i-1].Trajectory {
				returns, agents, groups = append(returns, nil), append(agents, nil), append(groups, r.Group)
			}
			at := len(returns) - 1
			returns[at], agents[at] = append(returns[at], r.Reward), append(agents[at], r.Agent)
		}
		o := Options{NormalizeByStd: true, Epsilon: c.In.Epsilon}
		got, err := DrMAS(returns, agents, groups, o)
		require.NoError(t, err)
		golden.Near(t, c.Out.PerAgent, slices.Concat(got...), g.Tolerance)

		// The authors' code without the method.
		means := make([]float64, len(returns))
		for row, turns := range returns {
			means[row], _ = MeanStd(turns)
		}
		rows, err := GRPO(means, groups, o)
		require.NoError(t, err)
		var global []float64
		for row, turns := range returns {
			global = append(global, slices.Repeat([]float64{rows[row]}, len(turns))...)
		}
		golden.Near(t, c.Out.Global, global, g.Tolerance)

		factors, err := Amplifications(returns, agents, groups)
		require.NoError(t, err)
		require.Len(t, factors, len(c.Out.Amplification))
		for _, f := range factors {
			want, ok := c.Out.Amplification[fmt.Sprintf("%d/%s", f.Group, f.Agent)]
			require.True(t, ok, "group %d, agent %s", f.Group, f.Agent)
			require.InDelta(t, want, f.Factor, g.Tolerance)
		}
	}
}

// The worked numbers of the methods' descriptions.
func TestMethodsWorked(t *testing.T) {
	four := []int{0, 0, 0, 0}
	sums, err := ComponentSums([][]float64{{1, 0}, {0, 1}, {0, 1}, {0, 0}}, []float64{1, 1}, four, Options{NormalizeByStd: true, Epsilon: 1e-6})
	require.NoError(t, err)
	golden.Near(t, []float64{.634, .366, .366, -1.366}, sums, 1e-3)

	blocks := [][]float64{{0, -.04}, {0, -.16}, {0, -.01}, {0, -.25}}
	got, alone, err := Blockwise(blocks, four, [][]int{{1, 1}, {2, 1}, {3, 0}, {4, 0}})
	require.NoError(t, err)
	require.Zero(t, alone, "the first turn's outcome is not read")
	within(t, 1e-12, [][]float64{{0, .06}, {0, -.06}, {0, .12}, {0, -.12}}, got)
	got, alone, err = Blockwise(blocks, four, [][]int{{0, 1}, {0, 1}, {0, 1}, {0, 0}})
	require.NoError(t, err)
	require.Equal(t, 1, alone)
	require.Zero(t, got[3][1], "a turn alone learns nothing")
	got, _, err = Blockwise(blocks, four, [][]int{{0, 0}, {0, 0}, {0, 0}, {0, 0}})
	require.NoError(t, err)
	within(t, 1e-12, [][]float64{{0, .075}, {0, -.045}, {0, .105}, {0, -.135}}, got)

	// One agent that speaks once a row: GRPO.
	e := randomEpisodes(t, 5, 12)
	o := Options{NormalizeByStd: true, Epsilon: 1e-6, Floor: .1}
	want, err := GRPO(e.returns, e.groups, o)
	require.NoError(t, err)
	var returns [][]float64
	var agents [][]string
	for _, r := range e.returns {
		returns, agents = append(returns, []float64{r}), append(agents, []string{"walker"})
	}
	mas, err := DrMAS(returns, agents, e.groups, o)
	require.NoError(t, err)
	require.Equal(t, want, slices.Concat(mas...))
}

// With one turn a row, TurnReturns is GAE over it; the critic learns one token of each turn.
func TestTurnReturns(t *testing.T) {
	rewards, turns := [][]float64{{1, 2}}, make([][]Span, 1)
	turns[0], _ = spansOf([]int{2, 3})
	values := [][]float64{{.5, .25, -1, 0, 4}}
	// δ_1 = 2 − V_1, δ_0 = 1 + γV_1 − V_0, A_0 = δ_0 + γλA_1.
	for place, want := range map[string]struct {
		advantages, returns []float64
		learns              []bool
	}{
		LastPromptToken: {[]float64{.75, .75, 3, 3, 3}, []float64{1.25, 0, 2, 0, 0}, []bool{true, false, true, false, false}},
		FinalToken:      {[]float64{2.25, 2.25, -2, -2, -2}, []float64{0, 2.5, 0, 0, 2}, []bool{false, true, false, false, true}},
	} {
		a, g, learns, err := TurnReturns(rewards, values, turns, Options{TurnGamma: .5, TurnLambda: .5, ValueAt: place})
		require.NoError(t, err)
		require.Equal(t, want.advantages, a[0], place)
		require.Equal(t, want.returns, g[0], place)
		require.Equal(t, want.learns, learns[0], place)
	}
	white, _, _, err := TurnReturns(rewards, values, turns, Options{TurnGamma: .5, TurnLambda: .5, Whiten: true})
	require.NoError(t, err)
	var sum float64
	for _, a := range white[0] {
		sum += a
	}
	require.InDelta(t, 0, sum, 1e-12)
	_, _, _, err = TurnReturns(rewards, values, turns, Options{ValueAt: "middle"})
	require.ErrorIs(t, err, ErrInput)
	require.True(t, strings.Contains(err.Error(), `value place "middle"`))
}
