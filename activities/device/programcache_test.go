package device

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/model"
)

// A worker that finds a run's programs in the cache restores the same state with the same
// programs, tests itself all the same, and reports where they came from.
func TestRestoreWithCachedPrograms(t *testing.T) {
	engine(t) // the plugin is there
	dir := filepath.Join(t.TempDir(), "programs")
	r := resolved(t, "cached", tinySpec(t, "rollout.max_new_tokens=10"))
	var results [2]activities.RestoreResult
	for i := range results {
		d, err := model.OpenDevice(model.DeviceOptions{ProgramCache: dir})
		require.NoError(t, err)
		defer d.Close()
		generated := 0
		d.Before = func(program string) error {
			if program == "decode" {
				generated++
			}
			return nil
		}
		e, err := NewEngine(d)
		require.NoError(t, err)
		r.Device = &Device{Store: r.store, Engine: e}
		results[i], err = r.Device.Restore(t.Context(), activities.RestoreInput{Version: activities.Version{Run: r.Run}})
		require.NoError(t, err)
		require.Equal(t, 2, generated, "the self-test generates twice")
	}
	first, second := results[0], results[1]
	require.Equal(t, first.State, second.State)
	require.Equal(t, first.Programs, second.Programs)
	n := first.Telemetry.CompiledPrograms
	require.GreaterOrEqual(t, n, 6)
	require.Zero(t, first.Telemetry.CachedPrograms)
	require.Zero(t, second.Telemetry.CompiledPrograms)
	require.Equal(t, n, second.Telemetry.CachedPrograms)
	require.Positive(t, second.Telemetry.CachedSeconds)
	require.Less(t, second.Telemetry.CachedSeconds, second.Telemetry.CompileSeconds, "the self-test is in it")
	require.Zero(t, first.Telemetry.CacheFaults+second.Telemetry.CacheFaults)
	t.Logf("compiled in %.2f s; from the cache in %.2f s, with the self-test in %.2f s",
		first.Telemetry.CompileSeconds, second.Telemetry.CachedSeconds, second.Telemetry.CompileSeconds)
}
