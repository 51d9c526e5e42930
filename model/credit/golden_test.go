package credit

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/golden"
)

// equal compares where the mask is true, and wants 0 elsewhere.
func equal(t *testing.T, c golden.RL, want, got [][]float64) {
	t.Helper()
	require.Len(t, got, len(want))
	for row, sampled := range c.Sampled() {
		for at, yes := range sampled {
			if yes {
				require.InDelta(t, want[row][at], got[row][at], golden.RLTolerance, "row %d token %d", row, at)
			} else {
				require.Zero(t, got[row][at], "row %d token %d", row, at)
			}
		}
	}
}

func goldenCases(t *testing.T) []golden.RL { return golden.RLCases(t, "testdata") }

// The key of a GAE case says its γ and λ.
func TestGAEGolden(t *testing.T) {
	for i, c := range goldenCases(t) {
		found := 0
		for name, want := range c.Adv {
			if !strings.HasPrefix(name, "gae_") {
				continue
			}
			o := Options{Whiten: want.Whitened}
			_, err := fmt.Sscanf(strings.ReplaceAll(name, "_", " "), "gae g%g l%g", &o.Gamma, &o.Lambda)
			require.NoError(t, err, name)
			advantages, returns, err := GAE(c.TokenRewards, c.Values, c.Sampled(), o)
			require.NoError(t, err)
			equal(t, c, want.Advantages, advantages)
			equal(t, c, want.Returns, returns)
			found++
		}
		require.Positive(t, found, "case %d", i)
	}
}

func TestTrajectoryCreditGolden(t *testing.T) {
	for name, credit := range map[string]func([]float64, []int) ([]float64, error){
		"grpo": func(r []float64, g []int) ([]float64, error) {
			return GRPO(r, g, Options{NormalizeByStd: true, Epsilon: 1e-6})
		},
		"dr_grpo": DrGRPO,
		"rloo":    LeaveOneOut,
	} {
		t.Run(name, func(t *testing.T) {
			for _, c := range goldenCases(t) {
				rows, err := credit(Returns(c.TokenRewards), c.Group)
				require.NoError(t, err)
				tokens, err := OverRows(rows, c.Sampled())
				require.NoError(t, err)
				want, ok := c.Adv[name]
				require.True(t, ok)
				equal(t, c, want.Advantages, tokens)
			}
		})
	}
}
