package iterations

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
)

// history commits iterations of a run; every one follows another or begins it.
type history struct {
	t *testing.T
	s store.Store
	n int
}

// commit commits iteration n of a branch after parent, changed by change.
func (h *history) commit(branch, n int, parent *store.Link, change func(*store.Manifest)) *store.Link {
	h.t.Helper()
	ctx := h.t.Context()
	spec, err := store.Commit(ctx, h.s, store.SpecKey("r"), []byte(`{}`))
	require.NoError(h.t, err)
	h.n++
	m := &store.Manifest{
		Run: "r", Branch: branch, Iteration: n, Spec: spec, Base: store.ModelRef{Name: "starter", Digest: strings.Repeat("0", 64)},
		Fingerprint: "cpu-1", StateBefore: "base", StateAfter: fmt.Sprintf("state-%d", h.n),
		Update:  store.UpdateCounts{Steps: int64(n + 1), Rows: 4, Tokens: int64(10 * h.n), MicroBatches: 1},
		Metrics: map[string]canon.Float{"reward/mean": canon.Float(float64(h.n) / 8)},
	}
	m.Settings, m.SettingsDigest, err = store.NewSettings(nil)
	require.NoError(h.t, err)
	if parent != nil {
		m.Parent, m.StateBefore = &parent.Ref, parent.Manifest.StateAfter
	}
	if change != nil {
		change(m)
	}
	ref, err := store.CommitManifest(ctx, h.s, m)
	require.NoError(h.t, err)
	stored, err := store.ReadManifest(ctx, h.s, ref)
	require.NoError(h.t, err)
	return &store.Link{Ref: ref, Manifest: stored}
}

// rolledBack is a run that was rolled back twice: b0 0–5, b1 3–4 after b0's 2, b2 2–3
// after b0's 1.
func rolledBack(t *testing.T, s store.Store) {
	t.Helper()
	h := &history{t: t, s: s}
	b0 := make([]*store.Link, 6)
	for n := range b0 {
		var parent *store.Link
		if n > 0 {
			parent = b0[n-1]
		}
		b0[n] = h.commit(0, n, parent, func(m *store.Manifest) {
			switch n {
			case 0:
				m.Evaluations = []store.EvaluationRef{
					{Version: 0, Suite: "own", Metrics: map[string]canon.Float{"success/mean": 0.125}},
					{Version: 1, Suite: "own", Metrics: map[string]canon.Float{"success/mean": 0.25}},
				}
			case 5:
				m.Metrics["actor/loss"] = canon.Float(math.NaN())
				m.Metrics["actor/ratio_max"] = canon.Float(math.Inf(1))
				m.Update.Skipped, m.StateAfter = true, m.StateBefore
				m.Detected = json.RawMessage(`{"decision":{"action":"rollback","by":["non-finite"],"onset":3},"events":[{"detector":"non-finite","evidence":[],"iteration":5,"onset":3,"severity":"collapse","text":"x"}],"rollbacks":0,"state":{}}`)
			}
		})
	}
	first := h.commit(1, 3, b0[2], func(m *store.Manifest) {
		m.Opened = json.RawMessage(`{"branch":0,"detected":{"decision":{"action":"off","onset":0},"rollbacks":1,"state":{}},"iteration":5}`)
	})
	h.commit(1, 4, first, nil)
	h.commit(2, 3, h.commit(2, 2, b0[1], nil), nil)
}

// column finds a column's values.
func column(t *testing.T, tab Table, name string) []any {
	t.Helper()
	i := slices.IndexFunc(tab.Columns, func(c Column) bool { return c.Name == name })
	require.GreaterOrEqual(t, i, 0, name)
	var out []any
	for _, row := range tab.Rows {
		require.Len(t, row, len(tab.Columns))
		out = append(out, row[i])
	}
	return out
}

func load(t *testing.T, s store.Store) Table {
	t.Helper()
	links, err := Load(t.Context(), s, "r")
	require.NoError(t, err)
	tab, err := From(links)
	require.NoError(t, err)
	return tab
}

