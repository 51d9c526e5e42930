package host

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/hf/modeldir"
	"github.com/reprise-rl/reprise/model/safetensors"
	"github.com/reprise-rl/reprise/model/tokenizer"
)

// MaxSmallFile bounds each file of a model folder that is read whole, in bytes: all but
// the weights.
const MaxSmallFile = 64 << 20

// ModelFolder is a folder with a model or adapters as Resolve reads it, and validate too: what one
// refuses, the other refuses with the same words. Each file is opened once and is a regular file
// within the folder: a user who can write there must not be able to copy other files of this machine
// into the bucket by a link.
type ModelFolder struct {
	// Small are the files that are read whole: all but the weights.
	Small map[string][]byte
	// Config is the model's configuration, with the adapters if the folder holds adapters.
	Config model.Config
	// Warnings are the tokenizer's, and Notes what else a person should know of the folder.
	Warnings, Notes []string

	files   []store.FolderFile
	weights []string // those files that hold the tensors
	open    []io.Closer
}

// Close closes the files.
func (m *ModelFolder) Close() {
	for _, f := range m.open {
		f.Close()
	}
}

// errAdapters is about a folder of adapters in the place of a whole model.
var errAdapters = fmt.Errorf("the folder holds adapters and no whole model: %w", activities.ErrModelInvalid)

// OpenModelFolder reads the folder of a whole model on this machine and checks everything that Resolve
// checks before it stores the model, but not that each weight is a finite number: see CheckFinite. The
// caller closes it.
func OpenModelFolder(path string) (*ModelFolder, error) {
	return openFolder(path, func(dir fs.FS) (*ModelFolder, error) {
		if holdsAdapters(dir) {
			return nil, errAdapters
		}
		return readModel(dir)
	})
}

// OpenAdapterFolder is OpenModelFolder of adapters over a base model.
func OpenAdapterFolder(path string, base model.Config) (*ModelFolder, error) {
	return openFolder(path, func(dir fs.FS) (*ModelFolder, error) {
		m, err := openFiles(dir, ofAdapters)
		if err != nil {
			return nil, err
		}
		return m.orClose(m.fitAdapters(dir, base))
	})
}

// openFolder opens a folder and reads it. The folder is closed with what was read, or after an error.
func openFolder(path string, read func(fs.FS) (*ModelFolder, error)) (*ModelFolder, error) {
	dir, err := modeldir.Open(path)
	if err != nil {
		return nil, err
	}
	m, err := read(dir)
	if err != nil {
		dir.Close()
		return nil, err
	}
	m.open = append(m.open, dir)
	return m, nil
}

// orClose is the folder, or after an error its end.
func (m *ModelFolder) orClose(err error) (*ModelFolder, error) {
	if err != nil {
		m.Close()
		return nil, err
	}
	return m, nil
}

// readModel reads a folder with a whole model.
func readModel(fsys fs.FS) (*ModelFolder, error) {
	m, err := openFiles(fsys, kept)
	if err != nil {
		return nil, err
	}
	folder, err := model.OpenFS(fsys)
	if err != nil {
		return m.orClose(fmt.Errorf("%w: %w", err, activities.ErrModelInvalid))
	}
	m.Config, m.weights, m.Notes = folder.Config, folder.WeightFiles(), folder.Notes()
	if slices.Equal(m.weights, []string{model.WeightsFile}) {
		// Shards beside the whole file are not read, so they are not stored.
		m.files = slices.DeleteFunc(m.files, func(f store.FolderFile) bool { return f.Name == model.WeightsIndex || ofShards(f.Name) })
	}
	return m.orClose(m.checkTokenizer(fsys))
}

// fitAdapters checks the adapters of a folder, and its tokenizer if it has one, against a base model.
func (m *ModelFolder) fitAdapters(fsys fs.FS, base model.Config) error {
	folder, err := model.OpenAdapterFS(fsys, base)
	if err != nil {
		return fmt.Errorf("%w: %w", err, activities.ErrModelInvalid)
	}
	m.Config, m.weights, m.Notes = folder.Config, folder.WeightFiles(), folder.Notes()
	if _, own := m.Small[run.TokenizerFiles[0]]; own {
		return m.checkTokenizer(fsys)
	}
	m.files = slices.DeleteFunc(m.files, func(f store.FolderFile) bool { return !model.OfAdapters(f.Name) })
	for _, name := range run.TokenizerFiles {
		delete(m.Small, name)
	}
	return nil
}

