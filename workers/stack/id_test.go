package stack

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCheckID(t *testing.T) {
	for _, id := range []string{"bandit-1", `odd/id,x=1 "<b>&`, "../../etc", "~ "} {
		require.NoError(t, CheckID(id))
	}
	for _, id := range []string{"", "odd id/ä ✓", "a\tb", "a\x7f", "\xff"} {
		require.ErrorIs(t, CheckID(id), ErrID, id)
	}
	require.ErrorContains(t, CheckID("rün"), `"rün" has 'ü', and ids must be printable ASCII`)
}
