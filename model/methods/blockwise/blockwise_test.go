package blockwise

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/credit"
	"github.com/reprise-rl/reprise/model/credit/credittest"
	"github.com/reprise-rl/reprise/model/golden"
	"github.com/reprise-rl/reprise/model/loss"
)

func TestComputeWorked(t *testing.T) { credittest.ComputeWorked(t, Entry) }

// Each row has two blocks; outcome is what the first one achieved.
func TestBlockwiseGolden(t *testing.T) {
	type in struct {
		Rewards     [][]float64
		Outcome     []int
		TokenLosses [][][]float64 `json:"token_losses"`
	}
	type out struct {
		Baseline, Advantage [][]float64
		AdvantageGroupMean  [][]float64 `json:"advantage_group_mean"`
		Loss                float64
	}
	g := golden.ReadMethod[in, out](t, "blockwise")
	for _, c := range g.Cases {
		rows := len(c.In.Rewards)
		groups, same, outcomes := make([]int, rows), make([][]int, rows), make([][]int, rows)
		mask, turns, losses := make([][]bool, rows), make([][]int32, rows), make([][]float64, rows)
		for row, o := range c.In.Outcome {
			for k, block := range c.In.TokenLosses[row] {
				outcomes[row], same[row] = append(outcomes[row], o), append(same[row], 0)
				mask[row] = append(mask[row], slices.Repeat([]bool{true}, len(block))...)
				turns[row] = append(turns[row], slices.Repeat([]int32{int32(k)}, len(block))...)
				losses[row] = append(losses[row], block...)
			}
		}
		got, _, err := Blockwise(c.In.Rewards, groups, outcomes)
		require.NoError(t, err)
		credittest.Within(t, g.Tolerance, c.Out.Advantage, got)
		for row := range got {
			for k, a := range got[row] {
				require.InDelta(t, c.Out.Baseline[row][k], c.In.Rewards[row][k]-a, g.Tolerance)
			}
		}
		groupMean, _, err := Blockwise(c.In.Rewards, groups, same)
		require.NoError(t, err)
		credittest.Within(t, g.Tolerance, c.Out.AdvantageGroupMean, groupMean)
		weights, err := loss.BlockWeights(mask, turns, nil)
		require.NoError(t, err)
		var sum float64
		for row := range losses {
			for i, l := range losses[row] {
				sum += weights[row][i] * l
			}
		}
		require.InDelta(t, c.Out.Loss, sum, g.Tolerance)
	}
}

// The worked numbers of the method's description.
func TestBlockwiseWorked(t *testing.T) {
	four := []int{0, 0, 0, 0}
	blocks := [][]float64{{0, -.04}, {0, -.16}, {0, -.01}, {0, -.25}}
	got, alone, err := Blockwise(blocks, four, [][]int{{1, 1}, {2, 1}, {3, 0}, {4, 0}})
	require.NoError(t, err)
	require.Zero(t, alone, "the first turn's outcome is not read")
	credittest.Within(t, 1e-12, [][]float64{{0, .06}, {0, -.06}, {0, .12}, {0, -.12}}, got)
	got, alone, err = Blockwise(blocks, four, [][]int{{0, 1}, {0, 1}, {0, 1}, {0, 0}})
	require.NoError(t, err)
	require.Equal(t, 1, alone)
	require.Zero(t, got[3][1], "a turn alone learns nothing")
	got, _, err = Blockwise(blocks, four, [][]int{{0, 0}, {0, 0}, {0, 0}, {0, 0}})
	require.NoError(t, err)
	credittest.Within(t, 1e-12, [][]float64{{0, .075}, {0, -.045}, {0, .105}, {0, -.135}}, got)
}

// The turns are counted that have no other to be compared with.
func TestTurnsAlone(t *testing.T) {
	one := credit.Input{Groups: []int{0, 0, 0}, Rewards: [][]float64{{1, 5}, {-1, 2}, {2, -1}}}
	require.Equal(t, [][]int{{0, 1}, {0, 0}, {0, 1}}, Achieved(one.Rewards))
	require.Equal(t, 1, Entry.Alone(one), "the second turn after a first one that earned nothing")
}

// A turn has paid if its reward is above 0, and what was achieved stays.
func TestAchieved(t *testing.T) {
	require.Equal(t, [][]int{{0, 1, 1, 1, 2}, {0, 0}, {0}, {}}, Achieved([][]float64{{1, 0, -1, 2, 5}, {0, 1}, {0}, {}}))
}

func TestErrors(t *testing.T) {
	nan := math.NaN()
	one, two := [][]float64{{1}}, [][]float64{{1, 2}}
	blocks := func(r [][]float64, g []int, o [][]int) error {
		_, _, err := Blockwise(r, g, o)
		return err
	}
	credittest.Refused(t, map[string]credittest.Refusal{
		"blocks reward": {blocks([][]float64{{nan}}, []int{0}, [][]int{{0}}), credit.ErrRewards, "row 0, turn 0 has NaN"},
		"blocks rows":   {blocks(one, []int{0}, nil), credit.ErrInput, "rewards of 1 rows, 1 group indexes, outcomes of 0 rows"},
		"blocks turns":  {blocks(two, []int{0}, [][]int{{0}}), credit.ErrInput, "row 0 has 2 rewards and 1 outcomes"},
	})
}

func TestRanges(t *testing.T) {
	one := [][]float64{{1}}
	blocks := func(groups []int, outcomes [][]int) error {
		_, _, err := Blockwise(one, groups, outcomes)
		return err
	}
	credittest.Ranges(t, map[string]credittest.Range{
		"groups of fewer rows": {blocks(nil, [][]int{{0}}), credit.ErrInput},
	})
}

func TestTheSameBitsOnMachinesThatFuse(t *testing.T) {
	e := credittest.UniformEpisodes(t)
	credittest.SameBits(t,
		credittest.Bits{Name: "blockwise", Want: "f6ffe4c92241", Compute: func() ([][]float64, error) {
			outcomes := make([][]int, len(e.Keys))
			for row, keys := range e.Keys {
				for _, key := range keys {
					outcomes[row] = append(outcomes[row], int(key[0]))
				}
			}
			got, _, err := Blockwise(e.Rewards, e.Groups, outcomes)
			return got, err
		}},
	)
}
