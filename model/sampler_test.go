package model

import (
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/batch"
)

// Programs that only sample have no tables and programs of the other roles, which refuse.
func TestSamplerAlone(t *testing.T) {
	p, err := testDevice(t).Programs(tiny(), nil, Shapes{GenerateRows: 4, PromptTokens: 6, MaxNewTokens: 8})
	require.NoError(t, err)
	defer p.Free()
	require.Len(t, p.Sampler.rope.first, 2)
	require.Empty(t, p.Scorer.rope.first)
	require.Equal(t, []kind{kindDecode, kindFill, kindFingerprint, kindPrefill}, slices.Sorted(maps.Keys(p.progs)))
	s, err := p.NewState(tinyParams(tiny()))
	require.NoError(t, err)
	defer s.Free()
	b := batchOf(randomRows(1, p.c, 3, 7), 1)
	_, _, err = p.Scorer.Score(bg, s, b, 1)
	require.ErrorIs(t, err, ErrInput)
	_, err = p.Learner.Gradient([]batch.MicroBatch{b}, testSettings())
	require.ErrorIs(t, err, ErrInput)
}

// A role copies its own tables to the other devices, and not those of another role.
func TestRolesCopyTheirOwnTables(t *testing.T) {
	d := openDevices(t, filepath.Join(t.TempDir(), "programs"), DeviceOptions{VirtualDevices: 2})
	sh := tinyShapes
	sh.Narrower = [2]int{5}
	p, err := d.Programs(tiny(), nil, sh)
	require.NoError(t, err)
	defer p.Free()
	s, err := p.NewState(tinyParams(tiny()))
	require.NoError(t, err)
	defer s.Free()
	_, err = p.Sampler.Generate(bg, s, GenerateInput{Prompts: randomRows(1, p.c, 2*sh.GenerateRows, 5)})
	require.NoError(t, err)
	require.Len(t, p.Sampler.rope.on(1), 2)
	require.Empty(t, p.Scorer.rope.mirrors)
	b := batchOf(randomRows(1, p.c, 3, 7), 1)
	_, err = p.Scorer.ScoreAll(bg, s, []batch.MicroBatch{b, b}, 1)
	require.NoError(t, err)
	for _, q := range p.Scorer.widths {
		require.Len(t, q.rope.on(1), 2)
	}
}
