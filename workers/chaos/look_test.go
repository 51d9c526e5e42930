package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/store"
)

// manifest reads the manifest of an iteration of branch 0.
func (l *lane) manifest(run string, iteration int) *store.Manifest {
	l.t.Helper()
	m, _, err := store.ReadManifestAt(l.t.Context(), l.store, run, 0, iteration)
	require.NoError(l.t, err)
	return m
}

// committed is the newest committed iteration, -1 if there is none.
func (l *lane) committed(run string) int {
	head, err := store.Head(l.t.Context(), l.store, run)
	if err != nil {
		require.ErrorIs(l.t, err, store.ErrNotFound)
		return -1
	}
	return head.Manifest.Iteration
}

// iterationTelemetry is what the store keeps beside an iteration.
type iterationTelemetry struct {
	Steps       map[string]activities.Telemetry `json:"steps"`
	LostDevices int                             `json:"lost_devices"`
	Costs       []activities.Cost               `json:"costs"`
	Lost        []activities.LostSession        `json:"lost_sessions"`
}

func (l *lane) telemetry(run string, iteration int) iterationTelemetry {
	l.t.Helper()
	b, _, err := store.ReadFixed(l.t.Context(), l.store, fmt.Sprintf("%s/b0/%06d.json", store.TelemetryDir(run), iteration), 1<<20)
	require.NoError(l.t, err)
	var out iterationTelemetry
	require.NoError(l.t, json.Unmarshal(b, &out))
	return out
}

// pendingSays waits until `temporal workflow describe` shows a text: a failure
// of a pending activity, as a person sees it.
func (l *lane) pendingSays(run, what string) {
	l.t.Helper()
	eventually(l.t, patience, "temporal workflow describe shows "+what, func() error {
		out, err := l.cli("workflow", "describe", "--workflow-id", run)
		if err == nil && !strings.Contains(out, what) {
			err = fmt.Errorf("it shows\n%s", out)
		}
		return err
	})
}

// saysTimes is nil when a worker has logged a text so often.
func saysTimes(p *process, what string, times int) error {
	if n := strings.Count(p.text(), what); n < times {
		return fmt.Errorf("%q was logged %d times, want %d; the log ends with\n%s", what, n, times, p.tail())
	}
	return nil
}

// alone checks by a worker's trace that no two activities had its device at once.
// It gives the runs that had it, in their order.
func (l *lane) alone(p *process) []string {
	l.t.Helper()
	var runs []string
	has := ""
	for line := range strings.SplitSeq(p.text(), "\n") {
		_, event, ok := strings.Cut(line, "reprise faults: trace ")
		if !ok {
			continue
		}
		f := strings.Fields(event)
		require.Len(l.t, f, 3, line)
		switch who := f[0] + " " + f[1]; f[2] {
		case "took":
			require.Empty(l.t, has, "%s took the device of another:\n%s", who, p.text())
			has = who
			if len(runs) == 0 || runs[len(runs)-1] != f[0] {
				runs = append(runs, f[0])
			}
		case "released":
			require.Equal(l.t, has, who, p.text())
			has = ""
		}
	}
	return runs
}

// cancel cancels a workflow through the CLI.
func (l *lane) cancel(id string) {
	l.t.Helper()
	_, err := l.cli("workflow", "cancel", "--workflow-id", id)
	require.NoError(l.t, err)
}

// failsWith waits until a workflow has failed and gives the reason.
func (l *lane) failsWith(id string) string {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.t.Context(), patience)
	defer cancel()
	err := l.client.GetWorkflow(ctx, id, "").Get(ctx, nil)
	require.Error(l.t, err)
	require.NoError(l.t, ctx.Err(), "%s did not end", id)
	return err.Error()
}

// update sends a command through the CLI and gives what it prints.
func (l *lane) update(run, name, input string) (string, error) {
	arguments := []string{"workflow", "update", "execute", "--workflow-id", run, "--name", name}
	if input != "" {
		arguments = append(arguments, "--input", input)
	}
	return l.cli(arguments...)
}
