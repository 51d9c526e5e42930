package run

import (
	"testing"

	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model/batch"
	"github.com/reprise-rl/reprise/model/search"
	"github.com/stretchr/testify/require"
)

// Rows that no wave has played are dropped, and the trajectories from the root are the first of each group.
func TestRootsOfGroups(t *testing.T) {
	trees := search.Trees{Trees: 2, Branches: 2, Expansions: 1}
	rows := make([]episode.TrajectoryRow, 12)
	for i := range rows {
		rows[i] = episode.TrajectoryRow{Row: int32(i), Group: int32(i / 6), Member: int32(i % 6), PromptLengths: make([]int32, min(1, (i+2)%6))}
	}
	Unplayed(rows)
	roots := Roots(trees, rows)
	require.Len(t, roots, 4)
	for i, r := range roots {
		require.EqualValues(t, []int{0, 1, 6, 7}[i], r.Row)
	}
	for i, r := range rows {
		require.Equal(t, i%6 == 4, r.Dropped, i)
	}
}

// The mean over all tokens is then the mean over those of trajectories from the root and λ times that over
// those of branches.
func TestBranchesAreWeighed(t *testing.T) {
	trees := search.Trees{Trees: 1, Branches: 2, Expansions: 1}
	learned := []batch.Row{
		{Row: 0, Mask: []bool{true, true, true}, Columns: batch.RowColumns{batch.Advantages: []float32{1, 2, 3}}},
		{Row: 1, Mask: []bool{false, true, true}, Columns: batch.RowColumns{batch.Advantages: []float32{7, 4, 6}}},
		{Row: 3, Mask: []bool{true, false, false}, Columns: batch.RowColumns{batch.Advantages: []float32{2, 7, 7}}},
	}
	require.NoError(t, WeighBranches(trees, learned, .5))
	sum := 0.0
	for _, r := range learned {
		for n, in := range r.Mask {
			if in {
				sum += float64(r.Columns[batch.Advantages][n]) / 6
			}
		}
	}
	require.InDelta(t, (1+2+3+2)/4.0+.5*(4+6)/2, sum, 1e-6)
	require.EqualValues(t, 7, learned[1].Columns[batch.Advantages][0], "not in the loss")

	alone := []batch.Row{{Row: 0, Mask: []bool{true}, Columns: batch.RowColumns{batch.Advantages: []float32{.3}}}}
	require.NoError(t, WeighBranches(trees, alone, 1))
	require.EqualValues(t, float32(.3), alone[0].Columns[batch.Advantages][0], "nothing changes without branches")
	require.ErrorIs(t, WeighBranches(trees, learned, -1), store.ErrInvalid)
}

// The weight of branches is over the tokens of the batch, in whatever group the branch is.
func TestBranchesOfGroupsAreWeighed(t *testing.T) {
	trees := search.Trees{Trees: 1, Branches: 1, Expansions: 1}
	learned := []batch.Row{{Row: 4, Mask: []bool{true}, Columns: batch.RowColumns{batch.Advantages: []float32{1}}}, {Row: 5, Mask: []bool{true, true}, Columns: batch.RowColumns{batch.Advantages: []float32{1, 2}}}}
	require.NoError(t, WeighBranches(trees, learned, 2))
	require.InDeltaSlice(t, []float32{3}, learned[0].Columns[batch.Advantages], 1e-6)
	require.InDeltaSlice(t, []float32{3, 6}, learned[1].Columns[batch.Advantages], 1e-6)
}
