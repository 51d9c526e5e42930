package device

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
)

// on is a run's steps on another worker.
func (r *testRun) on(e *Engine) *Device { return &Device{Store: r.store, Engine: e} }

// follows brings the run's weights up to date on another worker.
func (r *testRun) follows(t *testing.T, e *Engine) Followed {
	t.Helper()
	got, ok, err := e.Follow(t.Context(), r.on(e), r.ID, 0)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, len(r.commits), got.Committed)
	return got
}

// A worker that follows a run applies each update as it is committed. The run continues there without a load, and has the bytes of
// a run that was never elsewhere.
func TestFollow(t *testing.T) {
	t.Parallel()
	spec := tinySpec(t, "iterations=5", "snapshot.every=2", "evaluation.every=0")
	own, idle := engine(t), opened(t, compiling)
	alone := resolved(t, "followed", spec)
	alone.moveTo(t, own)
	for range 4 {
		alone.iterate(t)
	}

	r := resolved(t, "followed", spec)
	_, _, err := idle.Follow(t.Context(), r.on(idle), r.ID, 0)
	require.Error(t, err, "nothing is committed")
	r.moveTo(t, own)
	idle.Follows([]string{r.ID, "second"})
	r.iterate(t)
	require.Equal(t, 1, r.follows(t, idle).Version)
	for version := 2; version <= 3; version++ {
		r.iterate(t)
		got := r.follows(t, idle)
		require.Equal(t, version, got.Version)
		require.Equal(t, 1, got.Applied)
	}
	require.Zero(t, r.follows(t, idle).Applied)

	// A second one, whose weights are beside those of the first.
	second := resolved(t, "second", tinySpec(t, "seed=5", "evaluation.every=0"))
	second.moveTo(t, own)
	second.iterate(t)
	need := idle.bytes
	_, _, err = idle.Follow(t.Context(), second.on(idle), second.ID, need*3/2)
	require.ErrorIs(t, err, ErrNoRoom)
	_, ok, err := idle.Follow(t.Context(), second.on(idle), second.ID, need*2)
	require.NoError(t, err)
	require.True(t, ok)
	require.Len(t, idle.aside, 1)
	require.Zero(t, r.follows(t, idle).Applied)
	require.Len(t, idle.aside, 1)
	kept, free := idle.Follows([]string{r.ID, "second", "third"})
	require.True(t, free)
	require.Equal(t, map[string]bool{r.ID: true, "second": true, "third": false}, kept)

	// The run comes. What is there of the other one makes room.
	closed := idle.SessionOpened(r.ID)
	r.Device = r.on(idle)
	restored := r.restore(t, activities.RestoreInput{})
	require.True(t, restored.Resident)
	require.Zero(t, restored.Telemetry.LoadSeconds)
	require.Empty(t, idle.aside)
	_, ok, err = idle.Follow(t.Context(), second.on(idle), second.ID, 0)
	require.NoError(t, err)
	require.False(t, ok, "a run has the device")
	r.iterate(t)
	closed()
	require.Equal(t, alone.head, r.head)
	require.Equal(t, alone.objects(t), r.objects(t))

	// One that is not followed any more makes room for others.
	kept, _ = idle.Follows([]string{"second"})
	require.Equal(t, map[string]bool{"second": false}, kept, "it has made room")
	second.follows(t, idle)
	require.Equal(t, second.Run, idle.owner)
	require.Empty(t, idle.aside)
}

// A run that is given the device waits for a micro-batch of what is done ahead at most. If it is the run that is followed, what is
// done stays; if it is another, nothing does.
func TestFollowGivesWay(t *testing.T) {
	t.Parallel()
	r := piecewise(t, engine(t), "ahead", "snapshot.every=50")
	r.iterate(t)
	r.iterate(t)
	idle := opened(t, compiling)
	for _, c := range []struct {
		comes string
		stays bool
	}{{"ahead", true}, {"another", false}} {
		idle.forget()
		idle.Follows([]string{r.ID})
		var closed func()
		steps := 0
		idle.device.Before = func(string) error {
			if w := idle.begun; closed == nil && idle.state != nil && idle.fingerprint == "" && w == nil {
				if steps++; steps == 4 {
					closed = idle.SessionOpened(c.comes)
				}
			}
			return nil
		}
		got, ok, err := idle.Follow(t.Context(), r.on(idle), r.ID, 0)
		idle.device.Before = nil
		require.NoError(t, err)
		require.NotNil(t, closed, "it came in the middle of an update")
		require.Less(t, got.Version, got.Committed)
		require.Equal(t, c.stays, ok)
		if c.stays {
			require.NotNil(t, idle.begun)
			done := idle.begun.done
			require.Positive(t, done)
		}
		restored, err := r.on(idle).Restore(t.Context(), activities.RestoreInput{Version: r.version(), Head: r.head})
		require.NoError(t, err)
		require.Equal(t, r.state, restored.State)
		closed()
	}
}

// What following a run finds of a damaged snapshot is told when the run comes.
func TestFollowTellsOfDamage(t *testing.T) {
	t.Parallel()
	r := resolved(t, "damaged", tinySpec(t, "iterations=5", "snapshot.every=2", "evaluation.every=0"))
	r.moveTo(t, engine(t))
	for range 3 {
		r.iterate(t)
	}
	alter(t, r.store, r.commits[1].Snapshot.Files["model.safetensors"].Key)
	idle := opened(t, compiling)
	require.Equal(t, 3, r.follows(t, idle).Version)
	r.Device = r.on(idle)
	got := r.restore(t, activities.RestoreInput{})
	require.True(t, got.Resident)
	require.Equal(t, []int{2}, got.Damaged)
	require.Empty(t, r.restore(t, activities.RestoreInput{}).Damaged, "it is told once")
}
