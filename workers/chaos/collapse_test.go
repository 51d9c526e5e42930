package chaos

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workflows/collapse"
)

// collapsed is a run that goes back once: its detector of gradient norms is so
// nervous that any norm above the average is a spike.
var collapsed = scene{lane: "undisturbed-collapse", preset: "chaos", change: map[string]any{"collapse": map[string]any{
	"on_detection": "off", "warm_up": 1, "solved": 0,
	"grad_norm": map[string]any{"on_detection": "rollback", "factor": 1.0001, "floor": 0, "iterations": 1},
	"rollback":  map[string]any{"max": 1, "then": "warn"},
}}}

// TestChaosRollback kills workers while a run goes back: the branch that it opens is
// the same, byte for byte, and the iterations that it left verify.
func TestChaosRollback(t *testing.T) {
	beside(t)
	want := collapsed.reference(t)
	l := &lane{t: t, stack: sharedStack(t), prefix: collapsed.lane}
	l.store = l.open(l.prefix)
	branches, err := store.Branches(t.Context(), l.store, chaosRun)
	require.NoError(t, err)
	require.Equal(t, []int{0, 1}, branches, "it went back once")
	first := l.firstOf(t, 1)
	var opened activities.Opened
	require.NoError(t, json.Unmarshal(first.Opened, &opened))
	require.Equal(t, "grad_norm", opened.Events[0].Detector)
	left, _, err := store.ReadManifestAt(t.Context(), l.store, chaosRun, 0, opened.Iteration)
	require.NoError(t, err)
	var detected activities.Detected
	require.NoError(t, json.Unmarshal(left.Detected, &detected))
	require.Equal(t, collapse.RollBack, detected.Decision.Action)
	require.Equal(t, store.ManifestKey(chaosRun, 0, first.Iteration-1), first.Parent.Key)

	l = newLane(t, sharedStack(t)).withStarterOf(&collapsed)
	stop := l.keep("Find/begin/1", "Restore/inside/1", "Commit/written/1")
	l.start(chaosRun, collapsed.spec(t))
	l.completes(chaosRun)
	stop()
	l.isAs(chaosRun, want)
	l.replays(first.Iteration)
}

// firstOf is the first manifest of a branch.
func (l *lane) firstOf(t *testing.T, branch int) *store.Manifest {
	t.Helper()
	iterations, err := store.Iterations(t.Context(), l.store, chaosRun, branch)
	require.NoError(t, err)
	m, _, err := store.ReadManifestAt(t.Context(), l.store, chaosRun, branch, iterations[0])
	require.NoError(t, err)
	return m
}
