package report_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workers/report/synthetic"
)

const (
	charts   = `document.querySelectorAll('#curves canvas').length`
	openIt   = `document.getElementById('trajectories').scrollIntoView()`
	episodes = `document.querySelector('.detail h3')`
)

func TestPage(t *testing.T) {
	dir := folder(t, stored(t, shape()))
	b := open(t, dir, desktop, "")
	for name, on := range screens {
		t.Run(name, func(t *testing.T) {
			b.load(dir, on, "")
			require.Equal(t, "run", b.text("h1"))
			require.Equal(t, "run · reprise", eval[string](b, "document.title"))
			require.Contains(t, b.text(".facts"), "8 of 8")
			require.Contains(t, b.text(".facts"), "and 3 abandoned")
			b.until("the charts in sight are drawn", charts+" > 0")
			b.picture(name + "-curves")
			require.LessOrEqual(t, eval[int64](b, "document.documentElement.scrollWidth"), on.width, "nothing is wider than the screen")
			require.Equal(t, []string{"random play 0.15best play 1", "random play 15.0 %best play 100.0 %"},
				eval[[]string](b, `[...document.querySelectorAll('#curves .levels')].map(e => e.textContent)`), "names of lines are outside of the plots")
			const row = `[...document.querySelectorAll('#curves .charts:not(.small) .chart')].slice(0, 2).map(e => %s.getBoundingClientRect().%s)`
			if on.width > 1000 {
				for _, edge := range []string{fmt.Sprintf(row, "e", "bottom"), fmt.Sprintf(row, "e.querySelector('.plot')", "top")} {
					sides := eval[[]float64](b, edge)
					require.InDelta(t, sides[0], sides[1], 0.5, "what is beside each other has the same height")
				}
			}
			require.Contains(t, b.text("#curves"), "Constant: ", "metrics that never change have no chart")
			require.NotContains(t, b.text("#curves"), "critic/advantages/max ", "the run has no critic")
			require.Contains(t, b.text("#timings th:nth-child(5)"), "New tokens/s")
			require.Contains(t, b.text("#timings th:nth-child(6)"), "All tokens/s")
			require.Contains(t, b.text("#history"), "Branch 1 continues from iteration 2 of branch 0; it was opened after iteration 5 of branch 0 by a detector.")
			require.Contains(t, b.text("#history li.abandoned"), "from iteration 4 of branch 0 on (abandoned")
			require.Contains(t, b.text("#history li.abandoned s"), "0.0003 → 0.0001", "what holds no longer is struck out")
			require.Contains(t, b.text("#history"), "update.learning_rate: 0.0003 → 0.00015")
			require.Contains(t, b.text("#history"), "rolled back")
			require.Equal(t, int64(6), eval[int64](b, `document.querySelectorAll('#evaluations tbody tr').length`))
			require.Equal(t, int64(2), eval[int64](b, `document.querySelectorAll('#evaluations tr.abandoned').length`))
			require.Contains(t, b.text("#timings"), "Updates computed again")
			require.Contains(t, b.text("#timings"), "What it cost")
			require.Contains(t, b.text("#timings"), "Update: the step that was lost")
			require.Contains(t, b.text("#spec"), "0123456789ab")
			require.Contains(t, b.text("#spec"), "A run that nobody trained.")

			eval[any](b, openIt+`, null`)
			b.until("an episode is shown", episodes)
			b.picture(name + "-trajectories")
			require.LessOrEqual(t, eval[int64](b, "document.documentElement.scrollWidth"), on.width)
			for _, details := range []string{"#curves details", "#spec details"} {
				eval[any](b, fmt.Sprintf(`document.querySelectorAll(%q).forEach(d => d.open = true), null`, details))
			}
			eval[any](b, `document.getElementById('curves').scrollIntoView(), null`)
			b.quiet()
		})
	}
}

