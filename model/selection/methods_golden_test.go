package selection

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/credit"
	"github.com/reprise-rl/reprise/model/golden"
)

// A case is one group. The golden wants an advantage of 0 for the others.
func TestGFPOGolden(t *testing.T) {
	type in struct {
		Rewards, Lengths []float64
		Metric           string
		Keep             int
		Epsilon          float64
	}
	type out struct {
		Kept      []int
		Advantage []float64
	}
	g := golden.ReadMethod[in, out](t, "gfpo")
	for _, c := range g.Cases {
		kept, err := Members(Groups{Rewards: [][]float64{c.In.Rewards}, Lengths: [][]float64{c.In.Lengths}}, c.In.Metric, c.In.Keep)
		require.NoError(t, err)
		require.Equal(t, [][]int{c.Out.Kept}, kept)
		rewards := make([]float64, len(kept[0]))
		for i, member := range kept[0] {
			rewards[i] = c.In.Rewards[member]
		}
		advantages, err := credit.GRPO(rewards, make([]int, len(rewards)), credit.Options{NormalizeByStd: true, Epsilon: c.In.Epsilon})
		require.NoError(t, err)
		all := make([]float64, len(c.In.Rewards))
		for i, member := range kept[0] {
			all[member] = advantages[i]
		}
		golden.Near(t, c.Out.Advantage, all, g.Tolerance)
	}
}

// The golden's deviations are those of a population, and its groups have the same size: the
// ranking is the same. It lists the kept groups from the highest deviation to the lowest.
func TestPyVisionGolden(t *testing.T) {
	type in struct {
		Accuracy    []float64
		ToolCalls   []float64 `json:"tool_calls"`
		Broken      []bool
		Group       []int
		Coefficient float64
		KeepGroups  int `json:"keep_groups"`
	}
	type out struct {
		Returns    []float64
		GroupStd   []float64 `json:"group_std"`
		Kept       []int
		Advantages []float64
	}
	g := golden.ReadMethod[in, out](t, "pyvision")
	for _, c := range g.Cases {
		groups := slices.Max(c.In.Group) + 1
		in := Groups{Rewards: make([][]float64, groups), Broken: make([][]bool, groups)}
		var returns []float64
		for row, group := range c.In.Group {
			r := c.In.Accuracy[row]
			if r == 1 { // tool calls are paid only when the answer is right
				r += c.In.Coefficient * c.In.ToolCalls[row]
			}
			returns = append(returns, r)
			in.Rewards[group], in.Broken[group] = append(in.Rewards[group], r), append(in.Broken[group], c.In.Broken[row])
		}
		golden.Near(t, c.Out.Returns, returns, g.Tolerance)
		got, err := Select(in, Options{Method: topCount.Name, Value: float64(c.In.KeepGroups), DropFlat: true, DropBroken: true})
		require.NoError(t, err)
		for group, want := range c.Out.GroupStd {
			n := float64(len(in.Rewards[group]))
			require.InDelta(t, want, got.Spreads[group]*math.Sqrt((n-1)/n), g.Tolerance)
		}
		byRank := slices.Clone(got.Kept)
		slices.SortStableFunc(byRank, func(a, b int) int {
			return slices.Index(ranked(got.Spreads, Largest), a) - slices.Index(ranked(got.Spreads, Largest), b)
		})
		require.Equal(t, c.Out.Kept, byRank)
		advantages, err := credit.DrGRPO(returns, c.In.Group)
		require.NoError(t, err)
		golden.Near(t, c.Out.Advantages, advantages, g.Tolerance)
	}
}

// The filter of trajectories keeps those farthest from the mean, of either sign.
func TestMembersByDeviation(t *testing.T) {
	g := Groups{Rewards: [][]float64{{0, 0, 0, 1}, {1, 2, 3, 6}}, Lengths: [][]float64{{1, 1, 1, 1}, {1, 1, 1, 1}}}
	kept, err := Members(g, "deviation", 2)
	require.NoError(t, err)
	require.Equal(t, [][]int{{0, 3}, {0, 3}}, kept)
	kept, err = Members(g, "deviation", 9)
	require.NoError(t, err)
	require.Equal(t, [][]int{{0, 1, 2, 3}, {0, 1, 2, 3}}, kept)
	kept, err = Members(g, "return", 2)
	require.NoError(t, err)
	require.Equal(t, [][]int{{0, 3}, {2, 3}}, kept, "the best of n, equal ones by index")

	for text, c := range map[string]struct {
		g      Groups
		metric string
		n      int
	}{
		`member metric "luck"`:                 {g, "luck", 1},
		"0 members kept":                       {g, "shortest", 0},
		"lengths of 0 groups":                  {Groups{Rewards: g.Rewards}, "shortest", 1},
		"group 0 has 1 lengths and 2 rewards":  {Groups{Rewards: [][]float64{{1, 2}}, Lengths: [][]float64{{1}}}, "shortest", 1},
		"member 0 has reward 1 and length 0":   {Groups{Rewards: [][]float64{{1}}, Lengths: [][]float64{{0}}}, "reward_per_token", 1},
		"member 0 has reward NaN and length 1": {Groups{Rewards: [][]float64{{math.NaN()}}, Lengths: [][]float64{{1}}}, "shortest", 1},
	} {
		_, err := Members(c.g, c.metric, c.n)
		require.ErrorContains(t, err, text)
	}
}
