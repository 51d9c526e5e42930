package plugin

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// What a plugin is for is told by its own name, wherever it lies.
func TestLoadPath(t *testing.T) {
	root := t.TempDir()
	for _, test := range []struct {
		path          string
		through, cuda bool
	}{
		{"plugins/" + FileName, false, false},
		{"cuda/" + FileName, true, false},
		{"site-packages/jax_plugins/xla_cuda13/xla_cuda_plugin.so", false, true},
		{"cpu/cuda/xla_cuda_plugin.so", true, true},
		{"cpu/xla_cuda_plugin.so", true, true},
		{"mine/xla_cuda_plugin.so", false, true},
		{"nvidia-build/plugin.so", false, true},
		{"mine/plugin.so", false, false},
	} {
		path := filepath.Join(root, filepath.FromSlash(test.path))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(test.path), 0o600))
		require.Equal(t, test.cuda, IsCUDA(path), test.path)
		load, err := LoadPath(path)
		require.NoError(t, err)
		require.Equal(t, test.through, load != path, "%s is loaded as %s", test.path, load)
		content, err := os.ReadFile(load)
		require.NoError(t, err)
		require.Equal(t, test.path, string(content))
		again, err := LoadPath(path)
		require.NoError(t, err)
		require.Equal(t, load, again, "go-xla keeps plugins by this path")
	}
	_, err := LoadPath(filepath.Join(root, "cuda", "none", FileName))
	require.ErrorIs(t, err, os.ErrNotExist)
}