// What each part of the reward gave to a turn is shown beside the environment's reward.
func TestPageRewardsInParts(t *testing.T) {
	s := shape()
	s.Rewards = []string{"progress"}
	b := open(t, folder(t, stored(t, s)), desktop, "")
	eval[any](b, openIt+`, null`)
	b.until("an episode is shown", episodes)
	require.Contains(t, b.text(".outcome"), "progress 0.5 × 2")
	require.Contains(t, b.text(".detail .facts"), "With penalties and parts")
	require.Contains(t, b.text("#curves"), "Part: progress")
	b.quiet()
}

// Everything can be done with the keyboard, and what has the focus can be seen.
func TestPageKeyboard(t *testing.T) {
	b := open(t, folder(t, stored(t, shape())), desktop, "")
	eval[any](b, openIt+`, null`)
	b.until("an episode is shown", episodes)
	heading := func(want string) {
		t.Helper()
		b.until(want, fmt.Sprintf(`document.querySelector('.detail h3')?.textContent.startsWith(%q)`, want))
	}
	heading("Group 0, member 0")
	eval[any](b, `document.getElementById('high').focus(), null`)
	b.press(kb.Tab)
	require.Equal(t, "group 0, member 0", eval[string](b, `document.activeElement.getAttribute('aria-label').slice(0, 17)`))
	require.Equal(t, "solid", eval[string](b, `getComputedStyle(document.activeElement).outlineStyle`))
	b.press(kb.ArrowRight)
	heading("Group 0, member 1")
	b.press(kb.ArrowDown)
	heading("Group 1, member 1")
	b.press(kb.ArrowLeft)
	heading("Group 1, member 0")
	b.press(kb.End)
	heading("Group 2, member 3")
	b.press(kb.Home)
	heading("Group 0, member 0")
	require.Equal(t, int64(1), eval[int64](b, `document.querySelectorAll('.grid [tabindex="0"]').length`), "the grid is one stop of the Tab key")
	require.Equal(t, int64(1), eval[int64](b, `document.querySelectorAll('.grid [aria-selected=true]').length`))
	require.Contains(t, b.text("output"), "iteration 7 of branch 1")
	b.press("[")
	b.until("the iteration before", `document.querySelector('output').textContent === 'iteration 6 of branch 1'`)
	require.Regexp(t, `#t=b1-000006/0$`, eval[string](b, `location.href`))
	b.press("]")
	b.until("and back", `document.querySelector('output').textContent === 'iteration 7 of branch 1'`)
	eval[any](b, `document.getElementById('when').focus(), null`)
	b.press(kb.ArrowLeft)
	b.until("the slider moves too", `document.querySelector('output').textContent === 'iteration 6 of branch 1'`)
	b.quiet()
}

func TestPageFilter(t *testing.T) {
	b := open(t, folder(t, stored(t, shape())), desktop, "#t=b1-000007/0")
	b.until("the episode of the address is shown", episodes)
	all := eval[int64](b, `document.querySelectorAll('.grid .cell').length`)
	solved := eval[int64](b, `document.querySelectorAll('.grid .cell.solved').length`)
	require.Equal(t, int64(12), all)
	set := func(id, value string) {
		eval[any](b, fmt.Sprintf(`(e => { e.value = %q; e.dispatchEvent(new Event('change')) })(document.getElementById(%q)), null`, value, id))
	}
	left := func() int64 { return eval[int64](b, `document.querySelectorAll('.grid .cell:not(.out)').length`) }
	set("success", "solved")
	require.Equal(t, solved, left())
	require.Equal(t, solved, eval[int64](b, `document.querySelectorAll('.grid .cell.solved:not(.out)').length`))
	set("success", "not solved")
	require.Equal(t, all-solved, left())
	set("success", "all")
	set("low", "0.5")
	require.Equal(t, solved, left(), "those that solved it have a reward of 1")
	set("high", "0.75")
	require.Zero(t, left())
	set("low", "")
	set("high", "")
	require.Equal(t, all, left())
	set("kind", "0")
	b.until("the evaluation is shown", `document.querySelectorAll('.grid .cell').length === 6`)
	require.Equal(t, "version 8 of branch 1", b.text("output"))
	b.quiet()
}

