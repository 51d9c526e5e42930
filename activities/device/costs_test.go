package device

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/store"
)

// A commit writes its costs and lost sessions beside the chain. The manifest is the same
// with others, so a retry that knows others is the same commit. gc and verify let the
// rows be.
func TestCommitWritesCosts(t *testing.T) {
	l, h, _, second := committed(t)
	ctx := t.Context()
	without, err := h.Commit(ctx, second)
	require.NoError(t, err)
	got, err := run.ReadTelemetry(ctx, l, second.Run.ID, 0, 1)
	require.NoError(t, err)
	require.Empty(t, got.Costs)

	second.Costs = []activities.Cost{{Kind: "H100", Held: 60, Useful: 40, Lost: 10, Money: 0.05}, {Kind: "L4", Held: 5, Unpriced: 5}}
	second.LostSessions = []activities.LostSession{{Kind: "H100", Opened: "2026-01-02T03:04:05Z", Lost: "2026-01-02T03:05:05Z", Step: "Update: iteration 1", Seconds: 10, Reason: "SessionLost", PriceHour: 3}}
	with, err := h.Commit(ctx, second)
	require.NoError(t, err)
	require.Equal(t, without.Manifest, with.Manifest)
	got, err = run.ReadTelemetry(ctx, l, second.Run.ID, 0, 1)
	require.NoError(t, err)
	require.Equal(t, second.Costs, got.Costs)
	require.Equal(t, second.LostSessions, got.LostSessions)

	report, err := store.Verify(ctx, l, second.Run.ID, nil)
	require.NoError(t, err)
	for _, o := range report.Orphans {
		require.False(t, strings.HasPrefix(o.Key, store.TelemetryDir(second.Run.ID)), o.Key)
	}
	garbage, err := store.FindGarbage(ctx, l, second.Run.ID, store.GarbageOptions{Grace: -1, Now: time.Now().Add(time.Hour), Ended: true})
	require.NoError(t, err)
	for _, o := range garbage.Objects {
		require.False(t, strings.HasPrefix(o.Key, store.TelemetryDir(second.Run.ID)), o.Key)
	}
}

// Every step of a device tells its price, and a restore how long it recomputed.
func TestStepsTellTheirCost(t *testing.T) {
	r := begun(t, "cost", tinySpec(t, "iterations=1", "evaluation.every=0"))
	r.Device.PriceHour = 2.5
	r.iterate(t)
	require.Equal(t, 2.5, r.commits[0].Timings["generate"].PriceHour)
	require.Equal(t, 2.5, r.commits[0].Timings["update"].PriceHour)
	require.Zero(t, r.commits[0].Timings["step"].PriceHour, "a host has none")
	held := r.restore(t, activities.RestoreInput{})
	require.Zero(t, held.Telemetry.RecomputeSeconds)
	r.forget(t)
	c := r.commits[0]
	in := activities.RestoreInput{Version: activities.Version{Run: r.Run, State: c.StateBefore}, Pending: &activities.PendingUpdate{Batch: *c.Batch, Settings: c.Settings, State: c.StateAfter}}
	rebuilt := r.restore(t, in)
	require.Equal(t, 1, rebuilt.Telemetry.Recomputed)
	require.Positive(t, rebuilt.Telemetry.RecomputeSeconds)
	require.Less(t, rebuilt.Telemetry.RecomputeSeconds, rebuilt.Telemetry.Seconds, "a part of the whole")
	require.Equal(t, 2.5, rebuilt.Telemetry.PriceHour)
}
