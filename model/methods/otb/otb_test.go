package otb

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/credit"
	"github.com/reprise-rl/reprise/model/credit/credittest"
	"github.com/reprise-rl/reprise/model/golden"
)

func TestComputeWorked(t *testing.T) { credittest.ComputeWorked(t, Entry) }

func TestOptimalTokenBaselineGolden(t *testing.T) {
	type in struct {
		Groups                   []int
		Mask                     [][]int
		Rewards, Old, SumSquares [][]float64
	}
	type out struct{ Advantages, Tail [][]float64 }
	g := golden.ReadMethod[in, out](t, "otb")
	for _, c := range g.Cases {
		mask := make([][]bool, len(c.In.Mask))
		for row, sampled := range c.In.Mask {
			for _, yes := range sampled {
				mask[row] = append(mask[row], yes == 1)
			}
		}
		for tail, want := range map[bool][][]float64{false: c.Out.Advantages, true: c.Out.Tail} {
			got, err := OptimalTokenBaseline(c.In.Rewards, c.In.Old, c.In.SumSquares, mask, c.In.Groups, tail)
			require.NoError(t, err)
			credittest.Within(t, g.Tolerance, want, got)
		}
	}
}

// example is two rows of one group, and one alone. Of the first, two turns of one token with two ids that are as likely: w is 1/2,
// W 1/2 and 1. Of the second, a token of 3/4 beside one other id: w is 1 − 6/4 + 10/16 = 1/8.
func example() (rewards, old, squares [][]float64, mask [][]bool, groups []int) {
	even, likely := math.Log(0.5), math.Log(0.75)
	return [][]float64{{0, 0, 0, 1}, {0, 0}, {5}}, [][]float64{{9, even, 9, even}, {9, likely}, {even}}, [][]float64{{9, 0.5, 9, 0.5}, {9, 0.625}, {0.5}},
		[][]bool{{false, true, false, true}, {false, true}, {true}}, []int{3, 3, 0}
}

// By hand: at the first token of both the baseline is (1/2·1 + 1/8·0)/(5/8) = 4/5. The second token of the first row stands alone.
func TestWorked(t *testing.T) {
	rewards, old, squares, mask, groups := example()
	got, err := OptimalTokenBaseline(rewards, old, squares, mask, groups, false)
	require.NoError(t, err)
	require.InDelta(t, 0.2, got[0][1], 1e-15)
	require.InDelta(t, -0.8, got[1][1], 1e-15)
	require.Equal(t, [][]float64{{0, got[0][1], 0, 1}, {0, got[1][1]}, {5}}, got)
	tail, err := OptimalTokenBaseline(rewards, old, squares, mask, groups, true)
	require.NoError(t, err)
	require.Equal(t, [][]float64{{0, got[0][1], 0, 0}, {0, got[1][1]}, {5}}, tail)

	// A reward before a token is none of its returns.
	rewards[0] = []float64{0, 1, 0, 0}
	got, err = OptimalTokenBaseline(rewards, old, squares, mask, groups, false)
	require.NoError(t, err)
	require.InDelta(t, 0.2, got[0][1], 1e-15)
	require.Zero(t, got[0][3])
}

// Where all tokens are as uncertain and all rows as long, it is Dr. GRPO.
func TestAsUncertain(t *testing.T) {
	returns, groups := []float64{1, 0, 0.5, -2}, []int{0, 0, 0, 0}
	var rewards, old, squares [][]float64
	var mask [][]bool
	for _, r := range returns {
		rewards, old, squares = append(rewards, []float64{0, 0, r}), append(old, []float64{-1, -1, -1}), append(squares, []float64{.4, .4, .4})
		mask = append(mask, []bool{true, true, true})
	}
	got, err := OptimalTokenBaseline(rewards, old, squares, mask, groups, false)
	require.NoError(t, err)
	want, err := credit.DrGRPO(returns, groups)
	require.NoError(t, err)
	for row, r := range want {
		golden.Near(t, []float64{r, r, r}, got[row], 1e-15)
	}
}

