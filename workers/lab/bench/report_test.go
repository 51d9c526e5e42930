package bench

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/workers/report/synthetic"
)

// BenchmarkLarge makes the report of 200 iterations with 25,600 trajectories, and opens
// it if there is a Chromium: from the beginning of the navigation until the charts
// in sight are drawn.
func BenchmarkLarge(b *testing.B) {
	dir := b.TempDir()
	for b.Loop() {
		m, err := MeasureReport(b.Context(), synthetic.Paper(), func(name string, body []byte) error {
			path := filepath.Join(dir, filepath.FromSlash(name))
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				return err
			}
			return os.WriteFile(path, body, 0o644)
		})
		require.NoError(b, err)
		b.ReportMetric(m.Seconds, "s/report")
		b.ReportMetric(float64(m.PeakBytes)/(1<<20), "MiB-peak")
		b.ReportMetric(float64(m.Bytes)/(1<<20), "MiB-written")
		b.ReportMetric(float64(m.Trajectories), "trajectories")
	}
	path, err := exec.LookPath("chromium")
	if err != nil {
		b.Log("no Chromium: the page was not opened")
		return
	}
	ctx, cancel := chromedp.NewExecAllocator(b.Context(), chromedp.ExecPath(path), chromedp.Headless, chromedp.NoSandbox, chromedp.UserDataDir(b.TempDir()))
	defer cancel()
	ctx, cancel = chromedp.NewContext(ctx)
	defer cancel()
	require.NoError(b, chromedp.Do(ctx, chromedp.EmulateViewport(1280, 900)))
	began := time.Now()
	require.NoError(b, chromedp.Do(ctx, chromedp.Navigate("file://"+filepath.Join(dir, "index.html"))))
	for {
		drawn, err := chromedp.Run(ctx, chromedp.Evaluate[int](`document.querySelectorAll('canvas').length`))
		require.NoError(b, err)
		if drawn > 0 {
			break
		}
	}
	b.ReportMetric(float64(time.Since(began).Milliseconds()), "ms-to-open")
	require.NoError(b, chromedp.Cancel(ctx))
}
