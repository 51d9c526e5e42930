package program

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/tables"
	pages "github.com/reprise-rl/reprise/workers/report"
	"github.com/reprise-rl/reprise/workers/report/episodes"
	"github.com/reprise-rl/reprise/workers/report/synthetic"
	"github.com/reprise-rl/reprise/workflows/sweep"
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
	write := func(dir, id string) error {
		return reportWriter{store: s, dir: dir, out: &out, errOut: &out}.write(t.Context(), id)
	}
	dir := filepath.Join(t.TempDir(), "a", "b")
	require.NoError(t, write(dir, "run 1"))
	require.Regexp(t, `^3 iterations on 1 branch, 15 episodes: 6 files, [\d.]+ KiB, in [\d.]+ s\n`, out.String())
	require.Contains(t, out.String(), filepath.Join(dir, "index.html"))
	for _, name := range []string{"index.html", "data/index.js", "data/b0-000002.0.js", "data/b0-e000002-0.0.js"} {
		require.FileExists(t, filepath.Join(dir, filepath.FromSlash(name)))
	}
	// Made again it is written over, and what is missing is said.
	require.NoError(t, s.Delete(t.Context(), store.SpecKey("run 1")))
	out.Reset()
	require.NoError(t, write(dir, "run 1"))
	require.Contains(t, out.String(), "not there: resolved spec: missing: runs/run%201/spec.json\n")

	_, err := store.PutArtifact(t.Context(), s, store.SweepDir("sweep"), "definition", "json", []byte(`{"trials": [{"label": "a"}, {"label": "b"}]}`))
	require.NoError(t, err)
	out.Reset()
	require.NoError(t, write(dir, "sweep"))
	require.Regexp(t, `^2 trials, 0 iterations on 0 branches: 1 file, `, out.String())
	require.Contains(t, out.String(), "not there: 2 × runs of trials: nothing is stored of them yet")

	require.ErrorIs(t, write(dir, "another"), store.ErrNotFound)
	require.ErrorContains(t, pages.IntoFolder(dir)("../x", nil), "leads out of")
	blocked := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(blocked, nil, 0o600))
	require.ErrorContains(t, write(blocked, "run 1"), "write the report")
}

// With --trials each trial of which something is stored has a report below its sweep's,
// which links to it by its name, percent-encoded twice: once as a name, once as a link.
func TestWriteReportOfTrials(t *testing.T) {
	s := store.NewMemory()
	body := []byte(`{"trials": [{"label": "selection.keep=0.5,seed=1"}, {"label": "selection.keep=0.5,seed=2"}, {"label": "../x\u001b"}]}`)
	_, err := store.PutArtifact(t.Context(), s, store.SweepDir("w"), "definition", "json", body)
	require.NoError(t, err)
	for _, label := range []string{"selection.keep=0.5,seed=1", "../x\x1b"} {
		require.NoError(t, synthetic.Write(t.Context(), s, sweep.ID("w", label), synthetic.Shape{Iterations: 2, Groups: 2, Members: 2, Turns: 1, Words: 2, Seed: 3}))
	}
	require.NoError(t, synthetic.Write(t.Context(), s, "run", synthetic.Shape{Iterations: 1, Groups: 1, Members: 2, Turns: 1, Words: 2}))
	var out, errOut bytes.Buffer
	w := reportWriter{store: s, dir: t.TempDir(), trials: true, out: &out, errOut: &errOut}
	require.NoError(t, w.write(t.Context(), "w"))
	require.Regexp(t, `^3 trials, 4 iterations on 2 branches, 16 episodes: 9 files, [\d.]+ KiB, in [\d.]+ s\n`, out.String())
	require.Regexp(t, `^trial 1 of 3, selection\.keep=0\.5,seed=1: 2 iterations, [\d.]+ KiB, in [\d.]+ s\n`+
		`trial 2 of 3, selection\.keep=0\.5,seed=2: nothing is stored of it\n`+
		`trial 3 of 3, \.\./x : 2 iterations, `, errOut.String())
	for _, name := range []string{"index.html", "trials/selection.keep%3D0.5%2Cseed%3D1/index.html", "trials/selection.keep%3D0.5%2Cseed%3D1/data/index.js", "trials/%2E%2E%2Fx%1B/index.html"} {
		require.FileExists(t, filepath.Join(w.dir, filepath.FromSlash(name)))
	}
	page, err := os.ReadFile(filepath.Join(w.dir, "index.html"))
	require.NoError(t, err)
	require.Contains(t, string(page), `"page":"./trials/selection.keep%253D0.5%252Cseed%253D1/index.html"`)
	require.Contains(t, string(page), `"page":"./trials/%252E%252E%252Fx%251B/index.html"`)
	require.Equal(t, 2, bytes.Count(page, []byte(`"page":"`)))

	require.ErrorContains(t, w.write(t.Context(), "run"), "--trials is for a sweep")
	w.trials = false
	w.dir = t.TempDir()
	require.NoError(t, w.write(t.Context(), "w"))
	page, err = os.ReadFile(filepath.Join(w.dir, "index.html"))
	require.NoError(t, err)
	require.NotContains(t, string(page), `"page":"`, "what is not there has no link")
}

