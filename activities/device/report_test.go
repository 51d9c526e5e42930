package device

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/host"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/activities/sweeps"
	"github.com/reprise-rl/reprise/infra/store"
)

// A page is written beside the run's artifacts, or the sweep's, and is none of them.
func TestReport(t *testing.T) {
	s := store.NewMemory()
	h, sweeps := &host.Host{Store: s}, &sweeps.Sweeps{Store: s}
	for _, c := range []struct {
		id, location string
		set          func(run.ReportWriter)
		report       func() (activities.ReportResult, error)
	}{
		{"r/1", "runs/r%2F1/report/index.html", func(w run.ReportWriter) { h.WriteReport = w }, func() (activities.ReportResult, error) {
			return h.Report(t.Context(), activities.ReportInput{Run: "r/1"})
		}},
		{"s/1", "sweeps/s%2F1/report/index.html", func(w run.ReportWriter) { sweeps.WriteReport = w }, func() (activities.ReportResult, error) {
			return sweeps.ReportSweep(t.Context(), activities.ReportSweepInput{Sweep: "s/1"})
		}},
	} {
		_, err := c.report()
		require.ErrorIs(t, err, run.ErrNoReport)
		c.set(func(_ context.Context, _ store.Store, id string, sink func(string, []byte) error) error {
			require.Equal(t, c.id, id)
			if err := sink("data/one.js", []byte("1")); err != nil {
				return err
			}
			return sink("index.html", []byte("<p>"))
		})
		for range 2 { // the later one takes its place
			got, err := c.report()
			require.NoError(t, err)
			require.Equal(t, 2, got.Files)
			require.Contains(t, got.Location, c.location)
		}
		c.set(func(context.Context, store.Store, string, func(string, []byte) error) error { return store.ErrNotFound })
		_, err = c.report()
		require.Equal(t, activities.KindArtifactMissing, run.KindOf(err))
	}
}
