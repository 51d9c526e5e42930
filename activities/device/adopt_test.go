package device

import (
	"errors"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
)

// A run that was computed by a build with one other program: its versions are refused, but
// the snapshot that a branch adopts; no update of the other build is applied again.
func TestRestoreAdoptsSnapshotOnly(t *testing.T) {
	t.Parallel()
	r := begun(t, "adopted", tinySpec(t, "iterations=3", "snapshot.every=2", "evaluation.every=0"))
	present := r.programs
	var one string
	for name := range present {
		one = max(one, name)
	}
	r.programs = maps.Clone(present)
	r.programs[one] = "old"
	for range 3 {
		r.iterate(t)
	}
	at := func(version int) activities.RestoreInput {
		in := activities.RestoreInput{Version: activities.Version{Run: r.Run, Version: version, State: r.commits[version-1].StateAfter}, Head: r.head}
		if version < 3 {
			in.Head = r.commits[version].Parent
		}
		return in
	}
	refused := func(in activities.RestoreInput) {
		r.forget(t)
		r.Device.Engine.trim(0)
		before := r.Device.Engine.device.Built()
		_, err := r.Device.Restore(t.Context(), in)
		require.Zero(t, r.Device.Engine.device.Built().Minus(before).Compiled, "what is refused is not compiled")
		var differ *activities.ProgramsDiffer
		require.True(t, errors.As(err, &differ), "%v", err)
		require.Equal(t, []activities.OtherProgram{{Name: one, Recorded: "old", Present: present[one]}}, differ.Programs)
	}
	refused(at(3))
	refused(at(2))
	adopt := at(1)
	adopt.Adopt = true
	refused(adopt) // it has no snapshot: an update would be applied again

	r.forget(t)
	adopt = at(2)
	adopt.Adopt = true
	got := r.restore(t, adopt)
	require.True(t, got.Done)
	require.Equal(t, r.commits[1].StateAfter, got.State)
	require.Zero(t, got.Telemetry.Recomputed)
	require.Equal(t, present, got.Programs)
}
