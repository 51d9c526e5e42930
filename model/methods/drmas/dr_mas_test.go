package drmas

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/credit"
	"github.com/reprise-rl/reprise/model/credit/credittest"
	"github.com/reprise-rl/reprise/model/golden"
)

func TestComputeWorked(t *testing.T) { credittest.ComputeWorked(t, Entry) }

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
		o := credit.Options{NormalizeByStd: true, Epsilon: c.In.Epsilon}
		got, err := DrMAS(returns, agents, groups, o)
		require.NoError(t, err)
		golden.Near(t, c.Out.PerAgent, slices.Concat(got...), g.Tolerance)

		// The authors' code without the method.
		means := make([]float64, len(returns))
		for row, turns := range returns {
			means[row], _ = credit.MeanStd(turns)
		}
		rows, err := credit.GRPO(means, groups, o)
		require.NoError(t, err)
		var global []float64
		for row, turns := range returns {
			global = append(global, slices.Repeat([]float64{rows[row]}, len(turns))...)
		}
		golden.Near(t, c.Out.Global, global, g.Tolerance)

		factors, err := credit.Amplifications(returns, agents, groups)
		require.NoError(t, err)
		require.Len(t, factors, len(c.Out.Amplification))
		for _, f := range factors {
			want, ok := c.Out.Amplification[fmt.Sprintf("%d/%s", f.Group, f.Agent)]
			require.True(t, ok, "group %d, agent %s", f.Group, f.Agent)
			require.InDelta(t, want, f.Factor, g.Tolerance)
		}
	}
}

// One agent that speaks once a row: GRPO.
func TestDrMASOfOneAgentIsGRPO(t *testing.T) {
	e := credittest.RandomEpisodes(t, 5, 12)
	o := credit.Options{NormalizeByStd: true, Epsilon: 1e-6, Floor: .1}
	want, err := credit.GRPO(e.Returns, e.Groups, o)
	require.NoError(t, err)
	var returns [][]float64
	var agents [][]string
	for _, r := range e.Returns {
		returns, agents = append(returns, []float64{r}), append(agents, []string{"walker"})
	}
	mas, err := DrMAS(returns, agents, e.Groups, o)
	require.NoError(t, err)
	require.Equal(t, want, slices.Concat(mas...))
}

func TestErrors(t *testing.T) {
	nan := math.NaN()
	one, two := [][]float64{{1}}, [][]float64{{1, 2}}
	mas := func(r [][]float64, a [][]string, g []int, o credit.Options) error {
		_, err := DrMAS(r, a, g, o)
		return err
	}
	credittest.Refused(t, map[string]credittest.Refusal{
		"mas epsilon": {mas(one, [][]string{{"a"}}, []int{0}, credit.Options{Epsilon: -1}), credit.ErrInput, "Epsilon is -1"},
		"mas return":  {mas([][]float64{{nan}}, [][]string{{"a"}}, []int{0}, credit.Options{}), credit.ErrRewards, "row 0, turn 0 has NaN"},
		"mas rows":    {mas(one, nil, []int{0}, credit.Options{}), credit.ErrInput, "returns of 1 rows, 1 group indexes, agents of 0 rows"},
		"mas turns":   {mas(two, [][]string{{"a"}}, []int{0}, credit.Options{}), credit.ErrInput, "row 0 has 2 returns and 1 agents"},
	})
}

func TestTheSameBitsOnMachinesThatFuse(t *testing.T) {
	e := credittest.UniformEpisodes(t)
	credittest.SameBits(t,
		credittest.Bits{Name: "dr. mas", Want: "c60d10e5270a", Compute: func() ([][]float64, error) {
			return DrMAS(e.Rewards, e.Keys, e.Groups, credit.Options{NormalizeByStd: true, Epsilon: 1e-6})
		}},
	)
}
