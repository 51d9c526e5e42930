// Package modeldir opens a folder with a model, as it lies on a disk, and its files: a folder as
// transformers and PEFT write it, or one in the form of the Hugging Face hub's cache. An error says
// what is wrong with a file and what to do.
//
// Nothing outside of the folder is opened, whatever links in it say: who can write into a model's
// folder must not be able to read other files of the machine by it. In a hub's cache the folder is
// models--ORG--NAME, in which a snapshot's files are links to blobs.
package modeldir

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/reprise-rl/reprise/infra/filekind"
)

// Dir is an open folder. Its files are those of the model.
type Dir struct {
	root *os.Root // whose files links may lead to
	at   string   // of the model's files in it
}

// rootFS is what an os.Root's files are.
type rootFS interface {
	fs.StatFS
	fs.ReadDirFS
	fs.ReadLinkFS
}

func (d *Dir) files() rootFS { return d.root.FS().(rootFS) }

// Close closes the folder.
func (d *Dir) Close() error { return d.root.Close() }

// Open implements fs.FS.
func (d *Dir) Open(name string) (fs.File, error) { return d.files().Open(path.Join(d.at, name)) }

// Stat implements fs.StatFS.
func (d *Dir) Stat(name string) (fs.FileInfo, error) { return d.files().Stat(path.Join(d.at, name)) }

// ReadDir implements fs.ReadDirFS.
func (d *Dir) ReadDir(name string) ([]fs.DirEntry, error) {
	return d.files().ReadDir(path.Join(d.at, name))
}

// Lstat implements fs.ReadLinkFS.
func (d *Dir) Lstat(name string) (fs.FileInfo, error) { return d.files().Lstat(path.Join(d.at, name)) }

// ReadLink implements fs.ReadLinkFS.
func (d *Dir) ReadLink(name string) (string, error) { return d.files().ReadLink(path.Join(d.at, name)) }

// cached is the name of a model's folder in a hub's cache.
const cached = "models--"

// commitForm is the name of a snapshot in it.
var commitForm = regexp.MustCompile(`^[0-9a-f]{40}$`)

// Open opens the folder of a model: a plain one, a snapshot of a hub's cache
// (models--ORG--NAME/snapshots/COMMIT), or models--ORG--NAME itself, of which the snapshot is taken
// that refs/main names, or the only one. The caller closes it.
func Open(folder string) (*Dir, error) {
	real, err := filepath.EvalSymlinks(folder)
	if err == nil {
		real, err = filepath.Abs(real)
	}
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(real)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, notFolder(real)
	}
	snapshots := filepath.Dir(real)
	if model := filepath.Dir(snapshots); filepath.Base(snapshots) == "snapshots" && strings.HasPrefix(filepath.Base(model), cached) {
		return openSnapshot(model, filepath.Base(real))
	}
	if held, err := os.Stat(filepath.Join(real, "snapshots")); err == nil && held.IsDir() && strings.HasPrefix(filepath.Base(real), cached) {
		commit, err := snapshotOf(real)
		if err != nil {
			return nil, err
		}
		return openSnapshot(real, commit)
	}
	root, err := os.OpenRoot(real)
	if err != nil {
		return nil, err
	}
	return &Dir{root, "."}, nil
}

// notFolder says what a file is that was named in place of a folder.
func notFolder(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	if found := Mistaken(f); found != nil {
		return fmt.Errorf("a model is a folder with config.json, its weights and its tokenizer, but %w", found)
	}
	return errors.New("a model is a folder with config.json, its weights and its tokenizer, but this is a file: name its folder")
}

// openSnapshot opens a snapshot of a model in a hub's cache.
func openSnapshot(model, commit string) (*Dir, error) {
	root, err := os.OpenRoot(model)
	if err != nil {
		return nil, err
	}
	d := &Dir{root, "snapshots/" + commit}
	if _, err := d.Stat("."); err != nil {
		root.Close()
		return nil, fmt.Errorf("snapshot %s of the hub's cache: %w", commit, err)
	}
	return d, nil
}

