package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/gomlx/go-huggingface/hub"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/run"
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
		index, err = importFolder(ctx, s, origin.Name)
	case spec.OriginHub:
		index, err = importHub(ctx, s, origin)
	}
	if err != nil {
		return store.Ref{}, false, fmt.Errorf("import %s: %w", p.From, err)
	}
	return index, true, nil
}

// MaxSmallFile bounds each file of a model folder that is read whole, in bytes: all but
// the weights.
const MaxSmallFile = 64 << 20

// importFolder checks a Hugging Face folder and stores its files. Each is opened once and
// must be a regular file within the folder: a user who can write there must not be able
// to copy other files of this machine into the bucket by a link.
func importFolder(ctx context.Context, s store.Store, path string) (store.Ref, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return store.Ref{}, fmt.Errorf("%w (the path is the host worker's): %w", err, activities.ErrModelInvalid)
	}
	defer root.Close()
	names, err := modelFileNames(root)
	if err != nil {
		return store.Ref{}, err
	}
	small := map[string][]byte{}
	var files []store.FolderFile
	for _, n := range names {
		f, size, err := openModelFile(root, n)
		if err != nil {
			return store.Ref{}, fmt.Errorf("%w (links must not leave the folder): %w", err, activities.ErrModelInvalid)
		}
		defer f.Close()
		if !strings.HasSuffix(n, ".json") && !strings.HasSuffix(n, ".jinja") {
			files = append(files, store.FolderFile{Name: n, Open: func() io.Reader { return io.NewSectionReader(f, 0, size) }, Size: size})
			continue
		}
		// The checked bytes are the stored bytes.
		if small[n], err = readSmall(f, n, size); err != nil {
			return store.Ref{}, fmt.Errorf("%w: %w", err, activities.ErrModelInvalid)
		}
		files = append(files, store.FolderFile{Name: n, Body: small[n]})
	}
	// The headers say whether the weights fit; the weights are read to be stored.
	folder, err := model.OpenFS(root.FS())
	if err != nil {
		return store.Ref{}, fmt.Errorf("%w: %w", err, activities.ErrModelInvalid)
	}
	t, err := tokenizer.Load(small)
	if err != nil {
		return store.Ref{}, fmt.Errorf("%w: %w", err, activities.ErrModelInvalid)
	}
	if _, err := t.Legal(folder.Config.VocabSize); err != nil {
		return store.Ref{}, fmt.Errorf("%w: %w", err, activities.ErrModelInvalid)
	}
	return run.PutModel(ctx, s, files)
}

// openModelFile opens a regular file of a folder and gives its size.
func openModelFile(root *os.Root, name string) (*os.File, int64, error) {
	// Asked first, because opening a pipe waits for somebody to write to it.
	info, err := root.Stat(name)
	if err != nil {
		return nil, 0, err
	}
	if !info.Mode().IsRegular() {
		return nil, 0, fmt.Errorf("%s is not a regular file", name)
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, 0, err
	}
	if info, err = f.Stat(); err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", name)
	}
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, info.Size(), nil
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

// modelFileNames lists the files of a model folder that Reprise keeps.
func modelFileNames(root *os.Root) ([]string, error) {
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return nil, fmt.Errorf("list %s: %w: %w", root.Name(), err, activities.ErrModelInvalid)
	}
	var names []string
	for _, e := range entries {
		name := e.Name()
		switch {
		case e.IsDir():
		case strings.HasSuffix(name, ".safetensors"), name == "model.safetensors.index.json",
			name == "config.json", name == "generation_config.json",
			name == "tokenizer.json", name == "tokenizer_config.json", name == "chat_template.jinja":
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("folder %s has no model files: %w", root.Name(), activities.ErrModelInvalid)
	}
	return names, nil
}

// importHub downloads a hub model into a temporary folder and imports that.
func importHub(ctx context.Context, s store.Store, origin spec.Origin) (store.Ref, error) {
	tmp, err := os.MkdirTemp("", "reprise-hub-")
	if err != nil {
		return store.Ref{}, err
	}
	defer os.RemoveAll(tmp)
	repo := hub.New(origin.Name).WithCacheDir(tmp).WithAuth(os.Getenv("HF_TOKEN")).WithProgressBar(false)
	if origin.Revision != "" {
		repo = repo.WithRevision(origin.Revision)
	}
	folder := filepath.Join(tmp, "folder")
	if err := os.Mkdir(folder, 0o700); err != nil {
		return store.Ref{}, err
	}
	for name, err := range repo.IterFileNames() {
		if err != nil {
			return store.Ref{}, fmt.Errorf("list files: %w%s", err, withoutNetwork(err))
		}
		if name != filepath.Base(name) {
			continue
		}
		wanted := strings.HasSuffix(name, ".safetensors") || name == "model.safetensors.index.json"
		for _, small := range run.SmallFiles {
			wanted = wanted || name == small
		}
		if !wanted {
			continue
		}
		path, err := repo.DownloadFileCtx(ctx, name)
		if err != nil {
			return store.Ref{}, fmt.Errorf("download %s: %w", name, err)
		}
		// The hub's cache links to its blobs; a folder has real files.
		if path, err = filepath.EvalSymlinks(path); err != nil {
			return store.Ref{}, fmt.Errorf("find %s in the hub's cache: %w", name, err)
		}
		if err := os.Link(path, filepath.Join(folder, name)); err != nil {
			return store.Ref{}, fmt.Errorf("take %s over from the hub's cache: %w", name, err)
		}
	}
	return importFolder(ctx, s, folder)
}

// withoutNetwork is the remedy where a host worker does not reach the hub at all; empty
// for other errors.
func withoutNetwork(err error) string {
	var lookup *net.DNSError
	var dial *net.OpError
	if errors.As(err, &lookup) || errors.As(err, &dial) {
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
