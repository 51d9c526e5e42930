package report_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workers/report"
)

func TestSweepPage(t *testing.T) {
	s := store.NewMemory()
	putSweep(t, s, true)
	loaded, err := report.LoadSweep(t.Context(), s, figure)
	require.NoError(t, err)
	dir := t.TempDir()
	for i := range 2 {
		trial := &loaded.Trials[i]
		writeFolder(t, s, trial.Run.ID, filepath.Join(dir, filepath.FromSlash(report.TrialDir(trial.Label))))
		trial.Page = report.TrialDir(trial.Label) + "/index.html"
	}
	_, files := sweepData(t, loaded)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "index.html"), files["index.html"], 0o644))
	b := open(t, dir, desktop, "")
	for name, on := range screens {
		t.Run(name, func(t *testing.T) {
			b.load(dir, on, "")
			require.Equal(t, figure, b.text("h1"))
			require.Equal(t, int64(3), eval[int64](b, `document.querySelectorAll('#settings .scroll:nth-of-type(1) tbody tr').length`))
			require.Equal(t, int64(6), eval[int64](b, `document.querySelectorAll('#trials tbody tr').length`))
			require.Contains(t, b.text("#trials"), "stopped: <b>median</b> rule")
			require.Contains(t, b.text("#settings"), "1.5 GB", "what a device needs, by telemetry")
			require.Contains(t, b.text("#costs"), "0.08", "what a trial cost") // 8 iterations
			require.Equal(t, int64(3), eval[int64](b, `document.querySelectorAll('#multiples .chart').length`))
			b.picture("sweep-" + name)
			eval[any](b, `document.getElementById('multiples').scrollIntoView(), null`)
			b.until("the small charts are drawn", `document.querySelectorAll('#multiples canvas').length > 0`)
			b.picture("sweep-multiples-" + name)
			eval[any](b, `document.getElementById('trials').scrollIntoView(), null`)
			b.picture("sweep-trials-" + name)
			eval[any](b, `document.querySelector('#trials .scroll').scrollTo(150, 0), null`)
			require.GreaterOrEqual(t, eval[float64](b, `document.querySelector('#trials tbody tr:nth-child(3) td').getBoundingClientRect().left`), 0.0,
				"a row's name stays in sight where it is wider than the screen")
			b.picture("sweep-scrolled-" + name)
			require.LessOrEqual(t, eval[int64](b, "document.documentElement.scrollWidth"), on.width)
			b.quiet()
		})
	}
	t.Run("to a trial and back", func(t *testing.T) {
		for _, on := range []screen{desktop, phone} {
			b := open(t, dir, on, "")
			require.Equal(t, int64(2), eval[int64](b, `document.querySelectorAll('#trials tbody a').length`), "those that have a page")
			require.True(t, eval[bool](b, `[...document.querySelectorAll('#trials tbody a')].every(a => a.protocol === 'file:')`))
			b.press("\t")
			for range 40 { // by the keyboard alone
				if eval[bool](b, `document.activeElement.matches('#trials tbody tr:nth-child(2) a')`) {
					break
				}
				b.press("\t")
			}
			require.Equal(t, "selection.keep=0.5, seed 1", eval[string](b, `document.activeElement.textContent`))
			require.Equal(t, loaded.Trials[1].Label, eval[string](b, `document.activeElement.title`))
			require.NotEqual(t, "none", eval[string](b, `getComputedStyle(document.activeElement).outlineStyle`))
			require.LessOrEqual(t, eval[float64](b, `document.activeElement.getBoundingClientRect().right`), float64(on.width), "it is in sight")
			b.picture(fmt.Sprintf("sweep-link-%d", on.width))
			b.press("\r")
			b.until("the trial's page is shown", `document.querySelector('h1')?.textContent === '`+loaded.Trials[1].Run.ID+`' && document.documentElement.dataset.ready !== undefined`)
			eval[any](b, `setTimeout(() => history.back()), null`)
			b.until("the sweep's page is back", `document.querySelector('h1')?.textContent === '`+figure+`'`)
			b.quiet()
		}
	})
	// A sweep that has nothing yet.
	_, files = sweepData(t, report.Sweep{ID: "empty", Trials: []report.Trial{{Label: "a", Setting: "a"}}, Metrics: []string{"success/mean"}})
	require.NoError(t, os.WriteFile(filepath.Join(dir, "index.html"), files["index.html"], 0o644))
	b = open(t, dir, desktop, "")
	require.Contains(t, b.text("#trials"), "not begun")
	b.quiet()

	// And one of which a setting has nothing.
	loaded.Trials = append(loaded.Trials, report.Trial{Label: "selection.keep=2,seed=1", Setting: "selection.keep=2", Seed: 1})
	_, files = sweepData(t, loaded)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "index.html"), files["index.html"], 0o644))
	b.load(dir, desktop, "")
	require.Equal(t, "—", b.text("#settings tbody tr:last-child td:nth-child(3)"))
	b.quiet()
}

// The page says in which fields the settings differ, gives no interval of two seeds, and
// has all its charts on paper.
func TestSweepPageSays(t *testing.T) {
	s := store.NewMemory()
	putSweep(t, s, true)
	loaded, err := report.LoadSweep(t.Context(), s, figure)
	require.NoError(t, err)
	for i := range loaded.Trials {
		trial := &loaded.Trials[i]
		trial.Spec = json.RawMessage(fmt.Sprintf(`{"iterations":8,"selection":{"keep":%d},"update":{"epochs":%d,"kl_in":"none"}}`, i%3, i%3))
	}
	loaded.Metrics = []string{"success/mean", "evaluation/success/mean", "reward/mean", "actor/entropy", "actor/grad_norm"}
	_, files := sweepData(t, loaded)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "index.html"), files["index.html"], 0o644))
	b := open(t, dir, desktop, "")
	for name, on := range map[string]screen{"wide": {width: 1400, height: 900}, "phone": phone} {
		t.Run(name, func(t *testing.T) {
			b.load(dir, on, "")
			require.Contains(t, b.text("#settings"), "In what they differ")
			require.Contains(t, b.text("#settings"), "update.epochs")
			require.NotContains(t, b.text("#settings"), "kl_in", "it is the same in all")
			require.Contains(t, b.text("#settings"), "2 seeds: no useful interval")
			require.Contains(t, b.text("footer"), "Written by reprise")
			b.picture("sweep-says-" + name)
			eval[any](b, `document.getElementById('curves').scrollIntoView(), null`)
			b.until("the curves are drawn", `document.querySelectorAll('#curves canvas').length > 0`)
			b.picture("sweep-says-curves-" + name)
			eval[any](b, `document.getElementById('trials').scrollIntoView(), null`)
			b.picture("sweep-says-trials-" + name)
			require.LessOrEqual(t, eval[int64](b, "document.documentElement.scrollWidth"), on.width)
			if on.width > 1000 {
				require.True(t, eval[bool](b, `[...document.querySelectorAll('.scroll')].every(e => e.scrollWidth <= e.clientWidth)`), "no table is cut")
			}
			const blank = `[...document.querySelectorAll('.plot')].filter(p => p.offsetParent && !p.querySelector('canvas')).length`
			eval[any](b, `window.dispatchEvent(new Event('beforeprint')), null`)
			require.Zero(t, eval[int64](b, blank), "all charts are drawn for paper")
			b.quiet()
		})
	}
}
