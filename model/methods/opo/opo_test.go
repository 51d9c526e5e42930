package opo

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/credit"
	"github.com/reprise-rl/reprise/model/credit/credittest"
	"github.com/reprise-rl/reprise/model/golden"
)

func TestComputeWorked(t *testing.T) { credittest.ComputeWorked(t, Entry) }

func TestOPOGolden(t *testing.T) {
	type in struct {
		Groups, Lengths []int
		Returns         []float64
	}
	type out struct{ Advantages []float64 }
	g := golden.ReadMethod[in, out](t, "opo")
	for i, c := range g.Cases {
		got, err := OPO(c.In.Returns, c.In.Lengths, c.In.Groups)
		require.NoError(t, err)
		golden.Near(t, c.Out.Advantages, got, g.Tolerance, "case %d", i)
	}
}

// By hand: of a success of 10 tokens and two failures of 20 and 30, the baseline is 10/60.
func TestWorked(t *testing.T) {
	got, err := OPO([]float64{1, 5, 0, 0}, []int{10, 7, 20, 30}, []int{4, 2, 4, 4})
	require.NoError(t, err)
	golden.Near(t, []float64{5. / 6, 5, -1. / 6, -1. / 6}, got, 1e-15)

	// With answers of one length it is Dr. GRPO.
	returns, groups := []float64{1, 0, 0.5, -2}, []int{0, 0, 0, 0}
	got, err = OPO(returns, []int{3, 3, 3, 3}, groups)
	require.NoError(t, err)
	want, err := credit.DrGRPO(returns, groups)
	require.NoError(t, err)
	golden.Near(t, want, got, 1e-15)

	// Equal returns and rows without tokens.
	got, err = OPO([]float64{.1, .1, .1, 1, 0}, []int{1, 2, 4, 0, 0}, []int{0, 0, 0, 1, 1})
	require.NoError(t, err)
	require.Equal(t, []float64{0, 0, 0, 1, 0}, got)
}

func TestErrors(t *testing.T) {
	of := func(_ []float64, err error) error { return err }
	credittest.Refused(t, map[string]credittest.Refusal{
		"return":  {of(OPO([]float64{math.NaN()}, []int{1}, []int{0})), credit.ErrRewards, "row 0 has NaN"},
		"groups":  {of(OPO([]float64{1}, []int{1}, nil)), credit.ErrRewards, "1 rewards, 0 group indexes"},
		"lengths": {of(OPO([]float64{1}, nil, []int{0})), credit.ErrInput, "1 returns, 0 lengths"},
		"length":  {of(OPO([]float64{1}, []int{-1}, []int{0})), credit.ErrInput, "row 0 has -1 tokens"},
	})
}

func TestTheSameBitsOnMachinesThatFuse(t *testing.T) {
	e := credittest.UniformEpisodes(t)
	credittest.SameBits(t, credittest.Bits{Name: "opo", Want: "ecaf579ae092", Compute: func() ([][]float64, error) {
		got, err := OPO(e.Returns, e.Lengths, e.Groups)
		return [][]float64{got}, err
	}})
}
