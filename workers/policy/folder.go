package policy

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/reprise-rl/reprise/model"
)

// Unfinished is the folder, in the folder that WriteWhole writes, of a model that is not whole.
const Unfinished = ".unfinished"

// WriteWhole writes a whole model, with weights in dtype, into a folder that is new, empty, or has
// what an interrupted call left. other are its other files, or files in place of those that
// model.Source.WriteFolder writes. All files are written below Unfinished first, and moved to their
// places when they are complete. size is their length together in bytes, count how many they are.
func WriteWhole(dir string, weights model.Source, dtype string, other map[string][]byte) (size int64, count int, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return 0, 0, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return 0, 0, err
	}
	defer root.Close()
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return 0, 0, err
	}
	for _, e := range entries {
		if e.Name() != Unfinished {
			return 0, 0, fmt.Errorf("%s holds something else (%s): give a new or empty folder", dir, e.Name())
		}
	}
	if err := errors.Join(root.RemoveAll(Unfinished), root.Mkdir(Unfinished, 0o755)); err != nil {
		return 0, 0, err
	}
	part, err := root.OpenRoot(Unfinished)
	if err != nil {
		return 0, 0, err
	}
	defer part.Close()
	if err := weights.WriteFolder(part, dtype); err != nil {
		return 0, 0, err
	}
	for name, body := range other {
		if err := part.WriteFile(name, body, 0o666); err != nil {
			return 0, 0, err
		}
	}
	if entries, err = fs.ReadDir(part.FS(), "."); err != nil {
		return 0, 0, err
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			return 0, 0, err
		}
		size += info.Size()
		if err := root.Rename(Unfinished+"/"+e.Name(), e.Name()); err != nil {
			return 0, 0, err
		}
	}
	return size, len(entries), root.Remove(Unfinished)
}
