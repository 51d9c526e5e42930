package workers

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/store"
)

func TestModelCache(t *testing.T) {
	require.Nil(t, modelCache("none"))
	home := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", home)
	dir := t.TempDir()
	ctx, s := context.Background(), store.NewMemory()
	ref, err := store.PutArtifact(ctx, s, "models/m", "model", "safetensors", []byte("weights"))
	require.NoError(t, err)
	for given, want := range map[string]string{"": filepath.Join(home, "reprise", "models"), dir: dir} {
		r, err := modelCache(given).Open(ctx, s, ref)
		require.NoError(t, err)
		_, err = io.ReadAll(r)
		require.NoError(t, err)
		require.NoError(t, r.Close())
		entries, err := os.ReadDir(want)
		require.NoError(t, err)
		require.Len(t, entries, 1)
		require.Equal(t, ref.Digest, entries[0].Name())
	}
	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv("HOME", "")
	require.Nil(t, modelCache(""), "this user has no folder for it")
}
