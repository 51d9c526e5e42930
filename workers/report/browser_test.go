package report_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workers/report"
)

// The tests of the page run in Debian's chromium, or in the program that REPRISE_CHROMIUM
// names. Without one they are skipped, and say so.

const (
	chromiumVariable = "REPRISE_CHROMIUM"
	// A test's pages are pictured into this folder, where it is set, to be looked at.
	picturesVariable = "REPRISE_PICTURES"
	patience         = 60 * time.Second
)

func chromium(t *testing.T) string {
	t.Helper()
	name := os.Getenv(chromiumVariable)
	if name == "" {
		name = "chromium"
	}
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("no Chromium: %v (apt-get install chromium, or set %s)", err, chromiumVariable)
	}
	return path
}

// tab is a page in a browser of its own.
type tab struct {
	t   *testing.T
	ctx context.Context
	mu  sync.Mutex
	// said is what the console has: errors, warnings, exceptions, violations.
	said []string
}

// screen is what a page is shown on.
type screen struct {
	width, height int64
	dark          bool
}

var (
	desktop = screen{width: 1280, height: 900}
	phone   = screen{width: 390, height: 844}
)

// open shows a report that was written into a folder, from the file system.
func open(t *testing.T, dir string, on screen, address string) *tab {
	t.Helper()
	path := chromium(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, chromedp.ExecPath(path), chromedp.Headless, chromedp.NoSandbox, chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck,
		chromedp.UserDataDir(t.TempDir()), chromedp.Env("HOME="+t.TempDir()))
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	// The browser's processes write into the folders until they are gone.
	t.Cleanup(func() { _ = chromedp.Cancel(ctx); cancel() })
	b := &tab{t: t, ctx: ctx}
	messages := chromedp.Console(ctx)
	go func() {
		for m, err := range messages {
			if err != nil {
				return
			}
			b.mu.Lock()
			b.said = append(b.said, fmt.Sprintf("%s: %s", m.Type, m.Text))
			b.mu.Unlock()
		}
	}()
	b.load(dir, on, address)
	return b
}

// load shows a report on a screen, in the same browser.
func (b *tab) load(dir string, on screen, address string) {
	b.t.Helper()
	options := []chromedp.EmulateViewportOption{}
	if on.width < 600 {
		options = append(options, chromedp.EmulateMobile)
	}
	scheme := "light"
	if on.dark {
		scheme = "dark"
	}
	b.do(chromedp.EmulateViewport(on.width, on.height, options...))
	_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
	require.NoError(b.t, err)
	b.do(chromedp.Navigate("file://" + filepath.Join(dir, "index.html") + address))
	b.until("the page has drawn itself", `document.documentElement.dataset.ready !== undefined`)
}

func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	require.NoError(b.t, chromedp.Do(b.ctx, steps...))
}

// eval runs JavaScript in the page.
func eval[T any](b *tab, script string) T {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](script, chromedp.EvalAwaitPromise))
	require.NoError(b.t, err, script)
	return v
}

// until waits until a condition holds.
func (b *tab) until(what, condition string) {
	b.t.Helper()
	last := ""
	require.Eventually(b.t, func() bool {
		ok, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool]("!!("+condition+")"))
		last = fmt.Sprint(ok, err)
		return err == nil && ok
	}, time.Minute, 50*time.Millisecond, "%s: %s", what, &last)
}

// text is an element's.
func (b *tab) text(selector string) string {
	b.t.Helper()
	return eval[string](b, fmt.Sprintf("document.querySelector(%q).textContent", selector))
}

// press presses keys, one after the other.
func (b *tab) press(keys string) {
	b.t.Helper()
	b.do(chromedp.KeyEvent(keys))
}

// quiet requires that the console is empty.
func (b *tab) quiet() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	require.Empty(b.t, b.said)
}

// picture keeps a screenshot, where somebody wants to look at it.
func (b *tab) picture(name string) {
	b.t.Helper()
	dir := os.Getenv(picturesVariable)
	if dir == "" {
		return
	}
	png, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	require.NoError(b.t, err)
	require.NoError(b.t, os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644))
}

// folder writes the report of the run "run" into a folder of the test.
func folder(t *testing.T, s store.Store) string {
	t.Helper()
	dir := t.TempDir()
	writeFolder(t, s, "run", dir)
	return dir
}

func writeFolder(t *testing.T, s store.Store, run, dir string) {
	t.Helper()
	_, err := report.Write(t.Context(), s, run, func(name string, body []byte) error {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		return os.WriteFile(path, body, 0o644)
	})
	require.NoError(t, err)
}
