package program

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/store/tables"
	"github.com/reprise-rl/reprise/workers/report/episodes"
)

// A whole run's trajectories are a folder with a file an iteration, each as the command for that iteration writes it.
func TestDataset(t *testing.T) {
	s := untrained(t)
	for _, format := range []string{formatParquet, formatJSONL} {
		w := wantedTrajectories{iteration: -1, iterations: "all", branch: -1, format: format, out: filepath.Join(t.TempDir(), "a", "b")}
		for range 2 { // written again, it is the same
			var errOut bytes.Buffer
			require.NoError(t, w.dataset(t.Context(), s, "run 1", io.Discard, &errOut))
			require.Contains(t, errOut.String(), "3 iterations of run run 1 in "+w.out)
			files, err := os.ReadDir(w.out)
			require.NoError(t, err)
			require.Len(t, files, 3)
			for i, f := range files {
				have, err := os.ReadFile(filepath.Join(w.out, f.Name()))
				require.NoError(t, err)
				want, err := trajectories(t.Context(), s, "run 1", wantedTrajectories{iteration: i, branch: -1, format: format}, io.Discard)
				require.NoError(t, err)
				require.Equal(t, want, have, f.Name())
			}
		}
	}
	table, err := trajectories(t.Context(), s, "run 1", wantedTrajectories{iteration: 2, branch: -1, format: formatParquet}, io.Discard)
	require.NoError(t, err)
	rows, err := tables.Decode[episodes.Record](table)
	require.NoError(t, err)
	require.Equal(t, int32(2), rows[0].Iteration, "rows say of which iteration they are")

	lines := func(iterations, suite string) (int, error) {
		var out bytes.Buffer
		w := wantedTrajectories{iterations: iterations, branch: 0, format: formatJSONL, suite: suite}
		err := w.dataset(t.Context(), s, "run 1", &out, io.Discard)
		return bytes.Count(out.Bytes(), []byte("\n")), err
	}
	all, err := lines("all", "")
	require.NoError(t, err)
	later, err := lines("1-", "")
	require.NoError(t, err)
	one, err := lines("1-1", "")
	require.NoError(t, err)
	require.Equal(t, []int{12, 8, 4}, []int{all, later, one})
	evaluated, err := lines("all", "in-distribution")
	require.NoError(t, err)
	require.Equal(t, 3, evaluated, "the iterations that evaluated the suite")

	for iterations, want := range map[string]string{
		"": "allowed: all, or a range", "every": "allowed: all", "3-1": "allowed: all", "-3": "allowed: all", "1": "allowed: all", "1-x": "allowed: all",
		"7-": `iteration 7 of run "run 1" is not committed; the newest is 2`,
	} {
		_, err := lines(iterations, "")
		require.ErrorContains(t, err, want, iterations)
	}
	_, err = lines("all", "x")
	require.ErrorContains(t, err, `no evaluation on "x" was made in iterations all, but in 1`)
}
