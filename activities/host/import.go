package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/hub"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/hf/modeldir"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// A run's base model is copied into the store under its digest before anything
// else: a hub name or a local folder is not an input that lasts.

// ImportBase copies the model a spec starts from into the store, and gives its
// index. A starter is made on a device instead: ok is false.
func ImportBase(ctx context.Context, s store.Store, p spec.Policy) (index store.Ref, ok bool, err error) {
	return importModel(ctx, s, p, true)
}

// importModel imports a whole model or, if they are wanted, adapters with their base model.
func importModel(ctx context.Context, s store.Store, p spec.Policy, adapters bool) (index store.Ref, ok bool, err error) {
	origin, err := p.Origin()
	if err != nil {
		return store.Ref{}, false, fmt.Errorf("policy.from: %w", err)
	}
	switch origin.Kind {
	case spec.OriginStarter:
		return store.Ref{}, false, nil
	case spec.OriginModel:
		index, err = findModel(ctx, s, origin.Name)
	case spec.OriginFolder:
		index, err = importFolder(ctx, s, origin.Name, p, adapters)
	case spec.OriginHub:
		index, err = importHub(ctx, s, origin, p, adapters)
	}
	if err != nil {
		return store.Ref{}, false, fmt.Errorf("import %s: %w", p.From, err)
	}
	return index, true, nil
}

// importFolder checks a Hugging Face folder and stores its files.
func importFolder(ctx context.Context, s store.Store, path string, p spec.Policy, adapters bool) (store.Ref, error) {
	dir, err := modeldir.Open(path)
	if err != nil {
		return store.Ref{}, fmt.Errorf("%w (the path is the host worker's): %w", err, activities.ErrModelInvalid)
	}
	defer dir.Close()
	return importAny(ctx, s, dir, p, adapters)
}

// importAny imports what a folder holds: a whole model or, if they are wanted, adapters.
func importAny(ctx context.Context, s store.Store, fsys fs.FS, p spec.Policy, adapters bool) (store.Ref, error) {
	switch {
	case holdsAdapters(fsys) && adapters:
		return importAdapters(ctx, s, fsys, p)
	case holdsAdapters(fsys):
		return store.Ref{}, errAdapters
	}
	return importFiles(ctx, s, fsys)
}

// importFiles checks a model's files and stores them. The headers say whether the weights fit; that
// all are finite numbers is seen while they are read to be stored.
func importFiles(ctx context.Context, s store.Store, fsys fs.FS) (store.Ref, error) {
	m, err := readModel(fsys)
	if err != nil {
		return store.Ref{}, err
	}
	defer m.Close()
	index, err := run.PutModel(ctx, s, m.checkedFiles())
	return index, run.ModelError(err)
}

// importHub fetches a hub model and imports it. What was downloaded is removed once it is in
// the store; after an error it stays, and the next attempt resumes the download.
func importHub(ctx context.Context, s store.Store, origin spec.Origin, p spec.Policy, adapters bool) (store.Ref, error) {
	from, err := hub.FromEnv()
	if err != nil {
		return store.Ref{}, err
	}
	m, err := from.Fetch(ctx, origin.Name, origin.Revision, fetched, whole)
	if err != nil {
		return store.Ref{}, fmt.Errorf("%w%s", hubError(err), withoutNetwork(err))
	}
	index, err := importAny(ctx, s, m.FS, p, adapters)
	if err != nil && !errors.Is(err, activities.ErrModelInvalid) {
		return store.Ref{}, errors.Join(err, m.Close())
	}
	return index, errors.Join(err, m.Discard())
}

// whole reports whether a folder has all files of a model: programs that look at a model
// leave some of them in a hub's cache.
func whole(fsys fs.FS) bool {
	if holdsAdapters(fsys) {
		_, err := fs.Stat(fsys, model.AdapterFile)
		return err == nil
	}
	if _, err := fs.Stat(fsys, "tokenizer.json"); err != nil {
		return false
	}
	// A link to a blob that is not there, as an interrupted download leaves, is a missing file.
	_, err := model.OpenFS(fsys)
	return !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, modeldir.ErrLost)
}

// hubError adds the kind of an error that trying again does not help.
func hubError(err error) error {
	if errors.Is(err, hub.ErrRefused) {
		return fmt.Errorf("%w: %w", err, activities.ErrModelInvalid)
	}
	return err
}

// withoutNetwork is the remedy where a host worker does not reach the hub at all; empty
// for other errors.
func withoutNetwork(err error) string {
	if hub.Unreachable(err) {
		return " (this host worker has no network to the hub: copy the model to it and name it by folder:PATH)"
	}
	return ""
}

// findModel finds the index of a model in the store by its 12 hex digits.
func findModel(ctx context.Context, s store.Store, sha12 string) (store.Ref, error) {
	prefix := store.ModelPrefix + sha12 + "/index."
	for o, err := range s.List(ctx, prefix) {
		if err != nil {
			return store.Ref{}, err
		}
		_, ref, err := store.ReadFixed(ctx, s, o.Key, 1<<20)
		return ref, err
	}
	return store.Ref{}, fmt.Errorf("no model %s in %s: %w: %w", sha12, s.Location(store.ModelPrefix), activities.ErrModelInvalid, store.ErrNotFound)
}
