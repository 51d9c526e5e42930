package trees

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/credit"
	"github.com/reprise-rl/reprise/model/credit/credittest"
	"github.com/reprise-rl/reprise/model/golden"
)

func TestComputeWorked(t *testing.T) { credittest.ComputeWorked(t, Entry) }

func TestTreeGRPOGolden(t *testing.T) {
	type in struct {
		Tree    []int
		Rewards []float64
		Epsilon float64
	}
	type out struct {
		Inter, Intra, Advantage []float64
		AdvantageCode           []float64 `json:"advantage_code"`
	}
	g := golden.ReadMethod[in, out](t, "tree_grpo")
	for _, c := range g.Cases {
		o := credit.Options{NormalizeByStd: true, Epsilon: c.In.Epsilon}
		one := make([]int, len(c.In.Rewards))
		inter, err := credit.GRPO(c.In.Rewards, one, o)
		require.NoError(t, err)
		golden.Near(t, c.Out.Inter, inter, g.Tolerance)
		intra, err := withinTrees(c.In.Rewards, one, c.In.Tree, o)
		require.NoError(t, err)
		golden.Near(t, c.Out.Intra, intra, g.Tolerance)
		both, err := TreeGRPO(c.In.Rewards, one, c.In.Tree, o)
		require.NoError(t, err)
		golden.Near(t, c.Out.Advantage, both, g.Tolerance)
		code, err := TreeGRPOCode(c.In.Rewards, one, c.In.Tree, o)
		require.NoError(t, err)
		golden.Near(t, c.Out.AdvantageCode, code, g.Tolerance)
	}
}

func TestTreeGRPOWorked(t *testing.T) {
	o := credit.Options{NormalizeByStd: true}
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
	got, err = TreeGRPO([]float64{1, 3}, []int{0, 0}, []int{0, 1}, credit.Options{})
	require.NoError(t, err)
	require.Equal(t, []float64{-1, 1}, got)
}

func TestErrors(t *testing.T) {
	nan := math.NaN()
	of := func(_ any, err error) error { return err }
	credittest.Refused(t, map[string]credittest.Refusal{
		"tree reward":      {of(TreeGRPO([]float64{nan}, []int{0}, []int{0}, credit.Options{})), credit.ErrRewards, "row 0 has NaN"},
		"tree rows":        {of(TreeGRPO([]float64{1}, []int{0}, nil, credit.Options{})), credit.ErrInput, "trees of 0 rows, 1 rewards"},
		"tree code reward": {of(TreeGRPOCode([]float64{nan}, []int{0}, []int{0}, credit.Options{})), credit.ErrRewards, "row 0 has NaN"},
		"tree code rows":   {of(TreeGRPOCode([]float64{1}, []int{0}, nil, credit.Options{})), credit.ErrInput, "trees of 0 rows"},
	})
}
