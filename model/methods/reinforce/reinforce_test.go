package reinforce

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/credit"
	"github.com/reprise-rl/reprise/model/credit/credittest"
)

func TestComputeWorked(t *testing.T) { credittest.ComputeWorked(t, Entry, EntryBaseline, EntryVerl) }

func TestReinforcePlusPlusWorked(t *testing.T) {
	e := credittest.Worked[struct {
		Rewards, Want [][]float64
		Mask          [][]bool
		Gamma         float64
	}](t, "worked.json", "reinforce_plus_plus")
	got, err := ReinforcePlusPlus(e.Rewards, e.Mask, e.Gamma)
	require.NoError(t, err)
	credittest.Near(t, e.Want, got)

	b := credittest.Worked[struct {
		Rewards []float64
		Groups  []int
		Mask    [][]bool
		Want    [][]float64
	}](t, "worked.json", "reinforce_plus_plus_baseline")
	got, err = ReinforcePlusPlusBaseline(b.Rewards, b.Groups, b.Mask)
	require.NoError(t, err)
	credittest.Near(t, b.Want, got)
}

// With γ = 1 a token's return is what its row still gets, which is whitened.
func TestReinforcePlusPlusIsTheWhitenedReturn(t *testing.T) {
	e := credittest.RandomEpisodes(t, 7, 9)
	returns := credit.Zeros(e.Mask)
	for row, sampled := range e.Mask {
		var rest float64
		for at := len(sampled) - 1; at >= 0; at-- {
			if sampled[at] {
				rest += e.Tokens[row][at]
				returns[row][at] = rest
			}
		}
	}
	plus, err := ReinforcePlusPlus(e.Tokens, e.Mask, 1)
	require.NoError(t, err)
	credit.Whiten(returns, e.Mask)
	require.Equal(t, returns, plus)
}

func TestErrors(t *testing.T) {
	nan := math.NaN()
	one, mask := [][]float64{{0, 1}}, [][]bool{{true, true}}
	first := func(_ any, err error) error { return err }
	credittest.Refused(t, map[string]credittest.Refusal{
		"reinforce":      {first(ReinforcePlusPlus(one, mask, 2)), credit.ErrInput, "Gamma is 2"},
		"reinforce rows": {first(ReinforcePlusPlus(nil, mask, 1)), credit.ErrInput, "0 rows of rewards"},
		"baseline":       {first(ReinforcePlusPlusBaseline([]float64{nan}, []int{0}, mask)), credit.ErrRewards, "row 0"},
		"baseline rows":  {first(ReinforcePlusPlusBaseline(nil, nil, mask)), credit.ErrInput, "0 advantages"},
	})
}

func TestTheSameBitsOnMachinesThatFuse(t *testing.T) {
	e := credittest.UniformEpisodes(t)
	credittest.SameBits(t,
		credittest.Bits{Name: "reinforce++", Want: "dbe50902b74c", Compute: func() ([][]float64, error) { return ReinforcePlusPlus(e.Tokens, e.Mask, 0.97) }},
	)
}
