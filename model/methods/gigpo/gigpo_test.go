package gigpo

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/credit"
	"github.com/reprise-rl/reprise/model/credit/credittest"
	"github.com/reprise-rl/reprise/model/golden"
	"github.com/reprise-rl/reprise/model/option"
)

func TestComputeWorked(t *testing.T) { credittest.ComputeWorked(t, Entry) }

func TestGiGPOWorked(t *testing.T) {
	type example struct {
		Cases []struct {
			Name          string
			Rewards, Want [][]float64
			Groups        []int
			Keys          [][]string
			Options       credit.Options
		}
	}
	for _, c := range credittest.Worked[example](t, "gigpo.json", "").Cases {
		t.Run(c.Name, func(t *testing.T) {
			got, err := GiGPO(c.Rewards, c.Groups, c.Keys, c.Options)
			require.NoError(t, err)
			credittest.Near(t, c.Want, got)
		})
	}
}

// GiGPO with ω = 0 is GRPO, and where all states are one state and γ = 0 its steps
// compare rewards.
func TestGiGPOLimits(t *testing.T) {
	e := credittest.RandomEpisodes(t, 19, 12)
	rows, err := credit.GRPO(e.Returns, e.Groups, credit.Options{NormalizeByStd: true, Epsilon: 1e-6})
	require.NoError(t, err)
	got, err := GiGPO(e.Rewards, e.Groups, e.Keys, credit.Options{Gamma: 0.95, NormalizeByStd: true, Epsilon: 1e-6})
	require.NoError(t, err)
	for row := range got {
		for _, a := range got[row] {
			require.Equal(t, rows[row], a)
		}
	}
	// Rows in another order give the same advantages, up to rounding.
	n := len(e.Rewards)
	back := credittest.Episodes{}
	for row := n - 1; row >= 0; row-- {
		back.Rewards, back.Groups, back.Keys = append(back.Rewards, e.Rewards[row]), append(back.Groups, e.Groups[row]), append(back.Keys, e.Keys[row])
	}
	o := credit.Options{Gamma: 0.95, StepWeight: 1, NormalizeByStd: true, Epsilon: 1e-6}
	got, err = GiGPO(e.Rewards, e.Groups, e.Keys, o)
	require.NoError(t, err)
	reversed, err := GiGPO(back.Rewards, back.Groups, back.Keys, o)
	require.NoError(t, err)
	for row := range got {
		golden.Near(t, got[row], reversed[n-1-row], 1e-9)
	}
}

// Rows without turns, also the last one. Over turns 3, 1, 1 have the mean 5/3; s has 3 and 1, t is alone.
func TestRowsWithoutTurns(t *testing.T) {
	steps, err := GiGPO([][]float64{{}, {3}, {1, 0}, {}}, []int{0, 0, 0, 0}, [][]string{{}, {"s"}, {"s", "t"}, {}},
		credit.Options{Own: option.Values{"over_turns": true}, StepWeight: 1})
	require.NoError(t, err)
	credittest.Within(t, 1e-12, [][]float64{{}, {4./3 + 1}, {-2./3 - 1, -2. / 3}, {}}, steps)
}

func TestErrors(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	one := [][]float64{{0, 1}}
	first := func(_ any, err error) error { return err }
	credittest.Refused(t, map[string]credittest.Refusal{
		"gigpo gamma":   {first(GiGPO(nil, nil, nil, credit.Options{Gamma: 3})), credit.ErrInput, "Gamma is 3"},
		"gigpo weight":  {first(GiGPO(nil, nil, nil, credit.Options{StepWeight: inf})), credit.ErrInput, "StepWeight is +Inf"},
		"gigpo epsilon": {first(GiGPO(nil, nil, nil, credit.Options{Epsilon: -1})), credit.ErrInput, "Epsilon is -1"},
		"gigpo reward":  {first(GiGPO([][]float64{{nan}}, []int{0}, [][]string{{"a"}}, credit.Options{})), credit.ErrRewards, "row 0, turn 0"},
		"gigpo keys":    {first(GiGPO(one, []int{0}, [][]string{{"a"}}, credit.Options{})), credit.ErrInput, "row 0 has 2 rewards and 1 state keys"},
		"gigpo rows":    {first(GiGPO(one, []int{0}, nil, credit.Options{})), credit.ErrInput, "rewards of 1 rows, state keys of 0"},
		"gigpo groups":  {first(GiGPO(one, nil, [][]string{{"a", "b"}}, credit.Options{})), credit.ErrRewards, "1 rewards, 0 group indexes"},
	})
}

func TestTheSameBitsOnMachinesThatFuse(t *testing.T) {
	e := credittest.UniformEpisodes(t)
	credittest.SameBits(t,
		credittest.Bits{Name: "gigpo", Want: "36d57f7cc7f1", Compute: func() ([][]float64, error) {
			return GiGPO(e.Rewards, e.Groups, e.Keys, credit.Options{Gamma: 0.95, StepWeight: 0.7, NormalizeByStd: true, Epsilon: 1e-6})
		}},
	)
}
