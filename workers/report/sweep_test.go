package report_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workers/report"
	"github.com/reprise-rl/reprise/workers/report/synthetic"
	"github.com/reprise-rl/reprise/workflows/sweep"
)

const figure = "fig7"

// settings of the sweep and what they add to the success.
var settings = []struct {
	name  string
	level float64
}{{"selection.keep=0.25", 0.1}, {"selection.keep=0.5", 0}, {"selection.keep=1", -0.3}}

// putSweep stores a sweep of three settings and two seeds, whose last trial has not
// begun, with a definition that was extended once.
func putSweep(t testing.TB, s *store.Memory, final bool) {
	t.Helper()
	ctx := context.Background()
	type definition struct {
		Sweep      string           `json:"sweep"`
		Definition sweep.Definition `json:"definition"`
		Trials     []sweep.Trial    `json:"trials"`
	}
	d := definition{Sweep: figure, Definition: sweep.Definition{Description: "How much is kept.", Metrics: []string{"success/mean", "evaluation/success/mean"}, Goal: sweep.Maximize}}
	table := sweep.Table{Sweep: figure, Metrics: d.Definition.Metrics, Goal: sweep.Maximize}
	put := func(name string, v any) {
		body, err := json.Marshal(v)
		require.NoError(t, err)
		_, err = store.PutArtifact(ctx, s, store.SweepDir(figure), name, "json", body)
		require.NoError(t, err)
	}
	for seed := uint64(1); seed <= 2; seed++ {
		for i, setting := range settings {
			label := fmt.Sprintf("%s,seed=%d", setting.name, seed)
			d.Trials = append(d.Trials, sweep.Trial{Label: label, Setting: setting.name, Seed: seed, Iterations: 8})
			state := sweep.Done
			if seed == 2 && i == 2 {
				state = sweep.Stopped
			} else {
				shape := synthetic.Shape{Iterations: 8, Groups: 4, Members: 4, Turns: 1, Words: 3, States: 2, EvaluateEvery: 4, Instances: 8, Seed: seed, Level: setting.level}
				require.NoError(t, synthetic.Write(ctx, s, sweep.ID(figure, label), shape))
			}
			table.Rows = append(table.Rows, sweep.Row{Trial: label, Setting: setting.name, Seed: seed, State: state, Iterations: 8, Of: 8})
		}
		s.SetTime(time.Unix(int64(seed)*100, 0))
		put("definition", d)
	}
	table.Decisions = []sweep.DecisionRow{{Trial: table.Rows[5].Trial, Text: "stopped: <b>median</b> rule"}}
	if final {
		put("table", table)
	}
}

func TestLoadSweep(t *testing.T) {
	s := store.NewMemory()
	putSweep(t, s, false)
	got, err := report.LoadSweep(t.Context(), s, figure)
	require.NoError(t, err)
	require.False(t, got.Final)
	require.Len(t, got.Trials, 6, "of the later definition")
	require.Equal(t, "How much is kept.", got.Description)
	require.NotNil(t, got.Trials[4].Run)
	require.Nil(t, got.Trials[5].Run)
	require.Equal(t, []report.Missing{{What: "runs of trials", Why: "nothing is stored of them yet", Count: 1}}, got.Missing)

	s = store.NewMemory()
	putSweep(t, s, true)
	got, err = report.LoadSweep(t.Context(), s, figure)
	require.NoError(t, err)
	require.True(t, got.Final)
	require.Equal(t, "stopped", got.Trials[5].State)
	require.Equal(t, "stopped: <b>median</b> rule", got.Trials[5].Note)

	_, err = report.LoadSweep(t.Context(), s, "another")
	require.ErrorIs(t, err, store.ErrNotFound)
	for o, err := range s.List(t.Context(), store.SweepDir(figure)+"/table.") {
		require.NoError(t, err)
		require.NoError(t, s.Delete(t.Context(), o.Key))
		require.NoError(t, s.Put(t.Context(), o.Key, []byte("{}"), store.PutOptions{}))
	}
	_, err = report.LoadSweep(t.Context(), s, figure)
	require.ErrorIs(t, err, store.ErrAltered)
	ref, err := store.PutArtifact(t.Context(), s, store.SweepDir("bad"), "definition", "json", []byte("["))
	require.NoError(t, err)
	require.NotEmpty(t, ref.Key)
	_, err = report.LoadSweep(t.Context(), s, "bad")
	require.ErrorIs(t, err, store.ErrInvalid)
}

// sweepData is the data of a page that WriteSweep wrote.
func sweepData(t *testing.T, s report.Sweep) (data map[string]any, files map[string][]byte) {
	t.Helper()
	files = map[string][]byte{}
	_, err := report.WriteSweep(t.Context(), s, func(name string, body []byte) error { files[name] = body; return nil })
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(files["index.html"]), `id="data">`)
	text, _, _ := strings.Cut(rest, "</script>")
	var page struct{ Sweep map[string]any }
	require.NoError(t, json.Unmarshal([]byte(text), &page))
	return page.Sweep, files
}

