package model

import (
	"sync"
	"testing"

	"github.com/gomlx/go-xla/pjrt"
	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/batch"
)

func TestNothingIsLeftOnTheDevice(t *testing.T) {
	p, s := tinyPrograms(t, tiny())
	b := scoredBatch(t, p, s, 1, 1)
	in := GenerateInput{Prompts: randomRows(1, p.c, 6, 5), Uniforms: uniforms(1, 6, 8), Temperature: 1}
	once := func() {
		_, err := p.Sampler.Generate(bg, s, in)
		require.NoError(t, err)
		_, _, err = p.Scorer.Score(bg, s, b, 1)
		require.NoError(t, err)
		next, _, err := p.Learner.Update(bg, twin(t, p, s), []batch.MicroBatch{b, b}, testSettings())
		require.NoError(t, err)
		mark(t, next)
		_, err = next.Download()
		require.NoError(t, err)
		next.Free()
	}
	once()
	before := pjrt.BuffersAlive()
	for range 3 {
		once()
	}
	// The garbage collector may free other tests' buffers meanwhile, never make any.
	require.LessOrEqual(t, pjrt.BuffersAlive(), before)
}

func TestConcurrentCallsTakeTurns(t *testing.T) {
	p, s := tinyPrograms(t, tiny())
	b := scoredBatch(t, p, s, 1, 1)
	var wg sync.WaitGroup
	marks := make([]string, 4)
	for i := range marks {
		wg.Go(func() {
			if _, _, err := p.Scorer.Score(bg, s, b, 1); err != nil {
				marks[i] = err.Error()
				return
			}
			snap, err := s.Download()
			if err != nil {
				marks[i] = err.Error()
				return
			}
			own, err := p.Upload(snap)
			if err != nil {
				marks[i] = err.Error()
				return
			}
			next, _, err := p.Learner.Update(bg, own, []batch.MicroBatch{b}, testSettings())
			if err != nil {
				marks[i] = err.Error()
				return
			}
			defer next.Free()
			if marks[i], err = next.Fingerprint(); err != nil {
				marks[i] = err.Error()
			}
		})
	}
	wg.Wait()
	for _, m := range marks {
		require.Equal(t, marks[0], m)
		require.Len(t, m, 32)
	}
}

// Layers, chunks of the head and blocks of queries are computed one after another: what the
// programs need besides inputs and outputs does not grow with their number.
func TestOneAfterAnother(t *testing.T) {
	temporary := func(c Config, rows, width int, l limits) (forward, backward int64) {
		p, err := testDevice(t).programsWith(c, nil, Shapes{MicroBatch: rows, Sequence: width}, l)
		require.NoError(t, err)
		defer p.Free()
		memory, err := p.Memory()
		require.NoError(t, err)
		return memory["forward"].Temporary, memory["backward"].Temporary
	}
	few, many := tiny(), tiny()
	few.Layers, many.Layers = 2, 6
	_, small := temporary(few, 4, 64, defaultLimits)
	_, large := temporary(many, 4, 64, defaultLimits)
	require.Less(t, float64(large), 1.1*float64(small), "layers")

	c := tiny()
	c.VocabSize = 4096
	const logits = 4 * 4 * 64 * 4096
	in := defaultLimits
	in.logits = 16 * c.VocabSize // chunks of 16 positions, of which there are 16
	forward, backward := temporary(c, 4, 64, in)
	require.Less(t, forward, int64(logits/2), "the head's chunks")
	require.Less(t, backward, int64(logits/2), "the head's chunks")

	c = tiny()
	const scores = 4 * 256 * 256
	in = defaultLimits
	in.queries = 16
	forward, _ = temporary(c, 1, 256, in)
	require.Less(t, forward, int64(c.Heads*scores/2), "blocks of queries")
}
