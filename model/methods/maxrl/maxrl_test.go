package maxrl

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/credit"
	"github.com/reprise-rl/reprise/model/credit/credittest"
	"github.com/reprise-rl/reprise/model/golden"
)

func TestComputeWorked(t *testing.T) { credittest.ComputeWorked(t, Entry) }

func TestMaxRLGolden(t *testing.T) {
	type in struct{ Returns []float64 }
	type out struct{ Advantages []float64 }
	g := golden.ReadMethod[in, out](t, "maxrl")
	for i, c := range g.Cases {
		got, err := MaxRL(c.In.Returns, make([]int, len(c.In.Returns)))
		require.NoError(t, err)
		golden.Near(t, c.Out.Advantages, got, g.Tolerance, "case %d", i)
	}
}

// By hand: one success of four counts 3, two of four count 1; what does not succeed counts −1 in both.
func TestWorked(t *testing.T) {
	got, err := MaxRL([]float64{1, 1, 0, 0, 1, 0, 0, 0, -1, -1}, []int{7, 3, 7, 7, 3, 7, 3, 3, 1, 1})
	require.NoError(t, err)
	require.Equal(t, []float64{3, 1, -1, -1, 1, -1, -1, -1, 0, 0}, got)
}

// It is Dr. GRPO over the mean, which is 0.4375 here.
func TestTheUnitIsTheMean(t *testing.T) {
	returns, groups := []float64{0.5, 0.25, 0, 1}, make([]int, 4)
	got, err := MaxRL(returns, groups)
	require.NoError(t, err)
	plain, err := credit.DrGRPO(returns, groups)
	require.NoError(t, err)
	for i := range got {
		require.InDelta(t, plain[i]/0.4375, got[i], 1e-15)
	}
}

func TestErrors(t *testing.T) {
	of := func(_ []float64, err error) error { return err }
	credittest.Refused(t, map[string]credittest.Refusal{
		"return": {of(MaxRL([]float64{math.Inf(1)}, []int{0})), credit.ErrRewards, "row 0 has +Inf"},
		"groups": {of(MaxRL([]float64{1}, nil)), credit.ErrRewards, "1 rewards, 0 group indexes"},
	})
}

func TestTheSameBitsOnMachinesThatFuse(t *testing.T) {
	e := credittest.UniformEpisodes(t)
	credittest.SameBits(t, credittest.Bits{Name: "maxrl", Want: "935a32602135", Compute: func() ([][]float64, error) {
		got, err := MaxRL(e.Returns, e.Groups)
		return [][]float64{got}, err
	}})
}
