package stack

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCheckID(t *testing.T) {
	for _, id := range []string{"bandit-1", `odd/id,x=1 "<b>&`, "../../etc", "~ ", "odd id/ä ✓", "a\tb", "a\x7f"} {
		require.NoError(t, CheckID(id))
	}
	for _, id := range []string{"", "\xff", "a\xc3"} {
		require.ErrorIs(t, CheckID(id), ErrID, id)
	}
}
