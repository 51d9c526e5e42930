package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/hub"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/tokenizer"
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

// MaxSmallFile bounds each file of a model folder that is read whole, in bytes: all but
// the weights.
const MaxSmallFile = 64 << 20

// importFolder checks a Hugging Face folder and stores its files.
func importFolder(ctx context.Context, s store.Store, path string, p spec.Policy, adapters bool) (store.Ref, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return store.Ref{}, fmt.Errorf("%w (the path is the host worker's): %w", err, activities.ErrModelInvalid)
	}
	defer root.Close()
	return importAny(ctx, s, root.FS(), p, adapters)
}

// importAny imports what a folder holds: a whole model or, if they are wanted, adapters.
func importAny(ctx context.Context, s store.Store, fsys fs.FS, p spec.Policy, adapters bool) (store.Ref, error) {
	switch {
	case holdsAdapters(fsys) && adapters:
		return importAdapters(ctx, s, fsys, p)
	case holdsAdapters(fsys):
		return store.Ref{}, fmt.Errorf("the folder holds adapters and no whole model: %w", activities.ErrModelInvalid)
	}
	return importFiles(ctx, s, fsys)
}

// importFiles checks a model's files and stores them. Each is opened once and must be a
// regular file within the folder: a user who can write there must not be able to copy other
// files of this machine into the bucket by a link. The headers say whether the weights fit;
// the weights are read to be stored.
func importFiles(ctx context.Context, s store.Store, fsys fs.FS) (store.Ref, error) {
	files, small, done, err := openFiles(fsys, kept)
	defer done()
	if err != nil {
		return store.Ref{}, err
	}
	folder, err := model.OpenFS(fsys)
	if err != nil {
		return store.Ref{}, fmt.Errorf("%w: %w", err, activities.ErrModelInvalid)
	}
	if err := checkTokenizer(small, folder.Config); err != nil {
		return store.Ref{}, err
	}
	return run.PutModel(ctx, s, files)
}

// checkTokenizer returns an error unless a tokenizer's files can be read and fit the model.
func checkTokenizer(small map[string][]byte, c model.Config) error {
	t, err := tokenizer.Load(small)
	if err == nil {
		_, err = t.Legal(c.VocabSize)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", err, activities.ErrModelInvalid)
	}
	return nil
}

// openFiles opens a folder's files of some names. small are the whole files that are no
// weights. The caller closes them by done.
func openFiles(fsys fs.FS, wanted func(name string) bool) (files []store.FolderFile, small map[string][]byte, done func(), err error) {
	var open []io.Closer
	done = func() {
		for _, f := range open {
			f.Close()
		}
	}
	names, err := modelFileNames(fsys, wanted)
	if err != nil {
		return nil, nil, done, err
	}
	small = map[string][]byte{}
	for _, n := range names {
		f, size, err := openModelFile(fsys, n)
		if err != nil {
			return nil, nil, done, fmt.Errorf("%w (links must not leave the folder): %w", err, activities.ErrModelInvalid)
		}
		open = append(open, f)
		if !strings.HasSuffix(n, ".json") && !strings.HasSuffix(n, ".jinja") {
			files = append(files, store.FolderFile{Name: n, Open: func() io.Reader { return io.NewSectionReader(f, 0, size) }, Size: size})
			continue
		}
		// The checked bytes are the stored bytes.
		if small[n], err = readSmall(f, n, size); err != nil {
			return nil, nil, done, fmt.Errorf("%w: %w", err, activities.ErrModelInvalid)
		}
		files = append(files, store.FolderFile{Name: n, Body: small[n]})
	}
	return files, small, done, nil
}

// modelFile is an open file that can be read from anywhere.
type modelFile interface {
	fs.File
	io.ReaderAt
}

// openModelFile opens a regular file of a folder and gives its size.
func openModelFile(fsys fs.FS, name string) (modelFile, int64, error) {
	// Asked first, because opening a pipe waits for somebody to write to it.
	info, err := fs.Stat(fsys, name)
	if err != nil {
		return nil, 0, err
	}
	if !info.Mode().IsRegular() {
		return nil, 0, fmt.Errorf("%s is not a regular file", name)
	}
	f, err := fsys.Open(name)
	if err != nil {
		return nil, 0, err
	}
	if info, err = f.Stat(); err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", name)
	}
	file, ok := f.(modelFile)
	if err == nil && !ok {
		err = fmt.Errorf("%s cannot be read from anywhere", name)
	}
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return file, info.Size(), nil
}

func readSmall(r io.ReaderAt, name string, size int64) ([]byte, error) {
	if size > MaxSmallFile {
		return nil, fmt.Errorf("%s has %d bytes, at most %d are read", name, size, MaxSmallFile)
	}
	b, err := io.ReadAll(io.NewSectionReader(r, 0, size))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return b, nil
}

// kept reports whether Reprise keeps a file of a model folder.
func kept(name string) bool {
	return strings.HasSuffix(name, ".safetensors") || name == model.WeightsIndex || slices.Contains(run.SmallFiles, name)
}

// modelFileNames lists the files of a model folder that are wanted.
func modelFileNames(fsys fs.FS, wanted func(name string) bool) ([]string, error) {
	entries, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return nil, fmt.Errorf("list the model's folder: %w: %w", err, activities.ErrModelInvalid)
	}
	var names []string
	for _, e := range entries {
		if !e.IsDir() && wanted(e.Name()) {
			names = append(names, e.Name())
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("the folder has no model files: %w", activities.ErrModelInvalid)
	}
	return names, nil
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
	// Links that lead nowhere are not files that are missing.
	_, err := model.OpenFS(fsys)
	return !errors.Is(err, fs.ErrNotExist)
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