// Several ids are compared on one page, and --json prints the numbers of any page without one.
func TestWriteComparison(t *testing.T) {
	s := untrained(t)
	require.NoError(t, synthetic.Write(t.Context(), s, "run 2", synthetic.Shape{Iterations: 2, Groups: 2, Members: 2, Turns: 1, Words: 2, Seed: 3}))
	var out bytes.Buffer
	w := reportWriter{store: s, dir: t.TempDir(), out: &out, errOut: &out}
	require.NoError(t, w.write(t.Context(), "run 1", "run 2"))
	require.Regexp(t, `^2 runs, 5 iterations on 2 branches: 1 file, `, out.String())
	require.FileExists(t, filepath.Join(w.dir, "index.html"))
	require.ErrorIs(t, w.write(t.Context(), "run 1", "run 3"), store.ErrNotFound)
	require.ErrorContains(t, w.write(t.Context(), "run 1", "run 1"), `run "run 1" is named twice`)
	w.trials = true
	require.ErrorContains(t, w.write(t.Context(), "run 1", "run 2"), "--trials is for one sweep, and 2 ids are given")

	_, err := store.PutArtifact(t.Context(), s, store.SweepDir("sweep"), "definition", "json", []byte(`{"trials": [{"label": "a"}]}`))
	require.NoError(t, err)
	w = reportWriter{store: s, dir: filepath.Join(t.TempDir(), "none"), json: true, out: &out, errOut: &out}
	for want, ids := range map[string][]string{"run 1 and run 2": {"run 1", "run 2"}, "sweep": {"sweep"}, "run 1": {"run 1"}} {
		out.Reset()
		require.NoError(t, w.write(t.Context(), ids...))
		var page struct{ ID string }
		require.NoError(t, json.Unmarshal(out.Bytes(), &page))
		require.Equal(t, want, page.ID)
	}
	require.NoDirExists(t, w.dir)
	require.ErrorIs(t, w.write(t.Context(), "run 3"), store.ErrNotFound)
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
	rows, err := tables.Decode[episodes.Record](table)
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

	// In a run forked from this one, iterations before the fork still belong to this one.
	link, err := store.Head(t.Context(), s, "run 1")
	require.NoError(t, err)
	child := *link.Manifest
	child.Run, child.Iteration, child.Parent = "child", child.Iteration+1, &link.Ref
	child.StateBefore = link.Manifest.StateAfter
	_, err = store.CommitManifest(t.Context(), s, &child)
	require.NoError(t, err)
	for iteration, run := range map[int]string{1: "run 1", 3: "child"} {
		lines, err := trajectories(t.Context(), s, "child", wantedTrajectories{iteration: iteration, branch: -1, format: formatJSONL}, io.Discard)
		require.NoError(t, err)
		var r episodes.Record
		require.NoError(t, json.NewDecoder(bytes.NewReader(lines)).Decode(&r))
		require.Equal(t, run, r.Run)
		require.Equal(t, int32(iteration), r.Iteration)
	}

	for _, c := range []struct {
		w    wantedTrajectories
		want string
	}{
		{wantedTrajectories{iteration: 7, branch: -1}, `iteration 7 of run "run 1" is not committed; the newest is 2`},
		{wantedTrajectories{iteration: 1, branch: 4}, "not found"},
		{wantedTrajectories{iteration: 0, branch: -1, suite: "x"}, "no evaluation was made in iteration 0"},
		{wantedTrajectories{iteration: 0, branch: -1, suite: "x"}, "no evaluation was made in iteration 0, but in 1: not found"},
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
