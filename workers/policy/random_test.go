package policy

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs/starter"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/hf/families"
	"github.com/reprise-rl/reprise/model/tokenizer"
)

// little is a shape with the ratios of a known one.
func little(t *testing.T) model.Config {
	t.Helper()
	known, err := families.ByName("qwen2.5-0.5b")
	require.NoError(t, err)
	c := known.Config
	c.VocabSize, c.HiddenSize, c.IntermediateSize, c.Layers, c.HeadDim = 2000, 14*8, 64, 2, 8
	return c
}

func TestRandom(t *testing.T) {
	dir, again, other := t.TempDir(), t.TempDir(), t.TempDir()
	var names []string
	require.NoError(t, RandomOf(t.Context(), dir, little(t), 7, func(name string, _ int64) { names = append(names, name) }))
	require.Equal(t, []string{model.ConfigFile, model.WeightsFile}, names)
	f, err := model.OpenFolder(dir)
	require.NoError(t, err)
	defer f.Close()
	require.Equal(t, 2000, f.Config.VocabSize)
	params, err := f.First().Params()
	require.NoError(t, err)
	require.NotZero(t, params.Values[0][0])
	tok, err := tokenizer.LoadFolder(dir)
	require.NoError(t, err)
	legal, err := tok.Legal(2000)
	require.NoError(t, err)
	require.Equal(t, model.ID(starter.EndID), f.Config.EOS)
	require.True(t, legal[starter.EndID])
	require.False(t, legal[1999], "an id without a token")

	// The same seed gives the same bytes, also over a folder that is there; another gives others.
	require.NoError(t, RandomOf(t.Context(), again, little(t), 7, nil))
	require.NoError(t, RandomOf(t.Context(), again, little(t), 7, nil))
	require.NoError(t, RandomOf(t.Context(), other, little(t), 8, nil))
	bytes := func(dir string) []byte {
		b, err := os.ReadFile(filepath.Join(dir, model.WeightsFile))
		require.NoError(t, err)
		return b
	}
	require.Equal(t, bytes(dir), bytes(again))
	require.NotEqual(t, bytes(dir), bytes(other))

	require.NoError(t, os.WriteFile(filepath.Join(other, "thesis.tex"), nil, 0o600))
	require.ErrorContains(t, RandomOf(t.Context(), other, little(t), 8, nil), "holds something else (thesis.tex)")
	require.ErrorContains(t, Random(t.Context(), dir, "qwen2.5-0.6b", 1, nil), "known are qwen2.5-0.5b")
}

// A folder that was not finished has no whole file of weights, and is finished later.
func TestRandomIsInterrupted(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	err := RandomOf(ctx, dir, little(t), 7, func(name string, _ int64) {
		if name == model.WeightsFile {
			cancel()
		}
	})
	require.ErrorIs(t, err, context.Canceled)
	require.NoFileExists(t, filepath.Join(dir, model.WeightsFile))
	require.NoError(t, RandomOf(t.Context(), dir, little(t), 7, nil))
}
