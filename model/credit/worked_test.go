package credit_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/credit"
	"github.com/reprise-rl/reprise/model/credit/credittest"
	"github.com/reprise-rl/reprise/model/golden"
	"github.com/reprise-rl/reprise/model/loss"
)

func TestLeaveOneOutWorked(t *testing.T) {
	e := credittest.Worked[struct {
		Rewards, Want []float64
		Groups        []int
	}](t, "worked.json", "leave_one_out")
	got, err := credit.LeaveOneOut(e.Rewards, e.Groups)
	require.NoError(t, err)
	golden.Near(t, e.Want, got, 1e-12)
}

func TestGRPOFloorWorked(t *testing.T) {
	e := credittest.Worked[struct {
		Rewards, Without, With []float64
		Floor                  float64
	}](t, "worked.json", "grpo_floor")
	for floor, want := range map[float64][]float64{0: e.Without, e.Floor: e.With} {
		got, err := credit.GRPO(e.Rewards, make([]int, len(e.Rewards)), credit.Options{NormalizeByStd: true, Floor: floor})
		require.NoError(t, err)
		golden.Near(t, want, got[:2], 1e-12)
	}
}

func TestStateValuesWorked(t *testing.T) {
	e := credittest.Worked[struct {
		Past, Mean, Fading []credit.StateValue
		Rewards            []float64
		Keys               []string
		Rate               float64
	}](t, "worked.json", "state_values")
	got, err := credit.Observe(e.Past, e.Rewards, e.Keys, 0)
	require.NoError(t, err)
	require.Equal(t, e.Mean, got)
	got, err = credit.Observe(e.Past, e.Rewards, e.Keys, e.Rate)
	require.NoError(t, err)
	require.Equal(t, e.Fading, got)
}

func TestOverlongWorked(t *testing.T) {
	e := credittest.Worked[struct {
		Limit, Cache int
		Lengths      []int
		Want         []float64
	}](t, "worked.json", "overlong")
	for i, length := range e.Lengths {
		got, err := credit.Overlong(length, e.Limit, e.Cache)
		require.NoError(t, err)
		require.Equal(t, e.Want[i], got)
	}
	for _, bad := range [][3]int{{1, 10, 0}, {1, 10, 11}, {-1, 10, 5}} {
		_, err := credit.Overlong(bad[0], bad[1], bad[2])
		require.ErrorIs(t, err, credit.ErrInput)
	}
}

func TestKLInRewardWorked(t *testing.T) {
	e := credittest.Worked[struct {
		Rewards, Reference, Want [][]float64
		LogProbs                 [][]float64 `json:"log_probs"`
		Mask                     [][]bool
		Coefficient, Mean        float64
	}](t, "worked.json", "kl_in_reward")
	got, mean, err := credit.KLInReward(e.Rewards, e.LogProbs, e.Reference, e.Mask, e.Coefficient, loss.K1)
	require.NoError(t, err)
	credittest.Near(t, e.Want, got)
	require.InDelta(t, e.Mean, mean, 1e-12)
}
