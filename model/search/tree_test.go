package search

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A tree branches at its beginning, and after each turn that another one follows. A turn that two
// leaves share is one place.
func TestPlacesOfTree(t *testing.T) {
	places, err := Places([]Leaf{{0, 3}, {2, 4}, {0, 1}})
	require.NoError(t, err)
	require.Equal(t, []Place{{0, 0}, {0, 1}, {0, 2}, {1, 3}}, places)
	one, err := Places([]Leaf{{0, 1}})
	require.NoError(t, err)
	require.Equal(t, []Place{{}}, one, "a tree of one turn branches at its beginning")

	for draw, want := range map[float64]Place{0: {0, 0}, .2499: {0, 0}, .25: {0, 1}, .5: {0, 2}, .9999999: {1, 3}} {
		got, err := Among(places, draw)
		require.NoError(t, err)
		require.Equal(t, want, got, "%v", draw)
	}
	for _, bad := range [][]Leaf{{{0, 0}}, {{1, 2}}, {{0, 2}, {2, 2}}, {{0, 2}, {-1, 2}}} {
		_, err := Places(bad)
		require.ErrorIs(t, err, ErrInput, "%v", bad)
	}
	_, err = Among(places, 1)
	require.ErrorIs(t, err, ErrInput)
	_, err = Among(nil, 0)
	require.ErrorIs(t, err, ErrInput)
}