func TestEqualAndCertain(t *testing.T) {
	one := func(r, old, square float64) ([]float64, []float64, []float64) {
		return []float64{r}, []float64{old}, []float64{square}
	}
	for name, c := range map[string]struct {
		returns, old, squares, want []float64
	}{
		"equal":             {[]float64{.1, .1, .1}, []float64{-1, -2, -3}, []float64{.3, .3, .3}, []float64{0, 0, 0}},
		"all certain":       {[]float64{1, 0, 0}, []float64{0, 0, 0}, []float64{1, 1, 1}, []float64{1, 0, 0}},
		"rounded below 0":   {[]float64{1, 0, 0}, []float64{0, 0, 0}, []float64{1 - 1e-7, 1 - 1e-7, 1 - 1e-7}, []float64{1, 0, 0}},
		"one is uncertain":  {[]float64{1, 0, 0}, []float64{0, -1, 0}, []float64{1, .3, 1}, []float64{1, 0, 0}},
		"the other is that": {[]float64{1, 0, 0}, []float64{-1, 0, 0}, []float64{.3, 1, 1}, []float64{0, -1, -1}},
	} {
		t.Run(name, func(t *testing.T) {
			var rewards, old, squares [][]float64
			for row := range c.returns {
				r, o, s := one(c.returns[row], c.old[row], c.squares[row])
				rewards, old, squares = append(rewards, r), append(old, o), append(squares, s)
			}
			got, err := OptimalTokenBaseline(rewards, old, squares, [][]bool{{true}, {true}, {true}}, []int{1, 1, 1}, true)
			require.NoError(t, err)
			for row := range got {
				require.Equal(t, c.want[row], got[row][0], "row %d", row)
			}
		})
	}
}

func TestErrors(t *testing.T) {
	of := func(change func(rewards, old, squares [][]float64, groups *[]int)) error {
		rewards, old, squares, mask, groups := example()
		change(rewards, old, squares, &groups)
		_, err := OptimalTokenBaseline(rewards, old, squares, mask, groups, false)
		return err
	}
	credittest.Refused(t, map[string]credittest.Refusal{
		"reward": {of(func(r, _, _ [][]float64, _ *[]int) { r[0][3] = math.NaN() }), credit.ErrRewards, "row 0, token 3 has NaN"},
		"place":  {of(func(r, _, _ [][]float64, _ *[]int) { r[0][2] = 1 }), credit.ErrRewards, "was not sampled"},
		"log-prob": {of(func(_, o, _ [][]float64, _ *[]int) { o[1][1] = math.Inf(-1) }), credit.ErrNotFinite,
			"row 1: not finite: token 1 has the log-prob -Inf and the sum of squares 0.625"},
		"square":  {of(func(_, _, s [][]float64, _ *[]int) { s[2][0] = math.NaN() }), credit.ErrNotFinite, "the sum of squares NaN"},
		"old":     {of(func(_, o, _ [][]float64, _ *[]int) { o[1] = nil }), credit.ErrInput, "row 1 has 0 log-probs for 2 tokens"},
		"squares": {of(func(_, _, s [][]float64, _ *[]int) { s[1] = nil }), credit.ErrInput, "row 1 has 0 sums of squares for 2 tokens"},
		"groups":  {of(func(_, _, _ [][]float64, g *[]int) { *g = nil }), credit.ErrInput, "3 rows, 0 group indexes"},
	})
}

func TestTheSameBitsOnMachinesThatFuse(t *testing.T) {
	e := credittest.UniformEpisodes(t)
	squares := make([][]float64, len(e.Values))
	for row, values := range e.Values {
		for _, v := range values {
			squares[row] = append(squares[row], (v+2)/4)
		}
	}
	old := make([][]float64, len(e.Values)) // of chances of 1 and 0, which all machines compute to the last bit
	for row, length := range e.Lengths {
		for at := range length {
			old[row] = append(old[row], -1000*float64(min((row+at)%4, 1)))
		}
	}
	credittest.SameBits(t, credittest.Bits{Name: "otb", Want: "feab4018ccdc", Compute: func() ([][]float64, error) {
		return OptimalTokenBaseline(e.Tokens, old, squares, e.Mask, e.Groups, false)
	}})
}
