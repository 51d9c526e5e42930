package chaos

import (
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
)

// TestRolesApart gives each role a process of its own. The workflow worker and the host worker
// share a queue, and neither takes what the other one has.
func TestRolesApart(t *testing.T) {
	beside(t)
	want := single.reference(t)
	l := newLane(t, sharedStack(t)).withStarterOf(&single)
	for _, role := range []string{"workflow", "host", "device"} {
		l.worker(workerOptions{flags: []string{"--roles", role}})
	}
	l.start(chaosRun, single.spec(t))
	l.completes(chaosRun)
	events := l.client.GetWorkflowHistory(t.Context(), chaosRun, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		require.NoError(t, err)
		require.NotContains(t, e.GetActivityTaskStartedEventAttributes().GetLastFailure().GetMessage(), "unable to find activity")
	}
	l.isAs(chaosRun, want)
}
