package sweeps

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/workflows/spec"
	"github.com/reprise-rl/reprise/workflows/sweep"
)

// stored writes a run's spec of four iterations, and commits so many of them.
func stored(t *testing.T, s store.Store, run string, committed int) {
	t.Helper()
	b, err := json.Marshal(spec.Train{Iterations: 4})
	require.NoError(t, err)
	require.NoError(t, s.Put(t.Context(), store.SpecKey(run), b, store.PutOptions{}))
	ref, err := store.PutArtifact(t.Context(), s, store.RunDir(run), "part", "json", b)
	require.NoError(t, err)
	var parent *store.Ref
	for i := range committed {
		ref, err := store.CommitManifest(t.Context(), s, &store.Manifest{
			Run: run, Iteration: i, Parent: parent, Spec: ref, Trajectories: &ref, Batch: &ref, Fingerprint: "f", Settings: json.RawMessage(`{}`), SettingsDigest: canon.Digest([]byte(`{}`)),
			StateBefore: "a", StateAfter: "b",
		})
		require.NoError(t, err)
		parent = &ref
	}
}

// A trial that the server has forgotten is what the store says; one that the server knows
// is what the server says.
func TestLookUpOfForgottenTrials(t *testing.T) {
	s := &Sweeps{Store: store.NewMemory(), Look: func(_ context.Context, id string) (activities.Found, error) {
		if id == "s/known" {
			return activities.Found{State: sweep.Terminated, Sweep: "s"}, nil
		}
		return activities.Found{}, nil
	}}
	stored(t, s.Store, "s/known", 4)
	stored(t, s.Store, "s/done", 4)
	stored(t, s.Store, "s/half", 2)
	stored(t, s.Store, "s/begun", 0)
	got, err := s.LookUp(t.Context(), activities.LookUpInput{IDs: []string{"s/known", "s/done", "s/half", "s/begun", "s/never"}})
	require.NoError(t, err)
	require.Equal(t, []activities.Found{
		{State: sweep.Terminated, Sweep: "s"},
		{State: sweep.Done},
		{State: sweep.Failed, Reason: "the server has forgotten its workflow; the store has 2 of its 4 iterations"},
		{State: sweep.Failed, Reason: "the server has forgotten its workflow; the store has 0 of its 4 iterations"},
		{},
	}, got.Found)
}
