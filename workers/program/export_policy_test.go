package program

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model"
)

// killing is a store whose reader of weights stops for good after a few bytes, and calls
// back: the folder is then as a process leaves it that is killed there.
type killing struct {
	store.Store
	then func()
}

func (k killing) Open(ctx context.Context, key string, offset int64) (io.ReadCloser, store.Object, error) {
	r, o, err := k.Store.Open(ctx, key, offset)
	if err == nil && filepath.Ext(key) == ".safetensors" {
		r = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(io.LimitReader(r, 1), callback(k.then)), r}
	}
	return r, o, err
}

type callback func()

func (f callback) Read([]byte) (int, error) {
	f()
	return 0, errors.New("connection reset")
}

// An export that was killed resumes when it is started again, and leaves only the model's
// files.
func TestExportGoesOnAfterAKill(t *testing.T) {
	ctx, s := t.Context(), store.NewMemory()
	storedRun(t, s, "run", 2)
	noDevice := func() (*model.Device, error) { return nil, os.ErrNotExist }
	export := func(s store.Store, dir string) error {
		var out bytes.Buffer
		return exportPolicy(ctx, s, exportOptions{run: "run", version: 2, dir: dir}, noDevice, &out, &out)
	}
	root := t.TempDir()
	dir, killed := filepath.Join(root, "hf"), filepath.Join(root, "killed")
	require.ErrorIs(t, export(killing{s, func() {
		if _, err := os.Stat(killed); err == nil {
			return
		}
		require.NoError(t, os.CopyFS(killed, os.DirFS(dir)))
	}}, dir), store.ErrUnavailable)
	require.Empty(t, namesIn(t, dir), "one that fails cleans up")
	require.Len(t, namesIn(t, killed), 1, "one that is killed does not")
	require.Contains(t, namesIn(t, killed)[0], "model.safetensors.part-")

	require.NoError(t, export(s, killed))
	require.Equal(t, []string{"model.safetensors"}, namesIn(t, killed))
	body, err := os.ReadFile(filepath.Join(killed, "model.safetensors"))
	require.NoError(t, err)
	require.Equal(t, "later weights", string(body))

	// A file that only looks like a part belongs to somebody else.
	for _, own := range []string{"model.safetensors.part-2", "notes.part-ABCDEFGHIJKLMNOPQRSTUVWXYZ"} {
		require.NoError(t, os.WriteFile(filepath.Join(killed, own), nil, 0o644))
		require.ErrorContains(t, export(s, killed), "holds something else ("+own+")")
		require.NoError(t, os.Remove(filepath.Join(killed, own)))
	}
	require.NoError(t, export(s, killed))
}
