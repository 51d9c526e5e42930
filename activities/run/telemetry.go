package run

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/store"
)

// IterationTelemetry has the figures of an iteration that differ between attempts.
type IterationTelemetry struct {
	Branch    int `json:"branch"`
	Iteration int `json:"iteration"`
	// Committed is when the manifest was written.
	Committed time.Time `json:"committed"`
	// Steps are the iteration's steps by name; the steps of several turns add up.
	Steps       map[string]activities.Telemetry `json:"steps"`
	LostDevices int                             `json:"lost_devices"`
	// Costs are what the devices did since the commit before, by kind: a superset of the
	// iteration's steps, with what was lost, given up and waited for. LostSessions has a row
	// for each session lost since then.
	Costs        []activities.Cost        `json:"costs,omitempty"`
	LostSessions []activities.LostSession `json:"lost_sessions,omitempty"`
}

// maxTelemetry bounds an iteration's telemetry, in bytes.
const maxTelemetry = 1 << 20

// ReadTelemetry reads what was measured in an iteration.
func ReadTelemetry(ctx context.Context, s store.Store, run string, branch, iteration int) (IterationTelemetry, error) {
	var t IterationTelemetry
	b, ref, err := store.ReadFixed(ctx, s, TelemetryKey(run, branch, iteration), maxTelemetry)
	if err != nil {
		return t, err
	}
	if err := json.Unmarshal(b, &t); err != nil {
		return t, fmt.Errorf("telemetry %s: %w", ref.Key, err)
	}
	return t, nil
}

// TelemetryKey is where an iteration's telemetry is stored.
func TelemetryKey(run string, branch, iteration int) string {
	return fmt.Sprintf("%s/b%d/%06d.json", store.TelemetryDir(run), branch, iteration)
}
