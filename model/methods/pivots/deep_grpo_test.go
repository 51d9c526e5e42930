package pivots

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/credit"
	"github.com/reprise-rl/reprise/model/credit/credittest"
	"github.com/reprise-rl/reprise/model/golden"
)

func TestComputeWorked(t *testing.T) { credittest.ComputeWorked(t, Entry) }

// The other numbers are those of model/search, which has the same golden.
func TestDeepGRPOGolden(t *testing.T) {
	type in struct {
		BufferPosition  json.RawMessage `json:"buffer_position"`
		BufferSuccess   json.RawMessage `json:"buffer_success"`
		Segments        int
		Gamma, Draw     float64
		MainRewards     []float64       `json:"main_rewards"`
		BranchRewards   []float64       `json:"branch_rewards"`
		MainTokenLosses json.RawMessage `json:"main_token_losses"`
		BranchLosses    json.RawMessage `json:"branch_token_losses"`
		Lambda          float64
	}
	type out struct {
		Weight, Bias                 float64
		Recoverability, Distribution json.RawMessage
		Pivot                        int
		BranchAdvantages             []float64 `json:"branch_advantages"`
		MainAdvantages               []float64 `json:"main_advantages_grpo"`
		Label                        int
		Loss                         float64
	}
	g := golden.ReadMethod[in, out](t, "deep_grpo")
	for _, c := range g.Cases {
		n := len(c.In.MainRewards)
		rewards := slices.Concat(c.In.MainRewards, c.In.BranchRewards)
		of := make([]bool, len(rewards))
		for row := range of {
			of[row] = row >= n
		}
		one := make([]int, len(rewards))
		advantages, err := DeepGRPO(rewards, one, one, of, credit.Options{NormalizeByStd: true, Epsilon: 1e-6})
		require.NoError(t, err)
		golden.Near(t, slices.Concat(c.Out.MainAdvantages, c.Out.BranchAdvantages), advantages, g.Tolerance)
	}
}
