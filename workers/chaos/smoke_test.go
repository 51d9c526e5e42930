package chaos

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/dev"
)

// TestSmoke is a three-iteration run on a fresh stack, started by the temporal
// CLI and checked by `reprise verify`: make smoke.
func TestSmoke(t *testing.T) {
	beside(t)
	l := newNamedLane(t, ownStack(t, dev.Options{Ephemeral: true}), dev.Namespace, true)
	l.worker(workerOptions{})
	l.start("smoke", preset(t, "smoke", nil))
	l.completes("smoke")
	require.Equal(t, 2, l.committed("smoke"))
	l.verifies("smoke")
	for n := range 3 {
		costs := l.telemetry("smoke", n).Costs
		require.Len(t, costs, 1, "a row an iteration has what its device cost")
		require.Positive(t, costs[0].Useful)
		require.GreaterOrEqual(t, costs[0].Held, costs[0].Useful)
		require.Positive(t, costs[0].Unpriced, "the worker was given no price")
	}
}
