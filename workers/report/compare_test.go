package report_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workers/report"
	"github.com/reprise-rl/reprise/workers/report/synthetic"
	"github.com/reprise-rl/reprise/workflows/sweep"
)

// putRuns stores runs of two settings, three seeds each, and one that has only begun.
func putRuns(t *testing.T) *store.Memory {
	t.Helper()
	s := store.NewMemory()
	for seed := uint64(1); seed <= 3; seed++ {
		for name, words := range map[string]int{"base": 3, "longer": 4} {
			shape := synthetic.Shape{Iterations: 8, Groups: 4, Members: 4, Turns: 1, Words: words, States: 2, EvaluateEvery: 4, Instances: 8, Seed: seed, Level: float64(words-3) * -0.3}
			require.NoError(t, synthetic.Write(t.Context(), s, fmt.Sprint(name, "-seed", seed), shape))
		}
	}
	require.NoError(t, s.Put(t.Context(), store.SpecKey("begun"), []byte(`{"seed":1,"iterations":4}`), store.PutOptions{}))
	return s
}

var six = []string{"base-seed1", "base-seed2", "base-seed3", "longer-seed1", "longer-seed2", "longer-seed3"}

// Runs whose resolved specs differ in the seed alone are one setting, and settings are
// compared seed by seed with the first one.
func TestLoadRuns(t *testing.T) {
	s := putRuns(t)
	loaded, err := report.LoadRuns(t.Context(), s, six)
	require.NoError(t, err)
	require.Equal(t, "base-seed1, base-seed2 and 4 more", loaded.ID)
	require.Equal(t, []string{"evaluation/success/mean", "success/mean", "reward/mean"}, loaded.Metrics)
	var of []string
	for _, trial := range loaded.Trials {
		of = append(of, fmt.Sprint(trial.Setting, " ", trial.Seed))
	}
	require.Equal(t, []string{"base 1", "base 2", "base 3", "longer 1", "longer 2", "longer 3"}, of)

	data, files := sweepData(t, loaded)
	require.Contains(t, string(files["index.html"]), `"kind":"comparison"`)
	require.Equal(t, []any{map[string]any{"path": "rollout.max_new_tokens", "values": []any{"12", "16"}}}, data["fields"])
	require.InDelta(t, 0, data["reference"], 0)
	require.NotContains(t, data, "effects", "one field's effect is the difference of the settings")
	settings := data["settings"].([]any)
	values := func(setting int, list string) map[string]any {
		return settings[setting].(map[string]any)[list].([]any)[1].(map[string]any) // success/mean
	}
	require.InDelta(t, 0, values(0, "differences")["n"], 0, "the reference has none to itself")
	require.InDelta(t, 3, values(1, "differences")["n"], 0)
	require.InDelta(t, values(1, "values")["mean"].(float64)-values(0, "values")["mean"].(float64), values(1, "differences")["mean"], 1e-5)
	require.Len(t, data["evaluations"], 2)
	evaluated := data["evaluations"].([]any)[1].(map[string]any)
	require.Equal(t, []any{8.0}, evaluated["versions"])
	require.InDelta(t, 3, evaluated["last"].(map[string]any)["n"], 0)
	require.InDelta(t, 3, evaluated["difference"].(map[string]any)["n"], 0)
	require.InDelta(t, 6, data["cost"].(map[string]any)["runs"], 0)

	// The numbers without a page are the page's.
	numbers, err := loaded.JSON()
	require.NoError(t, err)
	var same map[string]any
	require.NoError(t, json.Unmarshal(numbers, &same))
	require.Equal(t, data, same)

	// Single runs are called by their ids, and their evaluations have their own intervals.
	loaded, err = report.LoadRuns(t.Context(), s, []string{"longer-seed2", "base-seed1", "begun"})
	require.NoError(t, err)
	require.Equal(t, "longer-seed2, base-seed1 and begun", loaded.ID)
	require.Contains(t, loaded.Missing, report.Missing{What: "begun: its iterations", Why: "none is committed yet"})
	data, _ = sweepData(t, loaded)
	require.Equal(t, "longer-seed2", data["settings"].([]any)[0].(map[string]any)["short"])
	require.InDelta(t, 0, data["settings"].([]any)[1].(map[string]any)["differences"].([]any)[0].(map[string]any)["n"], 0, "they share no seed")
	last := data["evaluations"].([]any)[0].(map[string]any)["last"].(map[string]any)
	require.Equal(t, true, last["wilson"])
	require.Less(t, last["low"].(float64), last["mean"].(float64))
	require.Equal(t, last, data["settings"].([]any)[0].(map[string]any)["values"].([]any)[0], "the table has it too")
	require.InDelta(t, 2, data["order"].([]any)[2], 0, "what has no value is last")

	for want, ids := range map[string][]string{
		`no iteration of begun, also is committed yet`: {"begun", "also"},
		`run "base-seed1" is named twice`:              {"base-seed1", "base-seed2", "base-seed1"},
		`read run "nosuch"`:                            {"base-seed1", "nosuch"},
	} {
		require.NoError(t, s.Put(t.Context(), store.SpecKey("also"), []byte(`{}`), store.PutOptions{}))
		_, err := report.LoadRuns(t.Context(), s, ids)
		require.ErrorContains(t, err, want)
		if strings.Contains(want, "nosuch") {
			require.ErrorIs(t, err, store.ErrNotFound)
		} else {
			require.ErrorIs(t, err, report.ErrNothingToCompare)
		}
	}
}

