package device

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/run"
)

// A device with less memory than the run is made for refuses every step, before it computes.
// It still serves other runs, and this one's when there is more.
func TestDeviceIsTooSmall(t *testing.T) {
	r := begun(t, "large", tinySpec(t, "limits.device_gb=2"))
	e, v := r.Device.Engine, r.version()
	memory := e.memory
	t.Cleanup(func() { e.memory = memory })
	e.memory = 1_900_000_000
	e.Ends = func(*Ending) { t.Error("the worker ends") }
	t.Cleanup(func() { e.Ends = nil })
	for name, step := range map[string]func() error{
		"restore": func() error {
			_, err := r.Device.Restore(t.Context(), activities.RestoreInput{Version: v})
			return err
		},
		"snapshot": func() error {
			_, err := r.Device.Snapshot(t.Context(), activities.SnapshotInput{Policy: v})
			return err
		},
	} {
		err := step()
		require.ErrorIs(t, err, activities.ErrDeviceTooSmall, name)
		require.Equal(t, activities.KindDeviceTooSmall, run.KindOf(err))
		require.ErrorContains(t, err, "made for a device of 2 GB (limits.device_gb), this one has 1.9 GB; the spec is estimated to need", name)
	}
	small := begun(t, "small", tinySpec(t))
	require.NotEmpty(t, small.state)
	e.memory = 1 << 20
	_, err := small.Device.Restore(t.Context(), activities.RestoreInput{Version: small.version()})
	require.ErrorContains(t, err, "the run needs", "by what it is estimated to need")
	e.memory = memory
	require.Equal(t, r.state, r.restore(t, activities.RestoreInput{}).State)
}