// An episode's tokens have their probability and their advantage, and the same
// initial state is found in other iterations.
func TestPageEpisode(t *testing.T) {
	b := open(t, folder(t, stored(t, shape())), desktop, "#t=b1-000007/1")
	b.until("the episode of the address is shown", episodes)
	require.Contains(t, b.text(".detail h3"), "Group 0, member 1")
	require.Equal(t, eval[string](b, `[...document.querySelectorAll('.turn:first-child .token')].map(t => t.textContent).join('')`),
		eval[string](b, `[...document.querySelectorAll('.turn:first-child .text')].map(t => t.textContent).join('')`))
	require.Contains(t, eval[string](b, `document.querySelector('.turn .part-answer .text').textContent`), "Down || Right")
	require.NotContains(t, eval[string](b, `document.querySelector('.turn .part-think .text').textContent`), "Right </answer>")
	require.Regexp(t, `^probability [\d.e-]+, advantage -?[\d.]+$`, eval[string](b, `document.querySelector('.token').title`))
	require.Equal(t, int64(2), eval[int64](b, `document.querySelectorAll('.turn:first-child .board').length`))
	require.Contains(t, b.text(".detail"), "Prompt of the first turn")
	shaded := `[...document.querySelectorAll('.token')].filter(t => t.style.backgroundColor).length`
	require.Positive(t, eval[int64](b, shaded))
	eval[any](b, `(e => { e.value = 'none'; e.dispatchEvent(new Event('change')) })(document.getElementById('color')), null`)
	require.Zero(t, eval[int64](b, shaded))
	eval[any](b, `(e => { e.value = 'advantage'; e.dispatchEvent(new Event('change')) })(document.getElementById('color')), null`)
	require.NotEmpty(t, b.text(".legend"))
	b.picture("episode-advantage")

	eval[any](b, `document.querySelector('.detail > button').click(), document.querySelector('.compare').scrollIntoView(), null`)
	b.until("the cards are filled", `[...document.querySelectorAll('.card')].slice(0, 2).every(c => c.querySelector('ol'))`)
	require.Greater(t, eval[int64](b, `document.querySelectorAll('.card').length`), int64(3))
	require.Equal(t, int64(1), eval[int64](b, `document.querySelectorAll('.card.current').length + (document.querySelectorAll('.card').length === 12 ? 1 - document.querySelectorAll('.card.current').length : 0)`))
	b.picture("compare")
	b.quiet()
}

