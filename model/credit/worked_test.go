package credit

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/golden"
	"github.com/reprise-rl/reprise/model/loss"
)

// worked reads an example of testdata, worked out by hand in its comments.
func worked[T any](t *testing.T, file, name string) T {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", file))
	require.NoError(t, err)
	if name != "" {
		var parts map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(content, &parts))
		require.Contains(t, parts, name)
		content = parts[name]
	}
	var v T
	require.NoError(t, json.Unmarshal(content, &v))
	return v
}

func near(t *testing.T, want, got [][]float64) {
	t.Helper()
	require.Len(t, got, len(want))
	for row := range want {
		require.Len(t, got[row], len(want[row]), "row %d", row)
		for i := range want[row] {
			require.InDelta(t, want[row][i], got[row][i], 1e-7, "row %d, %d", row, i)
		}
	}
}

func TestGiGPOWorked(t *testing.T) {
	type example struct {
		Cases []struct {
			Name          string
			Rewards, Want [][]float64
			Groups        []int
			Keys          [][]string
			Options       Options
		}
	}
	for _, c := range worked[example](t, "gigpo.json", "").Cases {
		t.Run(c.Name, func(t *testing.T) {
			got, err := GiGPO(c.Rewards, c.Groups, c.Keys, c.Options)
			require.NoError(t, err)
			near(t, c.Want, got)
		})
	}
}

func TestTurnGAEWorked(t *testing.T) {
	type example struct {
		Turns  [][]Span
		Values [][]float64
		Cases  []struct {
			Name                         string
			Rewards, Advantages, Returns [][]float64
			Options                      Options
		}
	}
	e := worked[example](t, "turn_gae.json", "")
	for _, c := range e.Cases {
		t.Run(c.Name, func(t *testing.T) {
			advantages, returns, err := TurnGAE(c.Rewards, e.Values, e.Turns, c.Options)
			require.NoError(t, err)
			near(t, c.Advantages, advantages)
			near(t, c.Returns, returns)
		})
	}
}

func TestGAEWorked(t *testing.T) {
	e := worked[struct {
		Rewards, Values, Advantages, Returns [][]float64
		Mask                                 [][]bool
		Options                              Options
	}](t, "worked.json", "gae")
	advantages, returns, err := GAE(e.Rewards, e.Values, e.Mask, e.Options)
	require.NoError(t, err)
	near(t, e.Advantages, advantages)
	near(t, e.Returns, returns)
}

func TestLeaveOneOutWorked(t *testing.T) {
	e := worked[struct {
		Rewards, Want []float64
		Groups        []int
	}](t, "worked.json", "leave_one_out")
	got, err := LeaveOneOut(e.Rewards, e.Groups)
	require.NoError(t, err)
	golden.Near(t, e.Want, got, 1e-12)
}

func TestGRPOFloorWorked(t *testing.T) {
	e := worked[struct {
		Rewards, Without, With []float64
		Floor                  float64
	}](t, "worked.json", "grpo_floor")
	for floor, want := range map[float64][]float64{0: e.Without, e.Floor: e.With} {
		got, err := GRPO(e.Rewards, make([]int, len(e.Rewards)), Options{NormalizeByStd: true, Floor: floor})
		require.NoError(t, err)
		golden.Near(t, want, got[:2], 1e-12)
	}
}

func TestReinforcePlusPlusWorked(t *testing.T) {
	e := worked[struct {
		Rewards, Want [][]float64
		Mask          [][]bool
		Gamma         float64
	}](t, "worked.json", "reinforce_plus_plus")
	got, err := ReinforcePlusPlus(e.Rewards, e.Mask, e.Gamma)
	require.NoError(t, err)
	near(t, e.Want, got)

	b := worked[struct {
		Rewards []float64
		Groups  []int
		Mask    [][]bool
		Want    [][]float64
	}](t, "worked.json", "reinforce_plus_plus_baseline")
	got, err = ReinforcePlusPlusBaseline(b.Rewards, b.Groups, b.Mask)
	require.NoError(t, err)
	near(t, b.Want, got)
}

func TestStateValuesWorked(t *testing.T) {
	e := worked[struct {
		Past, Mean, Fading []StateValue
		Rewards            []float64
		Keys               []string
		Rate               float64
	}](t, "worked.json", "state_values")
	got, err := Observe(e.Past, e.Rewards, e.Keys, 0)
	require.NoError(t, err)
	require.Equal(t, e.Mean, got)
	got, err = Observe(e.Past, e.Rewards, e.Keys, e.Rate)
	require.NoError(t, err)
	require.Equal(t, e.Fading, got)

	b := worked[struct {
		Past          []StateValue
		Rewards, Want []float64
		Keys          []string
	}](t, "worked.json", "state_baseline")
	advantages, err := StateBaseline(b.Past, b.Rewards, b.Keys)
	require.NoError(t, err)
	golden.Near(t, b.Want, advantages, 1e-12)
}

func TestOverlongWorked(t *testing.T) {
	e := worked[struct {
		Limit, Cache int
		Lengths      []int
		Want         []float64
	}](t, "worked.json", "overlong")
	for i, length := range e.Lengths {
		got, err := Overlong(length, e.Limit, e.Cache)
		require.NoError(t, err)
		require.Equal(t, e.Want[i], got)
	}
	for _, bad := range [][3]int{{1, 10, 0}, {1, 10, 11}, {-1, 10, 5}} {
		_, err := Overlong(bad[0], bad[1], bad[2])
		require.ErrorIs(t, err, ErrInput)
	}
}

func TestKLInRewardWorked(t *testing.T) {
	e := worked[struct {
		Rewards, Reference, Want [][]float64
		LogProbs                 [][]float64 `json:"log_probs"`
		Mask                     [][]bool
		Coefficient, Mean        float64
	}](t, "worked.json", "kl_in_reward")
	got, mean, err := KLInReward(e.Rewards, e.LogProbs, e.Reference, e.Mask, e.Coefficient, loss.K1)
	require.NoError(t, err)
	near(t, e.Want, got)
	require.InDelta(t, e.Mean, mean, 1e-12)
}
