package reinforce

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/credit"
	"github.com/reprise-rl/reprise/model/golden"
)

// The numbers are of verl's function.
func TestReinforcePlusPlusVerl(t *testing.T) {
	content, err := os.ReadFile("testdata/verl.json")
	require.NoError(t, err)
	var file struct {
		Cases []struct {
			Mask         [][]int
			TokenRewards [][]float64 `json:"token_rewards"`
			Gamma        float64
			Want         [][]float64 `json:"reinforce_plus_plus"`
		}
	}
	require.NoError(t, json.Unmarshal(content, &file))
	require.NotEmpty(t, file.Cases)
	for i, c := range file.Cases {
		mask := make([][]bool, len(c.Mask))
		for row, sampled := range c.Mask {
			for _, m := range sampled {
				mask[row] = append(mask[row], m != 0)
			}
		}
		got, err := ReinforcePlusPlusVerl(c.TokenRewards, mask, c.Gamma)
		require.NoError(t, err)
		for row := range c.Want {
			golden.Near(t, c.Want[row], got[row], 1e-6, "case %d, row %d", i, row)
		}
		_, err = ReinforcePlusPlusVerl(c.TokenRewards, mask, 2)
		require.ErrorIs(t, err, credit.ErrInput)
		_, err = ReinforcePlusPlusVerl(nil, mask, 1)
		require.Error(t, err)
	}
}
