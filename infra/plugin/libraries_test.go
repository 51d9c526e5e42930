package plugin

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The files beside a plugin come first, each under the name by which it is loaded.
func TestLibraries(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	site, elsewhere := t.TempDir(), t.TempDir()
	put := func(path, content string) string {
		t.Helper()
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o700))
		return path
	}
	// Any library will do for a plugin: its own search path is read, not its code.
	program, err := os.Executable()
	require.NoError(t, err)
	plugin := filepath.Join(site, "jax_plugins", "xla_cuda13", "xla_cuda_plugin.so")
	require.NoError(t, os.MkdirAll(filepath.Dir(plugin), 0o700))
	require.NoError(t, os.Symlink(program, plugin))
	root := filepath.Join(site, "nvidia", "cu13")
	blas := put(filepath.Join(root, "lib", "libcublas.so.13"), "blas")
	put(filepath.Join(root, "lib", "libcublas.alt.so.13"), "another build")
	put(filepath.Join(root, "lib", "libcufft.so.12"), "not used")
	builtins := put(filepath.Join(root, "lib", "libnvrtc-builtins.so.13.0"), "builtins")
	ptxas := put(filepath.Join(root, "bin", "ptxas"), "ptxas")
	preferred := put(filepath.Join(elsewhere, "libnccl.so.2.32.3"), "nccl")
	t.Setenv("LD_LIBRARY_PATH", elsewhere)

	find := func(dataDir string) (own []Library) {
		t.Helper()
		all, err := Libraries(plugin, dataDir)
		require.NoError(t, err)
		for _, l := range all { // a machine may have libraries of its own
			if strings.HasPrefix(l.Path, site) || strings.HasPrefix(l.Path, elsewhere) {
				own = append(own, l)
			}
		}
		return own
	}
	want := []Library{
		{"libcublas.so.13", blas, sum([]byte("blas"))},
		{"libnccl.so.2", preferred, sum([]byte("nccl"))},
		{"libnvrtc-builtins.so.13.0", builtins, sum([]byte("builtins"))},
		{"ptxas", ptxas, sum([]byte("ptxas"))},
	}
	require.Equal(t, want, find(""))
	want[3].Path, want[3].Digest = put(filepath.Join(elsewhere, "cuda", "bin", "ptxas"), "another"), sum([]byte("another"))
	require.Equal(t, want, find(filepath.Join(elsewhere, "cuda")), "the flag's folder comes first")
}

func TestLoaded(t *testing.T) {
	got, err := loaded(strings.NewReader(`7f00-7f01 r--p 0000 fe:00 12   /a/libcublasLt.so.13
7f01-7f02 r-xp 1000 fe:00 12   /a/libcublasLt.so.13
7f02-7f03 r-xp 0000 fe:00 13   /with space/libcudnn_graph.so.9 (deleted)
7f03-7f04 r-xp 0000 fe:00 14   /usr/lib/libc.so.6
7f04-7f05 rw-p 0000 00:00 0    [heap]
`))
	require.NoError(t, err)
	require.Equal(t, []string{"/a/libcublasLt.so.13", "/with space/libcudnn_graph.so.9"}, got)
}