// Sampled text, text of an environment and text of a spec are shown as text and nothing
// else.
func TestPageHostileTexts(t *testing.T) {
	const (
		markup = `</script><script>document.title='owned'</script><img src=x onerror="document.title='owned'">`
		more   = "<!--<svg/onload=alert(1)>\u2028\u2029&lt;\"'`${1}\\</style><b>"
	)
	hostile := shape()
	hostile.Texts = synthetic.Texts{
		Said: markup + more, Board: markup + "\n" + more, Label: "env" + markup, Suite: "suite" + markup, Action: "go" + markup,
		Event: "event" + markup + more, Description: "about" + markup + more, Knob: "knob" + markup,
	}
	s := store.NewMemory()
	run := `<img src=x onerror=alert(2)>"'&`
	require.NoError(t, synthetic.Write(t.Context(), s, run, hostile))
	dir := t.TempDir()
	writeFolder(t, s, run, dir)
	page, err := os.ReadFile(filepath.Join(dir, "index.html"))
	require.NoError(t, err)
	require.NotContains(t, string(page), "<img")
	require.NotContains(t, string(page), "owned'<")
	require.Equal(t, 3, strings.Count(string(page), "</script>"), "the data and the two programs, nothing more")
	chunks, err := filepath.Glob(filepath.Join(dir, "data", "*.js"))
	require.NoError(t, err)
	for _, path := range chunks {
		body, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NotRegexp(t, "[<>&\u2028\u2029]", string(body))
	}

	b := open(t, dir, desktop, "#t=b1-000007/0")
	b.until("the episode of the address is shown", episodes)
	require.Equal(t, run, b.text("h1"))
	require.Equal(t, run+" · reprise", eval[string](b, "document.title"))
	require.Equal(t, hostile.Texts.Description, b.text(".description"))
	require.Contains(t, b.text("#history"), hostile.Texts.Event)
	require.Contains(t, b.text("#history"), hostile.Texts.Knob)
	require.Contains(t, b.text("#evaluations"), hostile.Texts.Suite)
	require.Contains(t, b.text(".turn .part-think .text"), hostile.Texts.Said)
	require.Contains(t, b.text(".turn .outcome"), hostile.Texts.Action)
	require.Contains(t, b.text(".detail h3"), hostile.Texts.Label)
	require.Equal(t, hostile.Texts.Board, b.text(".turn .board pre"))
	eval[any](b, `document.querySelectorAll('details').forEach(d => d.open = true), document.querySelector('.detail > button').click(), document.querySelector('.compare').scrollIntoView(), null`)
	b.until("the cards are filled", `document.querySelector('.card ol')`)
	b.picture("hostile")
	require.Zero(t, eval[int64](b, `document.querySelectorAll('img, svg, iframe, style ~ b, [onerror], [onload]').length`))
	b.until("the pieces that came are taken away again", `document.scripts.length === 3`)
	require.Equal(t, run+" · reprise", eval[string](b, "document.title"))
	b.quiet()

	// And if the page's own program were wrong, its policy would stop it.
	require.Contains(t, eval[string](b, `(() => { try { document.body.innerHTML = '<i>x</i>' } catch (e) { return String(e) } return 'done' })()`), "TypeError")
	require.Contains(t, eval[string](b, `(() => { try { document.createElement('script').src = 'data/index.js' } catch (e) { return String(e) } return 'done' })()`), "TypeError")
}

// A report that lacks things says so.
func TestPageWhatIsMissing(t *testing.T) {
	s := stored(t, shape())
	require.NoError(t, s.Delete(t.Context(), store.ManifestKey("run", 1, 5)))
	require.NoError(t, s.Delete(t.Context(), store.SpecKey("run")))
	dir := folder(t, s)
	require.NoError(t, os.Remove(filepath.Join(dir, "data", "b1-000007.0.js")))
	b := open(t, dir, desktop, "#t=b1-000007/0")
	require.Contains(t, b.text(".missing"), "iteration 5 of branch 1")
	require.Contains(t, b.text(".missing"), "resolved spec")
	require.Contains(t, b.text("#spec"), "The resolved spec is missing.")
	b.until("the piece that is gone is named", `document.querySelector('.detail .error')?.textContent.includes('data/b1-000007.0.js is not there')`)

	empty := store.NewMemory()
	require.NoError(t, empty.Put(t.Context(), store.SpecKey("run"), []byte(`{"seed":1}`), store.PutOptions{}))
	b = open(t, folder(t, empty), desktop, "")
	require.Contains(t, b.text(".state"), "Nothing is committed")
	require.Contains(t, b.text("#spec"), `"seed": 1`)
	b.quiet()
}

// The plotting library is the one in its README, unchanged.
func TestAssets(t *testing.T) {
	readme, err := os.ReadFile("assets/uplot/README.md")
	require.NoError(t, err)
	rows := regexp.MustCompile(`(?m)^\| (\S+) \| ([0-9a-f]{64}) \|$`).FindAllStringSubmatch(string(readme), -1)
	require.Len(t, rows, 3)
	for _, row := range rows {
		body, err := os.ReadFile(filepath.Join("assets/uplot", row[1]))
		require.NoError(t, err)
		sum := sha256.Sum256(body)
		require.Equal(t, row[2], hex.EncodeToString(sum[:]), row[1])
	}
}
