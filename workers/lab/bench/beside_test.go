package bench

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/presets"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workers/train"
)

// An update that waited for a direct iteration does not count the wait, and a commit through Temporal
// takes none of the time between the commits.
func TestPairsOf(t *testing.T) {
	durable := []train.Iteration{{Seconds: 3}, {Seconds: 5, Steps: map[string]float64{"update": 1, "commit": 0.5}}}
	direct := []train.Iteration{{Seconds: 1.5}, {Seconds: 2, Steps: map[string]float64{"update": 1, "commit": 0.5}}}
	got, err := pairsOf(durable, direct, []float64{1, 2.5})
	require.NoError(t, err)
	require.Equal(t, []pair{
		{train.Iteration{Seconds: 2, Steps: map[string]float64{Rest: 2}}, train.Iteration{Seconds: 1.5, Steps: map[string]float64{Rest: 1.5}}},
		{
			train.Iteration{Seconds: 2.5, Steps: map[string]float64{"update": 1, "commit": 0.5, Rest: 1.5}},
			train.Iteration{Seconds: 2, Steps: map[string]float64{"update": 1, "commit": 0.5, Rest: 0.5}},
		},
	}, got)
	require.Equal(t, 1.25, got[1].ratio())
	require.Equal(t, 5.0, durable[1].Seconds)
	require.NotContains(t, durable[1].Steps, Rest)

	_, err = pairsOf(durable, direct[:1], []float64{1})
	require.ErrorIs(t, err, errPairs)
	require.ErrorContains(t, err, "1 directly, 2 through Temporal")
}

// The ratio is the median of the pairs, not the ratio of medians, and the pairs with the bucket are apart.
func TestTaxOfPairs(t *testing.T) {
	made := func(durable, direct float64) pair {
		return pair{
			train.Iteration{Seconds: durable, Steps: map[string]float64{"update": durable - 0.5, Rest: 0.5}},
			train.Iteration{Seconds: direct, Steps: map[string]float64{"update": direct, Rest: 0}},
		}
	}
	var got Tax
	got.summarize([]pair{made(2, 1), made(6, 5), made(9, 3)}, []pair{made(4, 2)})
	require.Equal(t, Tax{
		Iterations: 4, Pairs: 3, Durable: 5, Direct: 3, Bucket: 2, Ratio: 2, BucketRatio: 2, OwnRatio: 5 / 4.5,
		Steps: []Step{{Name: "update", Durable: 4.5, Bucket: 2, Direct: 3, More: 0.5}, {Name: Rest, Durable: 0.5, More: 0.5}},
	}, got)
}

// Each update makes one direct iteration, until none is left or one failed.
func TestBesideIterates(t *testing.T) {
	engine := quickEngine(t)
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
