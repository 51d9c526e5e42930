package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"

	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// exportAdapters writes a version that is adapters over a base model: by themselves, or added
// to the base model's weights. files are the version's, in the store from.
func exportAdapters(ctx context.Context, s, from store.Store, t spec.Train, base store.ModelRef, files map[string]store.Ref, o exportOptions) (size int64, count int, err error) {
	about, err := run.ModelFiles(ctx, s, run.SmallRefs(base))
	if err != nil {
		return 0, 0, err
	}
	read, err := run.NewBaseModel(about)
	if err != nil {
		return 0, 0, err
	}
	rc, err := run.NewContext(t, read)
	if err != nil {
		return 0, 0, err
	}
	if _, ok := files[model.AdapterConfigFile]; !ok { // version 0, whose adapters are drawn
		if from, files, err = drawnAdapters(ctx, s, rc, files); err != nil {
			return 0, 0, err
		}
	}
	if o.peft {
		files = maps.Clone(files)
		maps.DeleteFunc(files, func(name string, _ store.Ref) bool {
			return !model.OfAdapters(name) && !slices.Contains(run.TokenizerFiles, name)
		})
		return copyFolder(ctx, from, files, o.dir)
	}
	whole, err := model.OpenFS(store.FS(ctx, s, base.Files, nil))
	if err != nil {
		return 0, 0, fmt.Errorf("base model: %w", err)
	}
	adapters, err := model.OpenAdapterFS(store.FS(ctx, from, files, nil), rc.Config.Base())
	if err != nil {
		return 0, 0, err
	}
	merged, err := model.Merge(whole.First(), adapters.First())
	if err != nil {
		return 0, 0, err
	}
	delete(about, model.ConfigFile)
	return writeWhole(o.dir, merged, o.dtype, about)
}

// drawnAdapters puts new adapters beside a base model's files, into an overlay of the store.
func drawnAdapters(ctx context.Context, s store.Store, rc *run.Context, files map[string]store.Ref) (store.Store, map[string]store.Ref, error) {
	drawn, err := model.DrawnFiles(rc.Config, rc.AdaptersAt())
	if err != nil {
		return nil, nil, err
	}
	over := store.NewOverlay(s)
	folder, err := store.PutFolder(ctx, over, store.ModelPrefix, run.Streamed(drawn))
	if err != nil {
		return nil, nil, err
	}
	files = maps.Clone(files)
	maps.Copy(files, folder.Files)
	return over, files, nil
}

// unfinished is the folder, in the folder that is written, of a model that is not whole.
const unfinished = ".unfinished"

// writeWhole writes a whole model with its other files into a folder that is new, empty, or
// has what an interrupted export left. All files are written below unfinished first, and moved
// to their places when they are complete.
func writeWhole(dir string, policy model.Source, dtype string, other map[string][]byte) (size int64, count int, err error) {
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
		if e.Name() != unfinished {
			return 0, 0, fmt.Errorf("%s holds something else (%s): give a new or empty folder", dir, e.Name())
		}
	}
	if err := errors.Join(root.RemoveAll(unfinished), root.Mkdir(unfinished, 0o755)); err != nil {
		return 0, 0, err
	}
	part, err := root.OpenRoot(unfinished)
	if err != nil {
		return 0, 0, err
	}
	defer part.Close()
	for name, body := range other {
		if err := part.WriteFile(name, body, 0o666); err != nil {
			return 0, 0, err
		}
	}
	if err := policy.WriteFolder(part, dtype); err != nil {
		return 0, 0, err
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
		if err := root.Rename(unfinished+"/"+e.Name(), e.Name()); err != nil {
			return 0, 0, err
		}
	}
	return size, len(entries), root.Remove(unfinished)
}
