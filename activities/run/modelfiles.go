package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/safetensors"
)

// ModelFiles reads a model's small files, each verified.
func ModelFiles(ctx context.Context, s store.Store, files map[string]store.Ref) (map[string][]byte, error) {
	out := make(map[string][]byte, len(files))
	for _, name := range SortedKeys(files) {
		b, err := store.GetArtifact(ctx, s, files[name])
		if err != nil {
			return nil, fmt.Errorf("model file %s: %w", name, err)
		}
		out[name] = b
	}
	return out, nil
}

// SmallFiles are the model's files a run context needs: all but the weights.
var SmallFiles = []string{
	"config.json", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "generation_config.json",
	"special_tokens_map.json", "added_tokens.json",
}

// SmallRefs are the refs of a model's small files.
func SmallRefs(m store.ModelRef) map[string]store.Ref {
	small := map[string]store.Ref{}
	for _, name := range SmallFiles {
		if ref, ok := m.Files[name]; ok {
			small[name] = ref
		}
	}
	return small
}

// ReadIndex reads a model's index: which files it has.
func ReadIndex(ctx context.Context, s store.Store, ref store.Ref) (store.ModelRef, error) {
	var m store.ModelRef
	b, err := store.GetArtifact(ctx, s, ref)
	if err != nil {
		return m, fmt.Errorf("model index: %w", err)
	}
	if err := json.Unmarshal(b, &m); err != nil {
		return m, fmt.Errorf("model index %s: %w", ref.Key, err)
	}
	return m, nil
}

// PutModel stores a model's files under their common digest, and their index.
func PutModel(ctx context.Context, s store.Store, files []store.FolderFile) (store.Ref, error) {
	folder, err := store.PutFolder(ctx, s, store.ModelPrefix, files)
	if err != nil {
		return store.Ref{}, err
	}
	return PutIndex(ctx, s, store.ModelRef{Dir: folder.Dir, Digest: folder.Digest, Files: folder.Files})
}

// PutIndex stores the list of a model's files: the small name by which a
// workflow knows its base model. The same model gives the same index, whatever it was
// called where it came from.
func PutIndex(ctx context.Context, s store.Store, m store.ModelRef) (store.Ref, error) {
	m.Name, m.State, m.Frozen = "", "", ""
	b, err := canon.Marshal(m)
	if err != nil {
		return store.Ref{}, fmt.Errorf("encode model index: %w", err)
	}
	return store.PutArtifact(ctx, s, m.Dir, "index", "json", b)
}

// ModelError adds to an error about the contents of a model's files that they are the cause.
func ModelError(err error) error {
	for _, kind := range []error{model.ErrTensors, model.ErrConfig, safetensors.ErrFormat, safetensors.ErrDType, safetensors.ErrNotFinite,
		fs.ErrNotExist} {
		if errors.Is(err, kind) {
			return fmt.Errorf("%w: %w", err, activities.ErrModelInvalid)
		}
	}
	return err
}

// Streamed are the files of a state, for a folder of the store. They are made while they are
// sent.
func Streamed(files []model.File) []store.FolderFile {
	out := make([]store.FolderFile, len(files))
	for i, f := range files {
		out[i] = store.FolderFile{Name: f.Name, Open: f.Open, Size: f.Size}
	}
	return out
}

// FolderFiles are files in the order of their names.
func FolderFiles(files map[string][]byte) []store.FolderFile {
	var out []store.FolderFile
	for _, name := range SortedKeys(files) {
		out = append(out, store.FolderFile{Name: name, Body: files[name]})
	}
	return out
}
