package credit

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/golden"
)

// The goldens are verl's advantages, [rows, tokens], masked.
func TestGRPOGolden(t *testing.T) {
	path := filepath.Join(golden.Folder(t, "rl", "rl.json", "testdata"), "rl.json")
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	type advantages struct{ Advantages [][]float64 }
	var want struct {
		Cases []struct {
			Group        []int
			Mask         [][]float64
			TokenRewards [][]float64 `json:"token_rewards"`
			Adv          struct {
				GRPO   advantages `json:"grpo"`
				DrGRPO advantages `json:"dr_grpo"`
			}
		}
	}
	require.NoError(t, json.Unmarshal(content, &want))
	require.NotEmpty(t, want.Cases)
	for i, c := range want.Cases {
		rewards := make([]float64, len(c.Group))
		for row, tokens := range c.TokenRewards {
			for _, r := range tokens {
				rewards[row] += r
			}
		}
		for _, byStd := range []bool{true, false} {
			expected := c.Adv.DrGRPO.Advantages
			if byStd {
				expected = c.Adv.GRPO.Advantages
			}
			got, err := GRPO(rewards, c.Group, GRPOOptions{NormalizeByStd: byStd, Epsilon: 1e-6})
			require.NoError(t, err)
			for row, tokens := range expected {
				for at, e := range tokens {
					require.InDelta(t, e, got[row]*c.Mask[row][at], 1e-5, "case %d row %d", i, row)
				}
			}
		}
	}
}

func TestGRPO(t *testing.T) {
	for name, c := range map[string]struct {
		rewards []float64
		groups  []int
		o       GRPOOptions
		want    []float64
	}{
		"equal rewards are exactly 0": {[]float64{0.1, 0.1, 0.1}, []int{0, 0, 0}, GRPOOptions{true, 1e-6}, []float64{0, 0, 0}},
		"groups may be mixed":         {[]float64{1, 5, 0, 7}, []int{3, 9, 3, 9}, GRPOOptions{false, 1e-6}, []float64{0.5, -1, -0.5, 1}},
		"one row keeps its reward":    {[]float64{3}, []int{0}, GRPOOptions{true, 1}, []float64{1.5}},
		"no rows":                     {nil, nil, GRPOOptions{true, 1e-6}, []float64{}},
		"no epsilon":                  {[]float64{0, 0, 1, 1}, []int{0, 0, 1, 1}, GRPOOptions{true, 0}, []float64{0, 0, 0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := GRPO(c.rewards, c.groups, c.o)
			require.NoError(t, err)
			require.Equal(t, c.want, got)
		})
	}
	for _, bad := range []float64{math.NaN(), math.Inf(1)} {
		_, err := GRPO([]float64{0, bad}, []int{0, 0}, GRPOOptions{})
		require.ErrorIs(t, err, ErrRewards)
	}
	_, err := GRPO([]float64{0}, nil, GRPOOptions{})
	require.ErrorIs(t, err, ErrRewards)
}
