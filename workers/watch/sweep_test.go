package watch

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/workflows"
	"github.com/reprise-rl/reprise/workflows/sweep"
)

// pageOf is a table of two trials in these states.
func pageOf(first, second sweep.State, done int) workflows.TablePage {
	row := func(label string, state sweep.State, iterations int) workflows.TrialLine {
		l := workflows.TrialLine{Row: sweep.Row{Trial: label, Setting: "keep=1", State: state, Iterations: iterations, Of: 3}}
		if iterations > 0 {
			l.Metrics = map[string]sweep.Value{"success/mean": {Last: 0.25, Best: 0.5, At: 0}}
		}
		return l
	}
	p := workflows.TablePage{Sweep: "w-1", Phase: "running trials", Metrics: []string{"success/mean"}, Rows: []workflows.TrialLine{
		row("keep=1,seed=1", first, done), row("keep=1,seed=2", second, 0),
	}}
	p.Counts.Trials = 2
	p.Settings = []sweep.SettingRow{{Setting: "keep=1", Trials: 2}}
	if first == sweep.Done {
		p.Settings[0].Done = 1
		nan := canon.Float(math.NaN())
		p.Settings[0].Metrics = map[string]sweep.Statistic{"success/mean": {N: 1, Mean: 0.25, Deviation: nan, Low: nan, High: nan}}
	}
	return p
}

func TestWatchSweep(t *testing.T) {
	lost := pageOf(sweep.Done, sweep.Failed, 3)
	lost.Rows[0].LostDevices, lost.Rows[0].Recomputed = 1, 2
	lost.Rows[1].Note = "the model is\x1b[2J no model"
	result := workflows.SweepResult{Counts: workflows.SweepCounts{Trials: 2, Done: 1, Failed: 1}, Table: store.Ref{Key: "sweeps/w-1/table.abc.json"}}
	begun := pageOf(sweep.Running, sweep.Pending, 0)
	begun.Counts.Running, begun.Counts.Pending = 1, 1
	out, err := watched(t, &scripted{kind: "Sweep", end: completed, result: result, statuses: []any{
		workflows.TablePage{Phase: "resolving"}, begun, pageOf(sweep.Running, sweep.Waiting, 1), pageOf(sweep.Running, sweep.Waiting, 2), lost,
	}})
	require.NoError(t, err)
	require.Equal(t, `resolving
2 trials: 1 running, 1 pending
running     keep=1,seed=1  0/3
waiting for a device  keep=1,seed=2  0/3
done        keep=1,seed=1  3/3  success/mean 0.250  lost devices 1 (recomputed 2 updates)
failed      keep=1,seed=2  0/3  the model is [2J no model
setting  done   success/mean, mean and 95 % interval
keep=1   1 of 2  0.250
w-1 is done: 1 done, 1 failed; the table is sweeps/w-1/table.abc.json
`, out)

	out, err = watched(t, &scripted{kind: "Sweep", end: cancelled, statuses: []any{pageOf(sweep.Cancelled, sweep.Cancelled, 1)}})
	require.NoError(t, err)
	require.Contains(t, out, "w-1 was cancelled")
}

func TestSweepLines(t *testing.T) {
	p := pageOf(sweep.Done, sweep.Waiting, 3)
	p.Counts.Done, p.Counts.Waiting = 1, 1
	require.Equal(t, []string{
		"w-1 · running trials",
		"2 trials: 1 done, 1 waiting for a device · 3 of 6 iterations",
		"  waiting for a device  keep=1,seed=2  0/3",
		"setting  done   success/mean, mean and 95 % interval",
		"keep=1   1 of 2  0.250",
	}, sweepLines("w-1", p, ""))
	for range 30 {
		p.Rows = append(p.Rows, p.Rows[1])
		p.Settings = append(p.Settings, p.Settings[0])
	}
	lines := sweepLines("w-1", p, "  1.0 s/it, 3s left")
	require.Contains(t, lines[1], "iterations  1.0 s/it, 3s left")
	require.LessOrEqual(t, len(lines), 2*shownTrials+6)
	require.Contains(t, strings.Join(lines, "\n"), "… and 11 more")
	require.Len(t, sweepLines("w-1", workflows.TablePage{Phase: "resolving"}, ""), 1)
}

// A paused trial is listed with its reason.
func TestWatchSweepShowsPaused(t *testing.T) {
	p := pageOf(sweep.Done, sweep.Paused, 3)
	p.Counts.Done, p.Counts.Paused = 1, 1
	p.Rows[1].Note = "Update failed 5 times in a row"
	lines := sweepLines("w-1", p, "")
	require.Equal(t, "2 trials: 1 done, 1 paused · 3 of 6 iterations", lines[1])
	require.Equal(t, "  paused      keep=1,seed=2  0/3  Update failed 5 times in a row", lines[2])
}

// Now and then a line of its own shows how far a sweep is.
func TestWatchSweepTellsHowFarItIs(t *testing.T) {
	var out strings.Builder
	w := &Watcher{run: "w-1", out: &out}
	w.showSweep(pageOf(sweep.Running, sweep.Waiting, 1))
	w.sweep.pace = pace{began: time.Now().Add(-20 * time.Second), from: 1, last: time.Now(), done: 2}
	w.showSweep(pageOf(sweep.Running, sweep.Waiting, 2))
	require.NotContains(t, out.String(), "iterations")
	w.sweep.progressAt = time.Now().Add(-progressEvery)
	w.showSweep(pageOf(sweep.Running, sweep.Waiting, 2))
	require.Contains(t, out.String(), "2 of 6 iterations  20.0 s/it, 1m20s left\n")
	before := out.Len()
	w.showSweep(pageOf(sweep.Running, sweep.Waiting, 2))
	require.Equal(t, before, out.Len())
}

func TestPace(t *testing.T) {
	var p pace
	require.Empty(t, p.remaining(0, 10))
	p.observe(0)
	require.Empty(t, p.remaining(2, 10), "the warm start is no iteration")
	p.observe(2)
	require.Empty(t, p.remaining(2, 10))
	p.began = p.began.Add(-30 * time.Second)
	p.observe(5)
	require.Equal(t, "  10.0 s/it, 50s left", p.remaining(5, 10))
	require.Empty(t, p.remaining(10, 10))
}
