package model

import (
	"sync"
	"testing"

	"github.com/gomlx/go-xla/pjrt"
	"github.com/stretchr/testify/require"
)

func TestNothingIsLeftOnTheDevice(t *testing.T) {
	p, s := tinyPrograms(t, tiny())
	b := scoredBatch(t, p, s, 1, 1)
	in := GenerateInput{Prompts: randomRows(1, p.c, 6, 5), Uniforms: uniforms(1, 6, 8), Temperature: 1}
	once := func() {
		_, err := p.Generate(bg, s, in)
		require.NoError(t, err)
		_, _, err = p.Score(bg, s, b, 1)
		require.NoError(t, err)
		next, _, err := p.Update(bg, twin(t, p, s), []MicroBatch{b, b}, testSettings())
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
			if _, _, err := p.Score(bg, s, b, 1); err != nil {
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
			next, _, err := p.Update(bg, own, []MicroBatch{b}, testSettings())
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
