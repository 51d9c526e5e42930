package run

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/store"
)

// The telemetry of an iteration is found by its run, branch and iteration.
func TestTelemetryOfAnIteration(t *testing.T) {
	s := store.NewMemory()
	keys := map[string]bool{}
	for _, run := range []string{"r", "r2"} {
		for branch := range 2 {
			for iteration := range 2 {
				want := IterationTelemetry{Branch: branch, Iteration: iteration, LostDevices: len(keys), Steps: map[string]activities.Telemetry{"commit": {Seconds: 1.5}}}
				b, err := json.Marshal(want)
				require.NoError(t, err)
				key := TelemetryKey(run, branch, iteration)
				require.False(t, keys[key], key)
				keys[key] = true
				require.NoError(t, s.Put(t.Context(), key, b, store.PutOptions{}))
				got, err := ReadTelemetry(t.Context(), s, run, branch, iteration)
				require.NoError(t, err)
				require.Equal(t, want, got)
			}
		}
	}
	require.True(t, keys["runs/r2/telemetry/b1/000001.json"])
	_, err := ReadTelemetry(t.Context(), s, "r", 2, 0)
	require.ErrorIs(t, err, store.ErrNotFound)
	require.NoError(t, s.Put(t.Context(), TelemetryKey("r", 3, 0), []byte("[]"), store.PutOptions{}))
	_, err = ReadTelemetry(t.Context(), s, "r", 3, 0)
	require.ErrorContains(t, err, "telemetry runs/r/telemetry/b3/000000.json")
	require.NoError(t, s.Put(t.Context(), TelemetryKey("r", 3, 0), make([]byte, 1<<20+1), store.PutOptions{}))
	_, err = ReadTelemetry(t.Context(), s, "r", 3, 0)
	require.ErrorIs(t, err, store.ErrTooLarge)
}