// A sweep's id stands for its trials.
func TestLoadRunsOfSweep(t *testing.T) {
	s := store.NewMemory()
	putSweep(t, s, true)
	require.NoError(t, synthetic.Write(t.Context(), s, "alone", synthetic.Shape{Iterations: 8, Groups: 4, Members: 4, Turns: 1, Words: 5, Seed: 1}))
	loaded, err := report.LoadRuns(t.Context(), s, []string{"alone", figure})
	require.NoError(t, err)
	require.Len(t, loaded.Trials, 6, "five trials have begun")
	_, err = report.LoadRuns(t.Context(), s, []string{figure, sweep.ID(figure, "selection.keep=0.5,seed=1")})
	require.ErrorIs(t, err, report.ErrNothingToCompare)
	require.ErrorContains(t, err, "by itself and by its sweep")
}

// fits requires that neither the page nor a table of it is wider than the screen allows.
func fits(b *tab, on screen) {
	b.t.Helper()
	require.LessOrEqual(b.t, eval[int64](b, "document.documentElement.scrollWidth"), on.width, "nothing is wider than the screen")
	require.Empty(b.t, eval[string](b, `[...document.querySelectorAll('main *')].filter(e => e.offsetParent && !e.closest('.scroll, nav, pre, .plot') && e.getBoundingClientRect().right > innerWidth + 1).map(e => e.tagName + ' ' + e.textContent.slice(0, 40)).join('; ')`), "nothing pokes out")
	require.True(b.t, eval[bool](b, `[...document.querySelectorAll('nav')].every(e => e.scrollWidth <= e.clientWidth)`), "the bar shows all its links")
	require.True(b.t, eval[bool](b, `[...document.querySelectorAll('.scroll')].every(e => e.getBoundingClientRect().right <= document.querySelector('nav').getBoundingClientRect().right)`), "no table is seen beside the bar")
	if on.width > 1000 {
		require.Empty(b.t, eval[string](b, `[...document.querySelectorAll('.scroll')].filter(e => e.scrollWidth > e.clientWidth).map(e => e.closest('section').id).join(' ')`), "no table is cut")
	}
}

// screens are those on which a page has to fit.
var screens = map[string]screen{
	"wide": {width: 1400, height: 900}, "wide-dark": {width: 1400, height: 900, dark: true}, "phone": phone, "phone-dark": {width: 390, height: 844, dark: true},
}

