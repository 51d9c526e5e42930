package model

import (
	"errors"
	"testing"

	"github.com/gomlx/go-xla/pjrt"
	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/batch"
)

// A version is loaded with the fingerprint that its state has, whether it has moments or not;
// an update of it has its own.
func TestLoadVersion(t *testing.T) {
	p, first := tinyPrograms(t, tiny())
	b := scoredBatch(t, p, first, 1, 1)
	second, _, err := p.Learner.Update(bg, twin(t, p, first), []batch.MicroBatch{b}, testSettings())
	require.NoError(t, err)
	t.Cleanup(second.Free)
	q, critic, _ := tinyCritic(t)
	snapshot := func(s *State) Source {
		snap, err := s.Download()
		require.NoError(t, err)
		return snap.source()
	}
	for what, c := range map[string]struct {
		p    *Programs
		from Source
		same *State
	}{
		"a policy without moments": {p, tinyParams(tiny()).source(), first},
		"a policy with moments":    {p, snapshot(second), second},
		"a critic without moments": {q, trainedCritic().source(), critic},
		"a critic with moments":    {q, snapshot(critic), critic},
	} {
		executed := 0
		s, took, err := c.p.LoadVersion(c.from)
		require.NoError(t, err, what)
		require.Positive(t, took.Upload, what)
		require.Positive(t, took.Fingerprint, what)
		c.p.device.Before = func(string) error { executed++; return nil }
		got := mark(t, s)
		c.p.device.Before = nil
		require.Zero(t, executed, "%s: the fingerprint is there", what)
		require.Equal(t, mark(t, c.same), got, what)
		require.Equal(t, c.same.Step(), s.Step(), what)
		s.sum = nil
		require.Equal(t, got, mark(t, s), what)
		s.Free()
		_, err = s.Fingerprint()
		require.ErrorIs(t, err, ErrFreed, what)
	}

	loaded, _, err := p.LoadVersion(tinyParams(tiny()).source())
	require.NoError(t, err)
	next, _, err := p.Learner.Update(bg, loaded, []batch.MicroBatch{b}, testSettings())
	require.NoError(t, err)
	require.Equal(t, mark(t, second), mark(t, next))
	next.Free()
}

// A load that fails, wherever, leaves nothing on the device and nothing that runs.
func TestLoadVersionThatFails(t *testing.T) {
	p, _ := tinyPrograms(t, tiny())
	injected := errors.New("injected")
	tensors := len(p.c.Tensors())
	alive := pjrt.BuffersAlive()
	fails := func(src Source, want error) {
		t.Helper()
		s, _, err := p.LoadVersion(src)
		require.ErrorIs(t, err, want)
		require.Nil(t, s)
		p.device.Before = nil
		require.LessOrEqual(t, pjrt.BuffersAlive(), alive)
	}
	params := tinyParams(tiny())
	for _, parts := range []part{1, partCount} {
		for _, at := range []int{0, 1, int(parts)*tensors - 1} {
			n := at
			fails(sourceOf(p.c, parts, 0, func(_ part, i int, _ []float32) ([]float32, error) {
				if n--; n == -1 {
					return nil, injected
				}
				return params.Values[i], nil
			}), injected)
		}
	}
	for _, k := range []kind{kindFingerprint, kindFill} {
		for _, at := range []int{0, 1, 2*tensors - 1} {
			failing(t, p, k, at, func() error { return injected })
			fails(params.source(), injected)
		}
	}
	other := p.c
	other.HiddenSize *= 2
	fails(Source{Config: other}, ErrInput)
}