func TestWriteSweep(t *testing.T) {
	s := store.NewMemory()
	putSweep(t, s, true)
	loaded, err := report.LoadSweep(t.Context(), s, figure)
	require.NoError(t, err)
	data, files := sweepData(t, loaded)
	require.Len(t, files, 1)
	require.Len(t, data["settings"], 3)
	require.Len(t, data["trials"], 6)
	require.InDelta(t, 8, data["length"], 0)
	first := data["settings"].([]any)[0].(map[string]any)["values"].([]any)[0].(map[string]any)
	require.InDelta(t, 2, first["n"], 0)
	require.Less(t, first["low"].(float64), first["mean"].(float64))
	last := data["settings"].([]any)[2].(map[string]any)["values"].([]any)[0].(map[string]any)
	require.InDelta(t, 1, last["n"], 0)
	require.Nil(t, last["low"], "one seed has no interval")
	low := data["curves"].([]any)[0].(map[string]any)["low"].([]any)[0].([]any)
	require.Nil(t, low[0], "and two no band")
	third := loaded.Trials[0]
	third.Label, third.Run = "selection.keep=0.25,seed=3", loaded.Trials[1].Run
	wider := loaded
	wider.Trials = append(append([]report.Trial(nil), loaded.Trials...), third)
	data, _ = sweepData(t, wider)
	low = data["curves"].([]any)[0].(map[string]any)["low"].([]any)[0].([]any)
	require.NotNil(t, low[0])
	data, _ = sweepData(t, loaded)
	again, _ := sweepData(t, loaded)
	require.Equal(t, data, again)

	// Without anything yet it is a page all the same.
	data, _ = sweepData(t, report.Sweep{ID: "empty", Trials: []report.Trial{{Label: "a", Setting: "a"}}, Metrics: []string{"success/mean"}})
	require.InDelta(t, 0, data["length"], 0)
	data, _ = sweepData(t, report.Sweep{ID: "nothing"})
	require.Empty(t, data["trials"])
}

// Of very many settings the best have curves.
func TestWriteSweepOfManySettings(t *testing.T) {
	s := store.NewMemory()
	var wide report.Sweep
	wide.ID, wide.Metrics, wide.Goal = "wide", []string{"success/mean"}, sweep.Minimize
	for i := range 40 {
		run := fmt.Sprint("r", i)
		require.NoError(t, synthetic.Write(t.Context(), s, run, synthetic.Shape{Iterations: 1, Groups: 10, Members: 4, Turns: 1, Words: 1, Seed: uint64(i), Level: float64(i) / 50}))
		r, err := report.Load(t.Context(), s, run)
		require.NoError(t, err)
		wide.Trials = append(wide.Trials, report.Trial{Label: run, Setting: run, Run: r})
	}
	data, _ := sweepData(t, wide)
	require.Len(t, data["settings"], 40)
	require.Len(t, data["shown"], 24)
	require.Contains(t, data["shown"], 0.0)
	require.NotContains(t, data["shown"], 39.0, "the goal is the least")
}

func TestSweepPage(t *testing.T) {
	s := store.NewMemory()
	putSweep(t, s, true)
	loaded, err := report.LoadSweep(t.Context(), s, figure)
	require.NoError(t, err)
	_, files := sweepData(t, loaded)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "index.html"), files["index.html"], 0o644))
	for name, on := range map[string]screen{"desktop": desktop, "phone": phone, "dark": {width: 1280, height: 900, dark: true}} {
		t.Run(name, func(t *testing.T) {
			b := open(t, dir, on, "")
			require.Equal(t, figure, b.text("h1"))
			require.Equal(t, int64(3), eval[int64](b, `document.querySelectorAll('#settings tbody tr').length`))
			require.Equal(t, int64(6), eval[int64](b, `document.querySelectorAll('#trials tbody tr').length`))
			require.Contains(t, b.text("#trials"), "stopped: <b>median</b> rule")
			require.Equal(t, int64(3), eval[int64](b, `document.querySelectorAll('#multiples .chart').length`))
			b.until("the charts in sight are drawn", `document.querySelectorAll('canvas').length > 0`)
			b.picture("sweep-" + name)
			eval[any](b, `document.getElementById('multiples').scrollIntoView(), null`)
			b.until("the small ones too", `document.querySelectorAll('#multiples canvas').length > 0`)
			b.picture("sweep-multiples-" + name)
			require.LessOrEqual(t, eval[int64](b, "document.documentElement.scrollWidth"), on.width)
			b.quiet()
		})
	}
	// A sweep that has nothing yet.
	_, files = sweepData(t, report.Sweep{ID: "empty", Trials: []report.Trial{{Label: "a", Setting: "a"}}, Metrics: []string{"success/mean"}})
	require.NoError(t, os.WriteFile(filepath.Join(dir, "index.html"), files["index.html"], 0o644))
	b := open(t, dir, desktop, "")
	require.Contains(t, b.text("#trials"), "not begun")
	b.quiet()
}
