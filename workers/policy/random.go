package policy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/reprise-rl/reprise/envs/starter"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/draw"
	"github.com/reprise-rl/reprise/model/hf/families"
)

// Random writes a model folder with random weights, float32, of a known model's shape. The
// tokenizer is the starter's, and the vocabulary the shape's: the ids without a token are
// illegal. The weights are drawn by seed, one tensor at a time; the same shape and seed give
// the same bytes. say receives each file's name
// and size in bytes before it is written.
func Random(ctx context.Context, dir, shape string, seed uint64, say func(name string, size int64)) error {
	known, err := families.ByName(shape)
	if err != nil {
		return err
	}
	return RandomOf(ctx, dir, known.Config, seed, say)
}

// RandomOf is Random for any shape.
func RandomOf(ctx context.Context, dir string, c model.Config, seed uint64, say func(name string, size int64)) error {
	c.EOS, c.Pad = model.ID(starter.EndID), model.ID(starter.PadID)
	files, err := model.DrawnFiles(c, draw.Address{Seed: seed, Purpose: draw.Weights})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make the model's folder: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("open the model's folder: %w", err)
	}
	defer root.Close()
	small := starter.Files()
	if err := onlyOurs(root, small, files); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(small)) {
		if err := root.WriteFile(name, small[name], 0o644); err != nil {
			return fmt.Errorf("write %s: %w", filepath.Join(dir, name), err)
		}
	}
	for _, f := range files {
		if say != nil {
			say(f.Name, f.Size)
		}
		if err := writeFile(ctx, root, f); err != nil {
			return fmt.Errorf("write %s: %w", filepath.Join(dir, f.Name), err)
		}
	}
	return nil
}

// onlyOurs fails if the folder has a file that is not written.
func onlyOurs(root *os.Root, small map[string][]byte, files []model.File) error {
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return fmt.Errorf("look into %s: %w", root.Name(), err)
	}
	for _, e := range entries {
		_, ours := small[e.Name()]
		if !ours && !slices.ContainsFunc(files, func(f model.File) bool { return e.Name() == f.Name || e.Name() == f.Name+part }) {
			return fmt.Errorf("%s holds something else (%s): give a new or empty folder", root.Name(), e.Name())
		}
	}
	return nil
}

// part ends the name of a file that is not whole yet.
const part = ".part"

// writeFile writes a file aside and renames it.
func writeFile(ctx context.Context, root *os.Root, f model.File) error {
	out, err := root.Create(f.Name + part)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, store.WithContext(ctx, f.Open()))
	if err = errors.Join(err, out.Close()); err != nil {
		return err
	}
	return root.Rename(f.Name+part, f.Name)
}
