package chaos

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/dev"
)

// TestSmoke is a three-iteration run on a fresh stack, started by the temporal
// CLI and checked by `reprise verify`: make smoke.
func TestSmoke(t *testing.T) {
	l := newNamedLane(t, ownStack(t, dev.Options{Ephemeral: true}), dev.Namespace, true)
	l.worker(workerOptions{})
	l.start("smoke", preset(t, "smoke", nil))
	l.completes("smoke")
	require.Equal(t, 2, l.committed("smoke"))
	l.verifies("smoke")
}
