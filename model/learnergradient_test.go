package model

import (
	"context"
	"errors"
	"testing"

	"github.com/gomlx/go-xla/pjrt"
	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/batch"
)

// step is an optimizer step on the way, of a policy or a critic.
type step interface {
	Left() int
	Add(context.Context, *State) error
	Free()
}

// A step that is made micro-batch by micro-batch, with other work of the device between two,
// has the bits and the metrics of an update. Micro-batches without a token that is trained on
// change nothing, wherever they are.
func TestGradient(t *testing.T) {
	p, s := tinyPrograms(t, tiny())
	q, c, _ := tinyCritic(t)
	between := func() {
		scoredBatch(t, p, s, 7, 1)
		_, err := q.Scorer.Values(bg, c, criticBatch(t, q, c, 7))
		require.NoError(t, err)
	}
	policy := []batch.MicroBatch{scoredBatch(t, p, s, 1, 1), scoredBatch(t, p, s, 2, 1), scoredBatch(t, p, s, 3, 1)}
	critic := []batch.MicroBatch{criticBatch(t, q, c, 1), criticBatch(t, q, c, 2), criticBatch(t, q, c, 3)}
	padded := func(all []batch.MicroBatch) []batch.MicroBatch {
		none := all[0]
		none.RowWeights = []float32{0, 0, 0}
		return []batch.MicroBatch{none, all[0], {}, all[1], none, all[2], {}}
	}
	add := func(g step, s *State) {
		for g.Left() > 0 {
			between()
			require.NoError(t, g.Add(bg, s))
		}
		between()
	}

	whole, want, err := p.Learner.Update(bg, twin(t, p, s), policy, testSettings())
	require.NoError(t, err)
	defer whole.Free()
	for _, batches := range [][]batch.MicroBatch{policy, padded(policy)} {
		g, err := p.Learner.Gradient(batches, testSettings())
		require.NoError(t, err)
		own := twin(t, p, s)
		add(g, own)
		told, err := g.Measure(own)
		require.NoError(t, err)
		require.Equal(t, want, told, "it changes nothing")
		next, m, err := g.Apply(own)
		require.NoError(t, err)
		defer next.Free()
		require.Equal(t, mark(t, whole), mark(t, next))
		require.Equal(t, want, m)
	}

	wholeCritic, wantCritic, err := q.Learner.CriticUpdate(bg, twin(t, q, c), critic, criticSettings())
	require.NoError(t, err)
	defer wholeCritic.Free()
	for _, batches := range [][]batch.MicroBatch{critic, padded(critic)} {
		g, err := q.Learner.CriticGradient(batches, criticSettings())
		require.NoError(t, err)
		own := twin(t, q, c)
		add(g, own)
		next, m, err := g.Apply(own)
		require.NoError(t, err)
		defer next.Free()
		require.Equal(t, mark(t, wholeCritic), mark(t, next))
		require.Equal(t, wantCritic, m)
	}
}

// A step that is used wrongly says so, and only a context that has ended leaves its sums.
func TestGradientErrors(t *testing.T) {
	p, s := tinyPrograms(t, tiny())
	b := scoredBatch(t, p, s, 1, 1)
	begin := func() *Gradient[UpdateMetrics] {
		g, err := p.Learner.Gradient([]batch.MicroBatch{b, b}, testSettings())
		require.NoError(t, err)
		return g
	}
	_, err := p.Learner.Gradient(nil, testSettings())
	require.ErrorIs(t, err, ErrInput)
	_, err = p.Learner.CriticGradient([]batch.MicroBatch{b}, criticSettings())
	require.ErrorIs(t, err, ErrInput)
	alive := pjrt.BuffersAlive()

	g := begin()
	require.NoError(t, g.Add(bg, s))
	_, err = g.Measure(s)
	require.ErrorContains(t, err, "1 of 2 micro-batches were not added")
	_, _, err = g.Apply(s)
	require.ErrorContains(t, err, "1 of 2 micro-batches were not added")
	require.Equal(t, alive, pjrt.BuffersAlive(), "its sums are freed")
	require.ErrorContains(t, g.Add(bg, s), "the gradient was applied or freed")

	g = begin()
	require.NoError(t, g.Add(bg, s))
	ended, cancel := context.WithCancel(bg)
	cancel()
	require.ErrorIs(t, g.Add(ended, s), context.Canceled)
	require.Equal(t, 1, g.Left())
	require.NoError(t, g.Add(bg, s))
	require.ErrorContains(t, g.Add(bg, s), "all micro-batches were added")
	require.Equal(t, alive, pjrt.BuffersAlive())

	g = begin()
	require.NoError(t, g.Add(bg, s))
	require.ErrorContains(t, g.Add(bg, twin(t, p, s)), "another state")
	g.Free()

	g = begin()
	require.NoError(t, g.Add(bg, s))
	injected := errors.New("injected")
	failing(t, p, kindBackward, 0, func() error { return injected })
	require.ErrorIs(t, g.Add(bg, s), injected)
	require.ErrorContains(t, g.Add(bg, s), "the gradient was applied or freed")

	g = begin()
	require.NoError(t, g.Add(bg, s))
	g.Free()
	g.Free()
	_, _, err = g.Apply(s)
	require.ErrorIs(t, err, ErrInput)
}

// Programs that were freed while a step was on the way end it with an error.
func TestGradientOfFreedPrograms(t *testing.T) {
	_, s := tinyPrograms(t, tiny())
	p, err := testDevice(t).Programs(tiny(), nil, tinyShapes)
	require.NoError(t, err)
	b := scoredBatch(t, p, s, 1, 1)
	g, err := p.Learner.Gradient([]batch.MicroBatch{b, b}, testSettings())
	require.NoError(t, err)
	require.NoError(t, g.Add(bg, s))
	p.Free()
	require.Error(t, g.Add(bg, s))
	g.Free()
}
