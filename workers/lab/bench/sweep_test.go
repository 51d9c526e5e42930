package bench

import (
	"encoding/json"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/presets"
)

func TestSweepTurn(t *testing.T) {
	at := func(begin, end float64) span {
		epoch := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
		when := func(s float64) time.Time { return epoch.Add(time.Duration(s * float64(time.Second))) }
		return span{when(begin), when(end)}
	}
	for name, c := range map[string]struct {
		sweep         span
		trials, alone []span
		want          SweepTurn
	}{
		"gaps": {
			at(0, 11), []span{at(1, 3), at(3.5, 5.5), at(6, 10)}, []span{at(20, 22), at(22, 24), at(25, 29)},
			SweepTurn{Wall: 10, Own: 8, Before: 1, Between: 1, After: 1, Alone: 8, AloneWall: 9, Overhead: 0.25, OverAlone: 0.25},
		},
		"a trial begins before the one in front has closed; by hand first; in any order": {
			at(100, 114), []span{at(108, 114), at(102, 112)}, []span{at(26, 32), at(20, 26)},
			SweepTurn{Wall: 12, Own: 16, Before: 2, Between: -4, Alone: 12, AloneWall: 12, Overhead: -0.25, OverAlone: 0},
		},
		"one trial": {
			at(0, 5), []span{at(0, 4)}, []span{at(0, 2)},
			SweepTurn{Wall: 5, Own: 4, After: 1, Alone: 2, AloneWall: 2, Overhead: 0.25, OverAlone: 1.5},
		},
	} {
		got := sweepTimes{sweep: c.sweep, trials: c.trials, alone: c.alone}.turn()
		require.Equal(t, c.want, got, name)
		require.InDelta(t, got.Wall, got.Own+got.Between+got.After, 1e-9, name)
	}
}

func TestSweepOfTurns(t *testing.T) {
	turns := []SweepTurn{
		{Overhead: 0.1, OverAlone: -0.02, Before: 3, Between: 1, After: 1, Processor: Processor{3, 2}, AloneProcessor: Processor{2, 2}},
		{Overhead: 0.3, OverAlone: 0.04, Before: 1, Between: 3, After: 3, Processor: Processor{3, 3}, AloneProcessor: Processor{2, 2}},
		{Overhead: 0.2, OverAlone: 0.01, Before: 2, Between: -1, After: 5},
	}
	got := sweepOf(4, 3, turns, []float64{2, 9, 1}, []float64{1, 3})
	require.Equal(t, Sweep{
		Trials: 4, Iterations: 3, Overhead: 0.2, OverAlone: 0.01, Processor: 0.25, Trial: 2, Alone: 2, Outside: 1, Before: 2, Turns: turns,
	}, got)
}

func TestProcessors(t *testing.T) {
	got, err := processors()
	require.NoError(t, err)
	require.Positive(t, got.Worker)
	child := exec.Command("sh", "-c", "while :; do :; done")
	require.NoError(t, child.Start())
	defer func() { _ = child.Wait() }()
	defer func() { _ = child.Process.Kill() }()
	require.Eventually(t, func() bool {
		more, err := processors()
		return err == nil && more.minus(got).Servers > 0
	}, time.Minute, time.Millisecond)
}

func TestSweepBenchSharesTheStarter(t *testing.T) {
	text, err := presets.Read("chaos")
	require.NoError(t, err)
	b, err := newSweepBench(nil, text, 3)
	require.NoError(t, err)
	require.Len(t, b.trials, 3)
	for i, trial := range b.trials {
		require.Equal(t, b.trials[0].Shared, trial.Shared)
		require.NotEmpty(t, trial.Shared)
		require.Equal(t, uint64(i+1), trial.Seed)
		require.True(t, json.Valid(trial.Spec))
	}
	_, err = newSweepBench(nil, []byte(`{"iterations": 0}`), 3)
	require.ErrorContains(t, err, "iterations")
}