// checkTokenizer returns an error unless the tokenizer's files can be read and fit the model.
func (m *ModelFolder) checkTokenizer(fsys fs.FS) error {
	t, err := tokenizer.Load(m.Small)
	if err == nil {
		_, err = t.Legal(m.Config.VocabSize)
	}
	var beside []string
	if err == nil {
		beside, err = tokenizer.Beside(fsys, m.Small)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", err, activities.ErrModelInvalid)
	}
	m.Warnings = append(t.Warnings(), beside...)
	return nil
}

// WeightBytes is the length of the files with the weights.
func (m *ModelFolder) WeightBytes() (n int64) {
	for _, f := range m.files {
		if slices.Contains(m.weights, f.Name) {
			n += f.Size
		}
	}
	return n
}

// CheckFinite reads all weights and returns an error if one of them is not a finite number.
func (m *ModelFolder) CheckFinite() error {
	for _, f := range m.checkedFiles() {
		if !slices.Contains(m.weights, f.Name) {
			continue
		}
		if _, err := io.Copy(io.Discard, f.Open()); err != nil {
			return run.ModelError(fmt.Errorf("%s: %w", f.Name, err))
		}
	}
	return nil
}

// checkedFiles are the files to store. Weights are checked when they are read for the first time, to
// be hashed, so that nothing of a model with a NaN is stored.
func (m *ModelFolder) checkedFiles() []store.FolderFile {
	files := slices.Clone(m.files)
	for i, f := range files {
		if !slices.Contains(m.weights, f.Name) {
			continue
		}
		plain, first := f.Open, true
		files[i].Open = func() io.Reader {
			if !first {
				return plain()
			}
			first = false
			return safetensors.CheckFinite(plain(), f.Size)
		}
	}
	return files
}

// openFiles opens a folder's files of some names.
func openFiles(fsys fs.FS, wanted func(name string) bool) (*ModelFolder, error) {
	m := &ModelFolder{Small: map[string][]byte{}}
	names, err := modelFileNames(fsys, wanted)
	if err != nil {
		return nil, err
	}
	for _, n := range names {
		if err := m.openFile(fsys, n); err != nil {
			return m.orClose(fmt.Errorf("%s: %w: %w", n, err, activities.ErrModelInvalid))
		}
	}
	return m, nil
}

// openFile opens a file of the folder, and reads it if it has no weights.
func (m *ModelFolder) openFile(fsys fs.FS, name string) error {
	f, size, err := modeldir.OpenFile(fsys, name)
	if err != nil {
		return err
	}
	m.open = append(m.open, f)
	at, ok := f.(io.ReaderAt)
	if !ok {
		return errors.New("it cannot be read from anywhere")
	}
	if strings.HasSuffix(name, ".safetensors") {
		m.files = append(m.files, store.FolderFile{Name: name, Open: func() io.Reader { return io.NewSectionReader(at, 0, size) }, Size: size})
		return nil
	}
	if size > MaxSmallFile {
		return fmt.Errorf("it has %d bytes, at most %d are read", size, MaxSmallFile)
	}
	// The checked bytes are the stored bytes.
	b, err := io.ReadAll(io.NewSectionReader(at, 0, size))
	if err != nil {
		return fmt.Errorf("read it: %w", err)
	}
	m.Small[name] = b
	m.files = append(m.files, store.FolderFile{Name: name, Body: b})
	return nil
}

// kept reports whether Reprise keeps a file of a model folder.
func kept(name string) bool {
	return strings.HasSuffix(name, ".safetensors") || name == model.WeightsIndex || slices.Contains(run.SmallFiles, name)
}

// ofShards reports whether a file is a shard of a whole model.
func ofShards(name string) bool {
	ok, _ := path.Match("model-*-of-*.safetensors", name)
	return ok
}

// modelFileNames lists the files of a model folder that are wanted.
func modelFileNames(fsys fs.FS, wanted func(name string) bool) ([]string, error) {
	entries, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return nil, fmt.Errorf("list the model's folder: %w: %w", err, activities.ErrModelInvalid)
	}
	var names []string
	for _, e := range entries {
		// A folder in the place of a file is refused when it is opened.
		if wanted(e.Name()) && (!e.IsDir() || slices.Contains(run.SmallFiles, e.Name()) || e.Name() == model.WeightsFile) {
			names = append(names, e.Name())
		}
	}
	if len(names) == 0 {
		err := modeldir.MissingConfig(fsys, model.ConfigFile, errors.New("the folder has no model files"))
		return nil, fmt.Errorf("%w: %w", err, activities.ErrModelInvalid)
	}
	return names, nil
}
