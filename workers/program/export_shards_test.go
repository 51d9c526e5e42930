package program

import (
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/plugin/plugintest"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/draw"
	"github.com/reprise-rl/reprise/workers/policy"
)

// A snapshot whose weights are in several files is exported as transformers would write it, with
// the bytes of one that has them in one file.
func TestExportOfASnapshotInShards(t *testing.T) {
	ctx, s := t.Context(), store.NewMemory()
	whole, sharded := twice(t, s)
	require.NotContains(t, sharded, model.WeightsFile)
	require.Contains(t, sharded, "model-00002-of-00004.safetensors")

	root := t.TempDir()
	want, got := filepath.Join(root, "want"), filepath.Join(root, "got")
	size, count, err := exportState(ctx, s, whole, want)
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Join(got, policy.Unfinished, "left"), 0o755))
	again, files, err := exportState(ctx, s, sharded, got)
	require.NoError(t, err)
	require.Equal(t, []int64{size, int64(count)}, []int64{again, int64(files)})
	require.Equal(t, []string{model.ConfigFile, model.WeightsFile, "tokenizer.json"}, namesIn(t, got))
	for _, name := range namesIn(t, got) {
		a, err := os.ReadFile(filepath.Join(want, name))
		require.NoError(t, err)
		b, err := os.ReadFile(filepath.Join(got, name))
		require.NoError(t, err)
		require.Equal(t, a, b, name)
	}
	_, _, err = exportState(ctx, s, sharded, got)
	require.ErrorContains(t, err, "holds something else")

	ref := sharded["model-00002-of-00004.safetensors"]
	body, err := store.GetArtifact(ctx, s, ref)
	require.NoError(t, err)
	body[len(body)-1] ^= 1
	require.NoError(t, s.Put(ctx, ref.Key, body, store.PutOptions{}))
	_, _, err = exportState(ctx, s, sharded, filepath.Join(root, "damaged"))
	require.ErrorIs(t, err, store.ErrAltered)
	require.NoDirExists(t, filepath.Join(root, "damaged"))
}

// twice puts a policy into a store, with its weights in one file and in four.
func twice(t *testing.T, s store.Store) (whole, sharded map[string]store.Ref) {
	t.Helper()
	plugintest.Needs(t)
	opened, err := cachedDevice()
	require.NoError(t, err)
	defer opened.Close()
	c := model.Config{
		VocabSize: 64, HiddenSize: 16, IntermediateSize: 32, Layers: 4, Heads: 2, KVHeads: 1, HeadDim: 8,
		MaxPositions: 64, RMSNormEps: 1e-6, RopeTheta: 10000, TieEmbeddings: true, InitializerRange: 0.05,
	}
	p, err := opened.Programs(c, nil, model.Shapes{})
	require.NoError(t, err)
	defer p.Free()
	state, err := p.NewState(model.NewParams(c, draw.Address{Purpose: draw.Weights}))
	require.NoError(t, err)
	defer state.Free()
	put := func(most int64) map[string]store.Ref {
		made, err := state.Files(most)
		require.NoError(t, err)
		files := append(run.Streamed(made), store.FolderFile{Name: "tokenizer.json", Body: []byte("{}")})
		folder, err := store.PutFolder(t.Context(), s, store.ModelPrefix, files)
		require.NoError(t, err)
		return policyFiles(maps.Clone(folder.Files))
	}
	return put(model.SnapshotFile), put(4*c.Parameters()/3 + 1)
}