// snapshotOf is the snapshot of a model in a hub's cache that is meant if none is named.
func snapshotOf(model string) (string, error) {
	entries, err := os.ReadDir(filepath.Join(model, "snapshots"))
	if err != nil {
		return "", err
	}
	var commits []string
	for _, e := range entries {
		if e.IsDir() {
			commits = append(commits, e.Name())
		}
	}
	b, err := os.ReadFile(filepath.Join(model, "refs", "main"))
	main := strings.TrimSpace(string(b))
	switch {
	case err == nil && !commitForm.MatchString(main):
		return "", errors.New("refs/main of the hub's cache is no commit: name a folder in snapshots")
	case err == nil:
		return main, nil
	case len(commits) == 1:
		return commits[0], nil
	case len(commits) == 0:
		return "", errors.New("the hub's cache has no snapshot of the model: download it, with hf download")
	}
	return "", fmt.Errorf("the hub's cache has %d snapshots of the model and no refs/main: name one, %s",
		len(commits), filepath.Join(model, "snapshots", commits[0]))
}

// ErrLost is the kind of errors about a link to a file that is not there. It is no fs.ErrNotExist:
// the file is not absent, it is lost.
var ErrLost = errors.New("the file that it links to is not there")

// OpenFile opens a regular file of a model's folder and gives its size. It asks first, because
// opening a pipe waits for somebody to write to it. The error is an fs.ErrNotExist only if there is
// nothing of that name; it does not repeat the name.
func OpenFile(fsys fs.FS, name string) (fs.File, int64, error) {
	info, err := fs.Stat(fsys, name)
	if err != nil {
		return nil, 0, cause(fsys, name, err)
	}
	if err := regular(info); err != nil {
		return nil, 0, err
	}
	f, err := fsys.Open(name)
	if err != nil {
		return nil, 0, cause(fsys, name, err)
	}
	if info, err = f.Stat(); err == nil {
		err = regular(info)
	}
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, info.Size(), nil
}

// regular returns an error for what is no file with bytes.
func regular(info fs.FileInfo) error {
	switch {
	case info.IsDir():
		return errors.New("it is a folder and not a regular file: put the file in its place")
	case !info.Mode().IsRegular():
		return errors.New("it is not a regular file")
	}
	return nil
}

// cause says why a file cannot be opened.
func cause(fsys fs.FS, name string, err error) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		err = at.Err // without a path, which the caller names
	}
	links, ok := fsys.(fs.ReadLinkFS)
	if !ok {
		return denied(err)
	}
	info, lookErr := links.Lstat(name)
	if lookErr != nil || info.Mode()&fs.ModeSymlink == 0 {
		return denied(err)
	}
	to, _ := links.ReadLink(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("it links to %s: %w: download the model again, or copy it with its files (cp -rL)", to, ErrLost)
	case errors.Is(err, fs.ErrPermission):
		return denied(err)
	}
	return fmt.Errorf("it links to %s, outside of the model's folder (%w): copy the file in its place (cp -rL), because nothing "+
		"outside is read",
		to, err)
}

// denied adds to an error about permissions what to do.
func denied(err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%w: give this user the right to read it", err)
	}
	return err
}

// Read reads a whole file of at most so many bytes; fs.ErrNotExist if it is absent. The error begins
// with its name.
func Read(fsys fs.FS, name string, most int64) ([]byte, error) {
	f, size, err := OpenFile(fsys, name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	defer f.Close()
	b, err := read(f, size, most)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return b, nil
}

func read(f io.Reader, size, most int64) ([]byte, error) {
	if size > most {
		return nil, fmt.Errorf("it has %d bytes, at most %d are read", size, most)
	}
	b := make([]byte, size)
	_, err := io.ReadFull(f, b)
	if err == nil || size == 0 {
		// The end, with its error if it has one.
		if _, err = io.ReadFull(f, make([]byte, 1)); err == nil {
			err = errors.New("the file has grown")
		}
	}
	if err != nil && err != io.EOF {
		return nil, err
	}
	return b, nil
}

// Mistaken says what a file is by its beginning, nil if that does not say. See filekind.
func Mistaken(f fs.File) error {
	info, err := f.Stat()
	if err != nil {
		return nil
	}
	head := make([]byte, filekind.Head)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	if found := filekind.Mistaken(head[:n], info.Size()); found != nil {
		return found
	}
	return nil
}
