package plugin

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/wheels"
)

// A CUDA plugin is laid down as Python's packages lie, with what it loads beside it, and is
// found by its name. What was unpacked to its end is not fetched again.
func TestInstallCUDA(t *testing.T) {
	t.Setenv(Env, "")
	libraries := wheel(t, "nvidia/cu13/lib/libcublas.so.13", "blas", "nvidia/cu13/lib/libcublas.alt.so.13", "another build",
		"nvidia/cu13/include/cublas.h", "header", "nvidia/cu13/bin/ptxas", "ptxas", "nvidia/cu13/bin/nvcc", "compiler",
		"nvidia/cu13/nvvm/libdevice/libdevice.10.bc", "device", "nvidia_x.dist-info/licenses/License.txt", "terms")
	archive := wheel(t, "jax_plugins/xla_cuda99/xla_cuda_plugin.so", "the library", "x.dist-info/METADATA", "Apache-2.0")
	digest := func(path string) string {
		d, err := Hash(path)
		require.NoError(t, err)
		return d
	}
	pin := Pin{
		Name: "cuda99", Project: "a-plugin", Version: "1", Wheel: digest(archive), Member: "jax_plugins/xla_cuda99/xla_cuda_plugin.so",
		Digest: sum([]byte("the library")), Size: 11, Licences: []string{"x.dist-info/METADATA"},
		Path: "jax_plugins/xla_cuda99/xla_cuda_plugin.so", Libraries: []wheels.Wheel{{Project: "nvidia-x", Version: "2", Digest: digest(libraries)}},
	}
	withPin(t, pin)
	asked := filepath.Join(t.TempDir(), "asked")
	pip(t, `case "$*" in *--version*) exit 0;; esac
echo >> '`+asked+`'
for last; do :; done
if grep -q nvidia-x "$last/requirements.txt"; then cp '`+libraries+`' "$last/a.whl"; else cp '`+archive+`' "$last/a.whl"; fi
`)
	root := t.TempDir()
	dir := filepath.Join(root, filepath.FromSlash(Folder))
	path, err := Install(t.Context(), dir, "cuda99", &bytes.Buffer{})
	require.NoError(t, err)
	site := filepath.Join(dir, "cuda99")
	require.Equal(t, filepath.Join(site, "jax_plugins", "xla_cuda99", "xla_cuda_plugin.so"), path)
	for name, want := range map[string]string{
		"nvidia/cu13/lib/libcublas.so.13": "blas", "nvidia/cu13/bin/ptxas": "ptxas", "nvidia/cu13/nvvm/libdevice/libdevice.10.bc": "device",
		"licences/nvidia-x/License.txt": "terms", "licences/cuda99/METADATA": "Apache-2.0",
	} {
		content, err := os.ReadFile(filepath.Join(site, name))
		require.NoError(t, err)
		require.Equal(t, want, string(content))
	}
	for _, name := range []string{"nvidia/cu13/lib/libcublas.alt.so.13", "nvidia/cu13/include", "nvidia/cu13/bin/nvcc"} {
		require.NoFileExists(t, filepath.Join(site, name))
		require.NoDirExists(t, filepath.Join(site, name))
	}
	info, err := os.Stat(filepath.Join(site, "nvidia/cu13/bin/ptxas"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o755), info.Mode().Perm())

	found, is, err := Find("cuda99", root)
	require.NoError(t, err)
	require.Equal(t, path, found)
	require.Equal(t, pin.Digest, is)
	t.Setenv(Env, "cuda99")
	found, _, err = Find("", root)
	require.NoError(t, err)
	require.Equal(t, path, found, "named by the environment")

	times := func() int {
		content, err := os.ReadFile(asked)
		require.NoError(t, err)
		return len(content)
	}
	require.Equal(t, 2, times())
	_, err = Install(t.Context(), dir, "cuda99", &bytes.Buffer{})
	require.NoError(t, err)
	require.Equal(t, 2, times(), "it is there")
	require.NoError(t, os.Remove(marker(site, pin.Libraries[0])))
	_, err = Install(t.Context(), dir, "cuda99", &bytes.Buffer{})
	require.NoError(t, err)
	require.Equal(t, 4, times(), "a library was not unpacked to its end")

	require.ErrorIs(t, unpackLibrary(wheel(t, "nvidia/../../libx.so.1", "out"), wheels.Wheel{}, t.TempDir()), wheels.ErrWheel)
	require.ErrorIs(t, unpackLibrary(wheel(t, "x/libx.so.1", "out"), wheels.Wheel{}, t.TempDir()), wheels.ErrWheel)
}

// Where nothing was installed, a CUDA plugin is that of a Python.
func TestPluginOfPython(t *testing.T) {
	site := t.TempDir()
	path := filepath.Join(site, "jax_plugins", "xla_cuda13", "xla_cuda_plugin.so")
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte("a library"), 0o600))
	python := filepath.Join(t.TempDir(), "python")
	say := func(script string) {
		require.NoError(t, os.WriteFile(python, []byte("#!/bin/sh\n"+script), 0o700))
	}
	t.Setenv(PythonEnv, python)
	say("echo '" + filepath.Dir(path) + "'")
	found, _, err := Find("cuda13", t.TempDir())
	require.NoError(t, err)
	require.Equal(t, path, found)
	say("echo")
	_, _, err = Find("cuda13", t.TempDir())
	require.ErrorIs(t, err, ErrMissing)
	require.ErrorContains(t, err, "make plugin PLUGIN=cuda13")
	say("echo broken >&2; exit 1")
	_, _, err = Find("cuda12", t.TempDir())
	require.ErrorContains(t, err, "broken")
}