// TestOneRowAnIterationAndBranch: however often work was repeated, and whatever attempts
// left, an iteration of a branch is one row.
func TestOneRowAnIterationAndBranch(t *testing.T) {
	s := store.NewMemory()
	rolledBack(t, s)
	clean := load(t, s)
	// The same commits again, as attempts whose answer was lost would make them.
	rolledBack(t, s)
	// The remains of killed attempts: artifacts of iterations that are committed, that
	// were only begun, and of a branch that was only opened.
	for _, dir := range []string{store.IterationDir("r", 0, 2), store.IterationDir("r", 2, 4), store.IterationDir("r", 3, 3)} {
		_, err := store.PutArtifact(t.Context(), s, dir, "turn-1.generate", "parquet", []byte("x"))
		require.NoError(t, err)
	}
	tab := load(t, s)
	require.Equal(t, spelled(clean), spelled(tab))
	require.Equal(t, []any{int64(0), int64(0), int64(0), int64(0), int64(0), int64(0), int64(1), int64(1), int64(2), int64(2)}, column(t, tab, "branch"))
	require.Equal(t, []any{int64(0), int64(1), int64(2), int64(3), int64(4), int64(5), int64(3), int64(4), int64(2), int64(3)}, column(t, tab, "iteration"))
	require.Equal(t, []any{false, false, true, true, true, true, true, true, false, false}, column(t, tab, "abandoned"))
	seen := map[string]bool{}
	for i, branch := range column(t, tab, "branch") {
		at := fmt.Sprint(branch, column(t, tab, "iteration")[i])
		require.False(t, seen[at], at)
		seen[at] = true
	}

	links, err := Load(t.Context(), s, "r")
	require.NoError(t, err)
	shuffled := slices.Clone(links)
	slices.Reverse(shuffled)
	other, err := From(shuffled)
	require.NoError(t, err)
	require.Equal(t, spelled(tab), spelled(other), "the order of reading does not matter")
	_, err = From(append(links, links[4]))
	require.ErrorIs(t, err, store.ErrInvalid)
	require.ErrorContains(t, err, "iteration 4 of branch 0 is there twice")
}

// spelled compares tables whatever NaN is equal to.
func spelled(t Table) string { return fmt.Sprint(t.Columns, t.Rows) }

func TestColumns(t *testing.T) {
	s := store.NewMemory()
	rolledBack(t, s)
	tab := load(t, s)
	require.Equal(t, fixed, tab.Columns[:len(fixed)])
	var names []string
	for _, c := range tab.Columns[len(fixed):] {
		require.Equal(t, Number, c.Kind)
		names = append(names, c.Name)
	}
	require.Equal(t, []string{"actor/loss", "actor/ratio_max", "evaluation/own/success/mean", "evaluation_before/own/success/mean", "reward/mean"}, names)
	require.Equal(t, 0.125, column(t, tab, "evaluation_before/own/success/mean")[0])
	require.Equal(t, 0.25, column(t, tab, "evaluation/own/success/mean")[0])
	require.Nil(t, column(t, tab, "evaluation/own/success/mean")[1])
	require.Equal(t, 0.25, column(t, tab, "reward/mean")[1])
	require.Equal(t, []any{nil, int64(0), int64(0), int64(0), int64(0), int64(0), int64(0), int64(1), int64(0), int64(2)}, column(t, tab, "parent.branch"))
	require.Equal(t, "rollback", column(t, tab, "detected.decision.action")[5])
	require.Equal(t, "non-finite", column(t, tab, "detected.events")[5])
	require.Equal(t, int64(0), column(t, tab, "opened.branch")[6])
	require.Equal(t, int64(5), column(t, tab, "opened.iteration")[6])
	require.Equal(t, true, column(t, tab, "update.skipped")[5])
	require.Equal(t, int64(20), column(t, tab, "update.tokens")[1])
}

func TestFormats(t *testing.T) {
	s := store.NewMemory()
	rolledBack(t, s)
	tab := load(t, s)

	b, err := tab.Encode(CSV)
	require.NoError(t, err)
	records, err := csv.NewReader(bytes.NewReader(b)).ReadAll()
	require.NoError(t, err)
	require.Len(t, records, 11)
	require.Equal(t, []string{"run", "branch", "iteration", "abandoned"}, records[0][:4])
	require.Equal(t, []string{"r", "0", "5", "true"}, records[6][:4])
	require.Equal(t, []string{"NaN", "Infinity", "", "", "0.75"}, records[6][len(fixed):])

	b, err = tab.Encode(JSONLines)
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
	require.Len(t, lines, 10)
	require.True(t, strings.HasPrefix(lines[5], `{"run":"r","branch":0,"iteration":5,"abandoned":true,"manifest":"`), lines[5])
	require.Contains(t, lines[5], `"actor/loss":"NaN","actor/ratio_max":"Infinity","reward/mean":0.75}`)
	var object map[string]any
	require.NoError(t, json.Unmarshal([]byte(lines[0]), &object))
	require.NotContains(t, object, "actor/loss")

	_, err = tab.Encode("xlsx")
	require.ErrorIs(t, err, ErrFormat)
	_, err = ParseFormat("xlsx")
	require.ErrorContains(t, err, `unknown format "xlsx": known are parquet, csv, jsonl`)
	for _, f := range Formats {
		got, err := ParseFormat(string(f))
		require.NoError(t, err)
		require.Equal(t, f, got)
	}
}

