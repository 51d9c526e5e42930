package credit

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/golden"
)

// tolerance is how far verl's numbers, of float32 and rounded to 7 places, may be.
const tolerance = 1e-5

// goldenCase is one of verl's; all tensors are [rows, tokens].
type goldenCase struct {
	Group        []int
	Mask         [][]float64
	TokenRewards [][]float64 `json:"token_rewards"`
	Values       [][]float64
	Adv          map[string]struct {
		Advantages, Returns [][]float64
		Whitened            bool
	}
}

// sampled is the mask as truth values.
func (c goldenCase) sampled() [][]bool {
	mask := make([][]bool, len(c.Mask))
	for row, tokens := range c.Mask {
		for _, m := range tokens {
			mask[row] = append(mask[row], m != 0)
		}
	}
	return mask
}

// equal compares where the mask is true, and wants 0 elsewhere.
func (c goldenCase) equal(t *testing.T, want, got [][]float64) {
	t.Helper()
	require.Len(t, got, len(want))
	for row, sampled := range c.sampled() {
		for at, yes := range sampled {
			if yes {
				require.InDelta(t, want[row][at], got[row][at], tolerance, "row %d token %d", row, at)
			} else {
				require.Zero(t, got[row][at], "row %d token %d", row, at)
			}
		}
	}
}

func goldenCases(t *testing.T) []goldenCase {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(golden.Folder(t, "rl", "rl.json", "testdata"), "rl.json"))
	require.NoError(t, err)
	var file struct{ Cases []goldenCase }
	require.NoError(t, json.Unmarshal(content, &file))
	require.NotEmpty(t, file.Cases)
	return file.Cases
}

// The key of a GAE case says its γ and λ.
func TestGAEGolden(t *testing.T) {
	for i, c := range goldenCases(t) {
		found := 0
		for name, want := range c.Adv {
			if !strings.HasPrefix(name, "gae_") {
				continue
			}
			o := GAEOptions{Whiten: want.Whitened}
			_, err := fmt.Sscanf(strings.ReplaceAll(name, "_", " "), "gae g%g l%g", &o.Gamma, &o.Lambda)
			require.NoError(t, err, name)
			advantages, returns, err := GAE(c.TokenRewards, c.Values, c.sampled(), o)
			require.NoError(t, err)
			c.equal(t, want.Advantages, advantages)
			c.equal(t, want.Returns, returns)
			found++
		}
		require.Positive(t, found, "case %d", i)
	}
}

func TestTrajectoryCreditGolden(t *testing.T) {
	for name, credit := range map[string]func([]float64, []int) ([]float64, error){
		"grpo": func(r []float64, g []int) ([]float64, error) {
			return GRPO(r, g, GRPOOptions{NormalizeByStd: true, Epsilon: 1e-6})
		},
		"dr_grpo": DrGRPO,
		"rloo":    LeaveOneOut,
	} {
		t.Run(name, func(t *testing.T) {
			for _, c := range goldenCases(t) {
				rows, err := credit(Returns(c.TokenRewards), c.Group)
				require.NoError(t, err)
				tokens, err := OverRows(rows, c.sampled())
				require.NoError(t, err)
				want, ok := c.Adv[name]
				require.True(t, ok)
				c.equal(t, want.Advantages, tokens)
			}
		})
	}
}
