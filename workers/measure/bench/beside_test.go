package bench

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities/device"
	"github.com/reprise-rl/reprise/infra/presets"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/workers/train"
)

// An update that waited for a direct iteration does not count the wait.
func TestPairsOf(t *testing.T) {
	durable := []train.Iteration{{Seconds: 3}, {Seconds: 5, Steps: map[string]float64{"update": 1}}}
	direct := []train.Iteration{{Seconds: 1.5}, {Seconds: 2}}
	got, err := pairsOf(durable, direct, []float64{1, 2.5})
	require.NoError(t, err)
	require.Equal(t, []pair{
		{train.Iteration{Seconds: 2}, direct[0]},
		{train.Iteration{Seconds: 2.5, Steps: durable[1].Steps}, direct[1]},
	}, got)
	require.Equal(t, 5.0, durable[1].Seconds)

	_, err = pairsOf(durable, direct[:1], []float64{1})
	require.ErrorIs(t, err, errPairs)
	require.ErrorContains(t, err, "1 directly, 2 through Temporal")
}

// Each update makes one direct iteration, until none is left or one failed.
func TestBesideIterates(t *testing.T) {
	opened, err := model.OpenDevice(model.DeviceOptions{XLAFlags: model.QuickCompile})
	require.NoError(t, err)
	defer opened.Close()
	engine, err := device.NewEngine(opened)
	require.NoError(t, err)
	text, err := presets.With("smoke", map[string]any{"iterations": 2})
	require.NoError(t, err)
	memory := store.NewMemory()
	whole, err := train.New(engine, memory).Train(t.Context(), "whole", text)
	require.NoError(t, err)

	b := &Beside{}
	b.iterate()
	require.Empty(t, b.made, "no run is measured")

	b.ctx = t.Context()
	b.direct, err = train.New(engine, memory).Begin(t.Context(), "steps", text)
	require.NoError(t, err)
	for range 3 {
		b.iterate()
	}
	require.NoError(t, b.failed)
	require.Len(t, b.made, 2)
	require.Len(t, b.held, 2)
	for n, i := range b.made {
		require.GreaterOrEqual(t, b.held[n], i.Seconds)
	}
	require.True(t, b.direct.Ended())
	require.Equal(t, whole.State, b.direct.State())

	b.direct, err = train.New(engine, store.NewMemory()).Begin(t.Context(), "another-store", text)
	require.NoError(t, err)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	b.ctx = ended
	b.iterate()
	require.Error(t, b.failed)
	b.ctx = t.Context()
	b.iterate()
	require.Len(t, b.made, 3, "nothing is made after a failure")
}