// TestParquet reads the file back by parquet-go, columns in order, and finds the
// same bytes whatever was encoded between.
func TestParquet(t *testing.T) {
	s := store.NewMemory()
	rolledBack(t, s)
	tab := load(t, s)
	b, err := tab.Encode(Parquet)
	require.NoError(t, err)
	_, err = parquet.Read[any](bytes.NewReader(b), int64(len(b)))
	require.NoError(t, err)

	f, err := parquet.OpenFile(bytes.NewReader(b), int64(len(b)))
	require.NoError(t, err)
	var names []string
	for _, path := range f.Schema().Columns() {
		names = append(names, path...)
	}
	var want []string
	for _, c := range tab.Columns {
		want = append(want, c.Name)
	}
	require.Equal(t, want, names)
	require.Equal(t, "reprise version 1(build metrics)", f.Metadata().CreatedBy)
	require.EqualValues(t, len(tab.Rows), f.NumRows())
	for i, row := range readAll(t, f) {
		for j, v := range row {
			want := tab.Rows[i][j]
			switch want := want.(type) {
			case nil:
				require.True(t, v.IsNull())
			case string:
				require.Equal(t, want, v.String())
			case int64:
				require.Equal(t, want, v.Int64())
			case bool:
				require.Equal(t, want, v.Boolean())
			case float64:
				require.Equal(t, math.Float64bits(want), math.Float64bits(v.Double()))
			}
		}
	}
	long := Table{Columns: []Column{{"yes", Truth, true}}}
	for range 4000 {
		long.Rows = append(long.Rows, []any{true})
	}
	for range 20 {
		_, err := long.Encode(Parquet)
		require.NoError(t, err)
		again, err := tab.Encode(Parquet)
		require.NoError(t, err)
		require.Equal(t, b, again)
	}

	_, err = Table{Columns: []Column{{"yes", Truth, true}}, Rows: [][]any{{nil}}}.Encode(Parquet)
	require.ErrorContains(t, err, `row 0 has no "yes"`)
}

func readAll(t *testing.T, f *parquet.File) (out []parquet.Row) {
	t.Helper()
	for _, g := range f.RowGroups() {
		rows := g.Rows()
		buf := make([]parquet.Row, 3)
		for {
			n, err := rows.ReadRows(buf)
			for _, row := range buf[:n] {
				out = append(out, row.Clone())
			}
			if err != nil {
				break
			}
		}
		require.NoError(t, rows.Close())
	}
	return out
}

func TestRefuses(t *testing.T) {
	ctx := t.Context()
	_, err := Load(ctx, store.NewMemory(), "nobody")
	require.ErrorIs(t, err, store.ErrNotFound)
	require.ErrorContains(t, err, "check the run's id")

	for name, change := range map[string]func(*store.Manifest){
		"two values are called \"branch\"": func(m *store.Manifest) { m.Metrics["branch"] = 1 },
		"two values are called \"evaluation/a/b\"": func(m *store.Manifest) {
			m.Metrics["evaluation/a/b"] = 1
			m.Evaluations = []store.EvaluationRef{{Version: 1, Suite: "a", Metrics: map[string]canon.Float{"b": 1}}}
		},
		"a metric without a name":    func(m *store.Manifest) { m.Metrics[""] = 1 },
		"an evaluation of version 7": func(m *store.Manifest) { m.Evaluations = []store.EvaluationRef{{Version: 7}} },
		"what was detected":          func(m *store.Manifest) { m.Detected = json.RawMessage(`[]`) },
		"why the branch was opened":  func(m *store.Manifest) { m.Opened = json.RawMessage(`"x"`) },
	} {
		s := store.NewMemory()
		(&history{t: t, s: s}).commit(0, 0, nil, change)
		links, err := Load(ctx, s, "r")
		require.NoError(t, err)
		_, err = From(links)
		require.ErrorIs(t, err, store.ErrInvalid, name)
		require.ErrorContains(t, err, name)
	}

	// The next manifest shows that a manifest is missing; a damaged one is no row.
	s := store.NewMemory()
	rolledBack(t, s)
	require.NoError(t, s.Delete(ctx, store.ManifestKey("r", 0, 4)))
	links, err := Load(ctx, s, "r")
	require.NoError(t, err)
	_, err = From(links)
	require.ErrorIs(t, err, store.ErrBroken)
	require.ErrorContains(t, err, "iteration 5 of branch 0 follows")
	require.NoError(t, s.Put(ctx, store.ManifestKey("r", 0, 4), []byte("{}"), store.PutOptions{}))
	_, err = Load(ctx, s, "r")
	require.ErrorIs(t, err, store.ErrInvalid)
}

// A run forked from another run's iteration has only its own rows.
func TestFromAnotherRun(t *testing.T) {
	s := store.NewMemory()
	h := &history{t: t, s: s}
	origin := h.commit(0, 0, nil, nil)
	h.commit(0, 1, origin, func(m *store.Manifest) { m.Run = "child" })
	links, err := Load(t.Context(), s, "child")
	require.NoError(t, err)
	tab, err := From(links)
	require.NoError(t, err)
	require.Equal(t, []any{int64(1)}, column(t, tab, "iteration"))
	require.Equal(t, []any{false}, column(t, tab, "abandoned"))
	require.Equal(t, []any{nil}, column(t, tab, "parent.branch"))

	_, err = From(append(links, *origin))
	require.ErrorContains(t, err, "manifests of the runs")
}
