package activities

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/store"
)

// A page is written beside the run's artifacts, and is none of them.
func TestReport(t *testing.T) {
	s := store.NewMemory()
	h := &Host{Store: s}
	_, err := h.Report(t.Context(), ReportInput{Run: "r"})
	require.ErrorIs(t, err, ErrNoReport)
	h.WriteReport = func(_ context.Context, _ store.Store, run string, sink func(string, []byte) error) error {
		require.Equal(t, "r", run)
		if err := sink("data/one.js", []byte("1")); err != nil {
			return err
		}
		return sink("index.html", []byte("<p>"))
	}
	for range 2 { // the later one takes its place
		got, err := h.Report(t.Context(), ReportInput{Run: "r"})
		require.NoError(t, err)
		require.Equal(t, 2, got.Files)
		require.Contains(t, got.Location, "runs/r/report/index.html")
	}
}
