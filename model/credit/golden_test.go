package credit_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/credit"
	"github.com/reprise-rl/reprise/model/credit/credittest"
	"github.com/reprise-rl/reprise/model/golden"
)

func TestTrajectoryCreditGolden(t *testing.T) {
	for name, compute := range map[string]func([]float64, []int) ([]float64, error){
		"grpo": func(r []float64, g []int) ([]float64, error) {
			return credit.GRPO(r, g, credit.Options{NormalizeByStd: true, Epsilon: 1e-6})
		},
		"dr_grpo": credit.DrGRPO,
		"rloo":    credit.LeaveOneOut,
	} {
		t.Run(name, func(t *testing.T) {
			for _, c := range golden.RLCases(t, "testdata") {
				rows, err := compute(credit.Returns(c.TokenRewards), c.Group)
				require.NoError(t, err)
				tokens, err := credit.OverRows(rows, c.Sampled())
				require.NoError(t, err)
				want, ok := c.Adv[name]
				require.True(t, ok)
				credittest.EqualRL(t, c, want.Advantages, tokens)
			}
		})
	}
}
