package program

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workers/telemetry/tfevents"
	"github.com/reprise-rl/reprise/workers/telemetry/wandb"
)

func TestMetricsCommand(t *testing.T) {
	srv, links := serverRun(t, "a/b")
	dir := t.TempDir()
	metrics := func(args ...string) (stdout, stderr string, err error) {
		return execute(metricsCommand(), "", args...)
	}

	out, _, err := metrics("a/b")
	require.NoError(t, err)
	records, err := csv.NewReader(bytes.NewReader([]byte(out))).ReadAll()
	require.NoError(t, err)
	require.Len(t, records, 1+len(links))
	require.Equal(t, []string{"a/b", "0", "1", "false", links[1].Ref.Digest}, records[2][:5])
	out, _, err = metrics("a/b", "--format", "jsonl")
	require.NoError(t, err)
	require.Contains(t, out, `"reward/mean":0.5}`)

	// By a file's ending, and twice the same bytes.
	path := filepath.Join(dir, "t.parquet")
	var files [2][]byte
	for i := range files {
		out, said, err := metrics("a/b", "--out", path)
		require.NoError(t, err)
		require.Empty(t, out)
		require.Contains(t, said, fmt.Sprintf("%d iterations, ", len(links)))
		files[i], err = os.ReadFile(path)
		require.NoError(t, err)
	}
	require.Equal(t, files[0], files[1])
	require.Equal(t, "PAR1", string(files[0][:4]))

	// Event files by themselves, or with a table.
	out, said, err := metrics("a/b", "--tensorboard", filepath.Join(dir, "tb"))
	require.NoError(t, err)
	require.Empty(t, out)
	events := filepath.Join(dir, "tb", store.EscapeSegment("a/b"), "b0")
	require.Equal(t, "branch 0 in "+events+"\n", said)
	require.FileExists(t, filepath.Join(events, tfevents.FileName))
	out, _, err = metrics("a/b", "--tensorboard", filepath.Join(dir, "tb"), "--format", "csv")
	require.NoError(t, err)
	require.Contains(t, out, "run,branch,iteration")

	// Offline runs of W&B.
	out, said, err = metrics("a/b", "--format", "wandb", "--out", filepath.Join(dir, "wandb"))
	require.NoError(t, err)
	require.Empty(t, out)
	offline := filepath.Join(dir, "wandb", wandb.Folder("a/b", 0))
	require.Equal(t, "wandb sync "+offline+"\n", said)
	require.FileExists(t, filepath.Join(offline, "run-"+wandb.ID("a/b", 0)+".wandb"))

	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"a/b", "--format", "wandb"}, "--format wandb: --out DIR says where"},
		{[]string{"a/b", "--mlflow", "localhost:5000"}, "--mlflow: the address of an MLflow server is http://HOST:PORT"},
		{[]string{"a/b", "--mlflow", "http://127.0.0.1:1"}, "mlflow experiments/get-by-name"},
		{[]string{"a/b", "--format", "xlsx"}, `--format: unknown format "xlsx": known are parquet, csv, jsonl`},
		{[]string{"a/b", "--out", "t.xlsx"}, `unknown format "xlsx"`},
		{[]string{"a/b", "--out", "t"}, "add --format"},
		{[]string{"nobody"}, "no iteration is committed"},
		{[]string{"a/b", "--out", filepath.Join(dir, "none", "t.csv")}, "write the table"},
	} {
		_, _, err := metrics(c.args...)
		require.ErrorContains(t, err, c.want)
	}

	overwrite(t, srv.Store("team/a"), links[1].Ref.Key, "{}")
	_, _, err = metrics("a/b")
	require.ErrorContains(t, err, "(reprise verify a/b names all damage)")
}