func TestComparisonPage(t *testing.T) {
	loaded, err := report.LoadRuns(t.Context(), putRuns(t), append([]string{"begun"}, six...))
	require.NoError(t, err)
	_, files := sweepData(t, loaded)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "index.html"), files["index.html"], 0o644))
	b := open(t, dir, desktop, "")
	for name, on := range screens {
		t.Run(name, func(t *testing.T) {
			b.load(dir, on, "")
			require.Contains(t, b.text(".kind"), "comparison")
			require.Contains(t, b.text("#differences"), "rollout.max_new_tokens")
			require.Contains(t, b.text("#settings"), "Differences to begun")
			require.Contains(t, b.text("#settings .best"), "longer")
			require.Contains(t, b.text("#evaluations"), "in-distribution")
			require.Contains(t, b.text("#costs .total"), "All")
			require.Equal(t, int64(7), eval[int64](b, `document.querySelectorAll('#trials tbody tr').length`))
			fits(b, on)
			b.picture("comparison-" + name)
			b.quiet()
		})
	}
}

// A sweep of six settings with three seeds says what is best, and what each field does, on
// the first screen or two.
func TestSweepPageOfGrid(t *testing.T) {
	s := store.NewMemory()
	var d struct {
		Definition sweep.Definition `json:"definition"`
		Trials     []sweep.Trial    `json:"trials"`
	}
	d.Definition = sweep.Definition{Metrics: []string{"success/mean", "reward/mean", "evaluation/success/mean"}, Goal: sweep.Maximize}
	for seed := uint64(1); seed <= 3; seed++ {
		for i, rate := range []string{"0.0001", "0.001"} {
			for j, algorithm := range []string{"reinforce_pp_baseline", "grpo", "leave_one_out"} {
				setting := fmt.Sprintf("update.learning_rate=%s,credit.algorithm=%s", rate, algorithm)
				label := fmt.Sprintf("%s,seed=%d", setting, seed)
				d.Trials = append(d.Trials, sweep.Trial{Label: label, Setting: setting, Seed: seed, Iterations: 8,
					Spec: json.RawMessage(fmt.Sprintf(`{"update":{"learning_rate":%s},"credit":{"algorithm":%q}}`, rate, algorithm))})
				shape := synthetic.Shape{Iterations: 8, Groups: 4, Members: 4, Turns: 1, Words: 3, States: 2, EvaluateEvery: 4, Instances: 8, Seed: seed, Level: 0.2*float64(i) - 0.2*float64(j)}
				require.NoError(t, synthetic.Write(t.Context(), s, sweep.ID("grid", label), shape))
			}
		}
	}
	body, err := json.Marshal(d)
	require.NoError(t, err)
	_, err = store.PutArtifact(t.Context(), s, store.SweepDir("grid"), "definition", "json", body)
	require.NoError(t, err)
	loaded, err := report.LoadSweep(t.Context(), s, "grid")
	require.NoError(t, err)
	data, files := sweepData(t, loaded)
	require.Len(t, data["effects"], 2)
	require.InDelta(t, 3, data["order"].([]any)[0], 0, "the best is the first")
	low := data["settings"].([]any)[3].(map[string]any)["values"].([]any)[0].(map[string]any)
	require.LessOrEqual(t, low["high"], 1.0, "no success is above 100 %")
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "index.html"), files["index.html"], 0o644))
	b := open(t, dir, desktop, "")
	for name, on := range screens {
		t.Run(name, func(t *testing.T) {
			b.load(dir, on, "")
			require.Contains(t, b.text(".facts"), "learning_rate 0.001 · reinforce_pp_baseline")
			require.Contains(t, b.text("#settings tbody tr"), "best")
			require.NotContains(t, b.text("#settings"), "update.learning_rate=")
			require.NotContains(t, b.text("#settings"), "In what they differ", "their names say it")
			require.Contains(t, b.text("#effects"), "6 runs a value: 2 combinations of the other fields.")
			require.Equal(t, int64(1), eval[int64](b, `document.querySelectorAll('.heat .best').length`))
			require.Equal(t, int64(6), eval[int64](b, `document.querySelectorAll('#multiples .chart').length`))
			require.Equal(t, "learning_rate 0.001 · reinforce_pp_baseline", b.text("#multiples .chart-title"))
			require.Contains(t, b.text("#costs .total"), "18")
			fits(b, on)
			eval[any](b, `document.getElementById('multiples').scrollIntoView(), null`)
			b.until("the small charts are drawn", `document.querySelectorAll('#multiples canvas').length > 0`)
			b.picture("grid-" + name)
			b.quiet()
		})
	}
}
