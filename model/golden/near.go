package golden

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Near wants as many numbers as there should be, each within a tolerance. require.InDeltaSlice compares as
// many as it gets: it passes where the last ones, or all, are missing.
func Near(t testing.TB, want, got []float64, tolerance float64, messages ...any) {
	t.Helper()
	require.Len(t, got, len(want), messages...)
	for i := range want {
		require.InDelta(t, want[i], got[i], tolerance, messages...)
	}
}
