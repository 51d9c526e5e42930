package run

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/envs/starter"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/draw"
	"github.com/reprise-rl/reprise/model/safetensors"
)

// An index has the files of a model and nothing of where it came from: the same model has the same index. Another file,
// name or digest is another one.
func TestModelIndex(t *testing.T) {
	s := store.NewMemory()
	files := map[string][]byte{"config.json": []byte("c"), "tokenizer.json": []byte("t"), "model.safetensors": []byte("w"), "notes.txt": []byte("n")}
	index, err := PutModel(t.Context(), s, FolderFiles(files))
	require.NoError(t, err)
	m, err := ReadIndex(t.Context(), s, index)
	require.NoError(t, err)
	require.Len(t, m.Files, 4)
	small := SmallRefs(m)
	require.Equal(t, []string{"config.json", "tokenizer.json"}, SortedKeys(small), "neither weights nor what nobody reads")
	got, err := ModelFiles(t.Context(), s, small)
	require.NoError(t, err)
	require.Equal(t, map[string][]byte{"config.json": []byte("c"), "tokenizer.json": []byte("t")}, got)
	for range repeats {
		m.Name, m.State, m.Frozen = "starter", "s0", "f0"
		again, err := PutIndex(t.Context(), s, m)
		require.NoError(t, err)
		require.Equal(t, index, again)
	}
	for name, change := range map[string]func(*store.ModelRef){
		"digest": func(m *store.ModelRef) { m.Digest = index.Digest }, "files": func(m *store.ModelRef) { delete(m.Files, "notes.txt") }, "folder": func(m *store.ModelRef) { m.Dir = "models/other" },
	} {
		other, err := ReadIndex(t.Context(), s, index)
		require.NoError(t, err)
		change(&other)
		ref, err := PutIndex(t.Context(), s, other)
		require.NoError(t, err)
		require.NotEqual(t, index.Digest, ref.Digest, name)
	}
	ref := small["tokenizer.json"]
	ref.Key = "models/nothing"
	small["tokenizer.json"] = ref
	_, err = ModelFiles(t.Context(), s, small)
	require.ErrorIs(t, err, store.ErrNotFound)
	require.ErrorContains(t, err, "model file tokenizer.json: ")
}

// Files are in the order of their names; those that are made while they are sent keep their sizes.
func TestFolderFiles(t *testing.T) {
	var names []string
	for _, f := range FolderFiles(map[string][]byte{"b": nil, "a": nil, "c": nil}) {
		names = append(names, f.Name)
	}
	require.Equal(t, []string{"a", "b", "c"}, names)
	base, err := NewBaseModel(tinyFiles(starter.First, 16))
	require.NoError(t, err)
	made, err := model.DrawnFiles(base.Config, draw.Address{Seed: 1})
	require.NoError(t, err)
	streamed := Streamed(made)
	require.Len(t, streamed, len(made))
	for i, f := range streamed {
		require.Equal(t, []any{made[i].Name, made[i].Size}, []any{f.Name, f.Size})
		b, err := io.ReadAll(f.Open())
		require.NoError(t, err)
		require.Len(t, b, int(f.Size))
	}
}

// An error about a model's contents is one that no retry fixes; another stays what it is.
func TestModelError(t *testing.T) {
	for _, kind := range []error{model.ErrTensors, model.ErrConfig, safetensors.ErrFormat, safetensors.ErrDType, safetensors.ErrNotFinite, fs.ErrNotExist} {
		err := ModelError(fmt.Errorf("read: %w", kind))
		require.ErrorIs(t, err, activities.ErrModelInvalid)
		require.ErrorIs(t, err, kind)
	}
	other := errors.New("no route")
	require.Equal(t, other, ModelError(other))
	require.NoError(t, ModelError(nil))
}
