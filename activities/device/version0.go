package device

import (
	"context"
	"fmt"
	"io/fs"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model"
)

// version0 gives version 0 of a run: the base model or, of a run with adapters, those over it.
// They are in the base model's folder if they were imported or taught, else new ones.
func (w *work) version0(ctx context.Context, s store.Store, of activities.Run) (model.Source, error) {
	files, fsys, err := w.modelFiles(ctx, s, of.Base)
	if err != nil {
		return model.Source{}, err
	}
	if !w.Config.Adapted() {
		return baseWeights(fsys)
	}
	base, err := w.frozen(ctx, s, of)
	if err != nil {
		return model.Source{}, err
	}
	if _, made := files[model.AdapterConfigFile]; !made {
		return model.Drawn(w.Config, w.AdaptersAt()).Over(base), nil
	}
	folder, err := model.OpenAdapterFS(fsys, w.Config.Base())
	if err != nil {
		return model.Source{}, fmt.Errorf("adapters: %w", run.ModelError(err))
	}
	return folder.First().Over(base), nil
}

// modelFiles are the files of a stored model.
func (w *work) modelFiles(ctx context.Context, s store.Store, index store.Ref) (map[string]store.Ref, fs.FS, error) {
	m, err := run.ReadIndex(ctx, s, index)
	if err != nil {
		return nil, nil, err
	}
	return m.Files, store.FS(ctx, s, m.Files, &w.reading), nil
}

// baseWeights gives the weights of a whole model.
func baseWeights(fsys fs.FS) (model.Source, error) {
	folder, err := model.OpenFS(fsys)
	if err != nil {
		return model.Source{}, fmt.Errorf("base model: %w", run.ModelError(err))
	}
	return folder.First(), nil
}

// frozen makes the engine hold the base model below the run's adapters. It is loaded and
// fingerprinted once, and stays until another run comes.
func (w *work) frozen(ctx context.Context, s store.Store, of activities.Run) (*model.Base, error) {
	if w.engine.frozen != nil {
		return w.engine.frozen.Base, nil
	}
	p, err := w.engine.programsFor(w.Context, of, w.Shapes(w.Training, 1))
	if err != nil {
		return nil, err
	}
	_, fsys, err := w.modelFiles(ctx, s, of.Base)
	if err != nil {
		return nil, err
	}
	src, err := baseWeights(fsys)
	if err != nil {
		return nil, err
	}
	base, err := p.LoadBase(src)
	if err != nil {
		return nil, fmt.Errorf("load the base model: %w", err)
	}
	fingerprint, err := base.Fingerprint()
	if err != nil {
		base.Free()
		return nil, err
	}
	w.engine.frozen = &frozenBase{base, fingerprint}
	return base, nil
}

// openState opens a stored training state of the run.
func (w *work) openState(ctx context.Context, s store.Store, of activities.Run, files map[string]store.Ref) (stored, error) {
	fsys := store.FS(ctx, s, files, &w.reading)
	if !w.Config.Adapted() {
		folder, err := model.OpenFS(fsys)
		return stored{folder, nil}, err
	}
	folder, err := model.OpenAdapterFS(fsys, w.Config.Base())
	if err != nil {
		return stored{}, err
	}
	base, err := w.frozen(ctx, s, of)
	return stored{folder, base}, err
}

// stored is a stored training state: of a policy, and of its second network if it has one.
type stored struct {
	folder *model.Folder
	base   *model.Base // below adapters; nil without
}

func (s stored) policy() (model.Source, error) {
	src, err := s.folder.Policy()
	return src.Over(s.base), err
}

// second is the state of a second network with a configuration.
func (s stored) second(c model.Config) (model.Source, error) {
	src, err := s.folder.Second(c)
	return src.Over(s.base), err
}
