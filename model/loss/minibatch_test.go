package loss

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/draw"
)

func TestMinibatches(t *testing.T) {
	a := draw.Address{Seed: 7, Branch: 1, Iteration: 3}
	got, err := Minibatches(10, 4, 3, a)
	require.NoError(t, err)
	require.Len(t, got, 9)
	for epoch := range 3 {
		var all []int
		for i, items := range got[3*epoch : 3*epoch+3] {
			require.Len(t, items, []int{4, 4, 2}[i])
			require.True(t, slices.IsSorted(items))
			all = append(all, items...)
		}
		slices.Sort(all)
		require.Equal(t, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, all)
	}
	require.NotEqual(t, got[:3], got[3:6])
	// The order is pinned: a change here changes every run.
	require.Equal(t, [][]int{{1, 4, 7, 8}, {0, 2, 5, 6}, {3, 9}}, got[:3])

	again, err := Minibatches(10, 4, 3, draw.Address{Seed: 7, Branch: 1, Iteration: 3, Purpose: draw.Sample, Step: 5})
	require.NoError(t, err)
	require.Equal(t, got, again)
	other, err := Minibatches(10, 4, 3, draw.Address{Seed: 7, Branch: 1, Iteration: 4})
	require.NoError(t, err)
	require.NotEqual(t, got, other)

	whole, err := Minibatches(3, 8, 2, a)
	require.NoError(t, err)
	require.Equal(t, [][]int{{0, 1, 2}, {0, 1, 2}}, whole)
	for _, bad := range [][3]int{{0, 1, 1}, {1, 0, 1}, {1, 1, 0}} {
		_, err := Minibatches(bad[0], bad[1], bad[2], a)
		require.ErrorIs(t, err, ErrInput)
	}
}
