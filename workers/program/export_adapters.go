package program

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/workers/policy"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// exportAdapters writes a version that is adapters over a base model: by themselves, or added
// to the base model's weights. files are the version's, in the store from.
func exportAdapters(
	ctx context.Context, s, from store.Store, t spec.Train, base store.ModelRef, files map[string]store.Ref, o exportOptions,
) (size int64, count int, err error) {
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
	return policy.WriteWhole(o.dir, merged, o.dtype, about)
}

// drawnAdapters puts new adapters beside a base model's files, into an overlay of the store.
func drawnAdapters(
	ctx context.Context, s store.Store, rc *run.Context, files map[string]store.Ref,
) (store.Store, map[string]store.Ref, error) {
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
