package host

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	_ "github.com/reprise-rl/reprise/envs/all"
	"github.com/reprise-rl/reprise/infra/store"
)

// Resolve gives the flags of its worker, the heartbeat for the size of the model; the same
// again for a run that is started again.
func TestResolveGivesFlags(t *testing.T) {
	resolve := func(flags activities.Flags, layers, hidden int) *activities.Flags {
		h := &Host{Store: store.NewMemory(), Flags: flags}
		in := activities.ResolveInput{Run: "r", Spec: fmt.Appendf(nil,
			`{"environment": {"name": "bandit"}, "policy": {"starter": {"layers": %d, "hidden_size": %d, "intermediate_size": %[2]d, "heads": 4, "kv_heads": 4}}}`, layers, hidden)}
		out, err := h.Resolve(t.Context(), in)
		require.NoError(t, err)
		again, err := h.Resolve(t.Context(), in)
		require.NoError(t, err)
		require.Equal(t, out.Flags, again.Flags)
		return out.Flags
	}
	given := activities.Flags{ContinueAfter: 4, SessionHeartbeat: 5 * time.Second, LeaseHeartbeat: 5 * time.Second}
	require.Equal(t, &given, resolve(given, 2, 64))
	require.Equal(t, &activities.Flags{ContinueAfter: 4, SessionHeartbeat: 9 * time.Second, LeaseHeartbeat: 5 * time.Second}, resolve(given, 43, 1024), "300 million parameters")
	require.Nil(t, resolve(activities.Flags{}, 2, 64), "a program without a worker")
}
