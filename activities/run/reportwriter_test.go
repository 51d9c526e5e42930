package run

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/store"
)

// The files of a page are stored below its folder, each under its name, and counted.
func TestReportWriter(t *testing.T) {
	s := store.NewMemory()
	broken := errors.New("no chart")
	write := ReportWriter(func(_ context.Context, _ store.Store, id string, sink func(string, []byte) error) error {
		for name, body := range map[string]string{"data/a.json": "of " + id, "index.html": "page of " + id} {
			if err := sink(name, []byte(body)); err != nil {
				return err
			}
		}
		if id == "bad" {
			return broken
		}
		return nil
	})
	out, err := write.Into(t.Context(), s, "r", "runs/r/report")
	require.NoError(t, err)
	require.Equal(t, 2, out.Files)
	require.Equal(t, s.Location("runs/r/report/index.html"), out.Location)
	for key, want := range map[string]string{"runs/r/report/data/a.json": "of r", "runs/r/report/index.html": "page of r"} {
		b, _, err := store.ReadFixed(t.Context(), s, key, 100)
		require.NoError(t, err)
		require.Equal(t, want, string(b))
	}
	_, err = write.Into(t.Context(), s, "bad", "runs/bad/report")
	require.ErrorIs(t, err, broken)
	_, err = write.Into(t.Context(), s, "r", "../r")
	require.ErrorContains(t, err, "write "+s.Location("../r/"))
	_, err = ReportWriter(nil).Into(t.Context(), s, "r", "runs/r/report")
	require.ErrorIs(t, err, ErrNoReport)
}
