package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workers/report/episodes"
	"github.com/reprise-rl/reprise/workers/report/synthetic"
)

// untrained is a run of three iterations that was not computed.
func untrained(t *testing.T) *store.Memory {
	t.Helper()
	s := store.NewMemory()
	require.NoError(t, synthetic.Write(t.Context(), s, "run 1", synthetic.Shape{
		Iterations: 3, Groups: 2, Members: 2, Turns: 2, Words: 3, States: 2, EvaluateEvery: 2, Instances: 3, Seed: 2,
	}))
	return s
}

func TestWriteReport(t *testing.T) {
	s := untrained(t)
	var out bytes.Buffer
	dir := filepath.Join(t.TempDir(), "a", "b")
	require.NoError(t, writeReport(t.Context(), s, "run 1", dir, &out))
	require.Regexp(t, `^3 iterations on 1 branch, 15 episodes: 6 files, [\d.]+ KiB, in [\d.]+ s\n`, out.String())
	require.Contains(t, out.String(), filepath.Join(dir, "index.html"))
	for _, name := range []string{"index.html", "data/index.js", "data/b0-000002.0.js", "data/b0-e000002-0.0.js"} {
		require.FileExists(t, filepath.Join(dir, filepath.FromSlash(name)))
	}
	// Made again it is written over, and what is missing is said.
	require.NoError(t, s.Delete(t.Context(), store.SpecKey("run 1")))
	out.Reset()
	require.NoError(t, writeReport(t.Context(), s, "run 1", dir, &out))
	require.Contains(t, out.String(), "not there: resolved spec: missing: runs/run%201/spec.json\n")

	_, err := store.PutArtifact(t.Context(), s, store.SweepDir("sweep"), "definition", "json", []byte(`{"trials": [{"label": "a"}, {"label": "b"}]}`))
	require.NoError(t, err)
	out.Reset()
	require.NoError(t, writeReport(t.Context(), s, "sweep", dir, &out))
	require.Regexp(t, `^2 trials, 0 iterations on 0 branches: 1 file, `, out.String())
	require.Contains(t, out.String(), "not there: 2 × runs of trials: nothing is stored of them yet")

	require.ErrorIs(t, writeReport(t.Context(), s, "another", dir, &out), store.ErrNotFound)
	require.ErrorContains(t, intoFolder(dir)("../x", nil), "leads out of")
	blocked := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(blocked, nil, 0o600))
	require.ErrorContains(t, writeReport(t.Context(), s, "run 1", blocked, &out), "write the report")
}

func TestTrajectories(t *testing.T) {
	s := untrained(t)
	read := func(w wantedTrajectories) ([]byte, string, error) {
		var errOut bytes.Buffer
		body, err := trajectories(t.Context(), s, "run 1", w, &errOut)
		return body, errOut.String(), err
	}
	lines, said, err := read(wantedTrajectories{iteration: 1, branch: -1, format: formatJSONL})
	require.NoError(t, err)
	require.Empty(t, said)
	var records []episodes.Record
	for line := range strings.Lines(string(lines)) {
		var r episodes.Record
		require.NoError(t, json.Unmarshal([]byte(line), &r))
		records = append(records, r)
	}
	require.Len(t, records, 4)
	require.Equal(t, "run 1", records[0].Run)
	require.Equal(t, int32(1), records[3].Iteration)
	turn := records[0].Turns[0]
	require.Len(t, turn.LogProbs, len(turn.IDs))
	require.Len(t, turn.Advantages, len(turn.IDs), "the first group was learned from")
	require.Empty(t, records[3].Turns[0].Advantages)
	require.Contains(t, turn.Text, "<answer> Down || Right </answer>")
	require.Contains(t, turn.Prompt, turn.Before)

	table, _, err := read(wantedTrajectories{iteration: 1, branch: 0, format: formatParquet})
	require.NoError(t, err)
	rows, err := store.DecodeTable[episodes.Record](table)
	require.NoError(t, err)
	require.Len(t, rows, 4)
	for i := range rows {
		have, err := json.Marshal(rows[i])
		require.NoError(t, err)
		want, err := json.Marshal(records[i])
		require.NoError(t, err)
		require.JSONEq(t, string(want), string(have), "both formats say the same")
	}

	lines, _, err = read(wantedTrajectories{iteration: 1, branch: -1, suite: "in-distribution", format: formatJSONL})
	require.NoError(t, err)
	require.Equal(t, 3, bytes.Count(lines, []byte("\n")))

	for _, c := range []struct {
		w    wantedTrajectories
		want string
	}{
		{wantedTrajectories{iteration: 7, branch: -1}, `iteration 7 of run "run 1" is not committed; the newest is 2`},
		{wantedTrajectories{iteration: 1, branch: 4}, "not found"},
		{wantedTrajectories{iteration: 0, branch: -1, suite: "x"}, "no evaluation was made in iteration 0"},
		{wantedTrajectories{iteration: 1, branch: -1, suite: "x"}, `no evaluation on "x" was made in iteration 1, only on in-distribution`},
	} {
		_, _, err := read(c.w)
		require.ErrorIs(t, err, store.ErrNotFound)
		require.ErrorContains(t, err, c.want)
	}
	require.ErrorContains(t, wantedTrajectories{iteration: -1}.check(), "--iteration N")
	require.ErrorContains(t, wantedTrajectories{format: "csv"}.check(), `"csv" is none of jsonl, parquet`)

	m, err := manifestOf(t.Context(), s, "run 1", 1, -1)
	require.NoError(t, err)
	require.NoError(t, s.Delete(t.Context(), m.Batch.Key))
	_, said, err = read(wantedTrajectories{iteration: 1, branch: -1, format: formatJSONL})
	require.NoError(t, err)
	require.Contains(t, said, "not there: batch, and so the advantages")
	require.NoError(t, s.Delete(t.Context(), m.Trajectories.Key))
	_, _, err = read(wantedTrajectories{iteration: 1, branch: -1, format: formatJSONL})
	require.ErrorIs(t, err, store.ErrNotFound)
}
