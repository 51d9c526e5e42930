package policy

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/safetensors"
)

const tinyGGUF = "../../model/gguf/testdata/tiny.gguf"

// The folder has the numbers that the Python package gguf reads, in float32 exactly and in bfloat16
// rounded once; it is the same from one file and from parts, and a model that a run starts from.
func TestFromGGUF(t *testing.T) {
	b, err := os.ReadFile("../../model/gguf/testdata/tiny.json")
	require.NoError(t, err)
	var golden struct {
		Files   map[string]string
		Tensors map[string]map[string]any
	}
	require.NoError(t, json.Unmarshal(b, &golden))
	for dtype, kind := range map[string]string{"float32": "F32", "bfloat16": "BF16"} {
		dir := filepath.Join(t.TempDir(), "model")
		c, size, err := FromGGUF(t.Context(), []string{tinyGGUF}, dir, dtype, nil)
		require.NoError(t, err)
		require.Equal(t, model.Llama, c.Family)
		f, err := os.Open(filepath.Join(dir, model.WeightsFile))
		require.NoError(t, err)
		defer f.Close()
		info, err := f.Stat()
		require.NoError(t, err)
		require.Greater(t, size, info.Size())
		s, err := safetensors.NewStream(f, info.Size())
		require.NoError(t, err)
		require.Len(t, s.Tensors(), len(golden.Tensors))
		for range golden.Tensors {
			in, err := s.Next()
			require.NoError(t, err)
			require.Equal(t, kind, string(in.DType))
			h := sha256.New()
			_, err = io.Copy(h, s)
			require.NoError(t, err)
			require.Equal(t, golden.Tensors[in.Name][kind], hex.EncodeToString(h.Sum(nil)), in.Name)
		}
		read, err := model.OpenFolder(dir)
		require.NoError(t, err)
		require.NoError(t, read.Close())
		if dtype == "float32" {
			for name, want := range golden.Files {
				got, err := os.ReadFile(filepath.Join(dir, name))
				require.NoError(t, err)
				require.Equal(t, want, string(got), name)
			}
		}
	}
}

func TestFromGGUFInParts(t *testing.T) {
	whole, err := os.ReadFile(tinyGGUF)
	require.NoError(t, err)
	root := t.TempDir()
	first, second := filepath.Join(root, "tiny.0"), filepath.Join(root, "tiny.1")
	require.NoError(t, os.WriteFile(first, whole[:33_333], 0o600))
	require.NoError(t, os.WriteFile(second, whole[33_333:], 0o600))
	want, got := filepath.Join(root, "want"), filepath.Join(root, "got")
	_, _, err = FromGGUF(t.Context(), []string{tinyGGUF}, want, "float32", nil)
	require.NoError(t, err)
	_, _, err = FromGGUF(t.Context(), []string{first, second}, got, "float32", nil)
	require.NoError(t, err)
	a, err := os.ReadFile(filepath.Join(want, model.WeightsFile))
	require.NoError(t, err)
	b, err := os.ReadFile(filepath.Join(got, model.WeightsFile))
	require.NoError(t, err)
	require.Equal(t, a, b)
	_, _, err = FromGGUF(t.Context(), []string{first}, filepath.Join(root, "half"), "float32", nil)
	require.ErrorContains(t, err, "the file is cut: tensor")
	require.NoDirExists(t, filepath.Join(root, "half"))
}

// A folder that holds something else is left as it is, and one that an interrupted call left is filled.
func TestFromGGUFFolder(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	_, _, err := FromGGUF(ctx, []string{tinyGGUF}, dir, "float32", func(i, _ int) {
		if i == 3 {
			cancel()
		}
	})
	require.ErrorIs(t, err, context.Canceled)
	require.NoFileExists(t, filepath.Join(dir, model.ConfigFile))
	require.DirExists(t, filepath.Join(dir, Unfinished))
	_, _, err = FromGGUF(t.Context(), []string{tinyGGUF}, dir, "float32", nil)
	require.NoError(t, err)
	require.NoDirExists(t, filepath.Join(dir, Unfinished))
	_, _, err = FromGGUF(t.Context(), []string{tinyGGUF}, dir, "float32", nil)
	require.ErrorContains(t, err, "holds something else (config.json): give a new or empty folder")
}
