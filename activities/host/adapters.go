package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/hf/modeldir"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// holdsAdapters reports whether a folder has adapters, as PEFT writes them, and not the
// weights of a whole model.
func holdsAdapters(fsys fs.FS) bool {
	has := func(name string) bool {
		_, err := fs.Stat(fsys, name)
		return err == nil
	}
	return has(model.AdapterConfigFile) && !has(model.WeightsFile) && !has(model.WeightsIndex)
}

// fetched reports whether a hub's file is fetched: those that are kept, of a whole model or of
// adapters.
func fetched(name string) bool { return kept(name) || name == model.AdapterConfigFile }

// ofAdapters reports whether Reprise keeps a file of a folder of adapters: theirs, and a
// tokenizer's, which takes the place of the base model's.
func ofAdapters(name string) bool {
	return model.OfAdapters(name) && path.Ext(name) != ".bin" || slices.Contains(run.TokenizerFiles, name)
}

// baseOf is the base model of adapters that a policy starts with, as Policy.From.
func baseOf(p spec.Policy, l model.LoRA) (string, error) {
	if from := cmp.Or(p.Base, spec.HubBase(l.Base)); from != "" {
		return from, nil
	}
	return "", fmt.Errorf("these are adapters whose base model is %q, which is no name of the hub: name it in policy.base: %w", l.Base, activities.ErrModelInvalid)
}

// LocalAdapters looks for adapters in a folder of this machine that a policy starts with. It
// returns the policy as the start of a run resolves it, and a policy that starts with the base
// model. If the folder has no adapters, both are p. document is what a person wrote; see
// spec.Policy.Starting.
func LocalAdapters(folder string, p spec.Policy, document []byte) (resolved, base spec.Policy, err error) {
	dir, err := modeldir.Open(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return p, p, nil
	}
	if err != nil {
		return p, p, err
	}
	defer dir.Close()
	if !holdsAdapters(dir) {
		return p, p, nil
	}
	b, err := modeldir.Read(dir, model.AdapterConfigFile, MaxSmallFile)
	if err != nil {
		return p, p, err
	}
	l, err := model.ParseLoRA(b)
	if err != nil {
		return p, p, err
	}
	from, err := baseOf(p, l)
	if err != nil {
		return p, p, err
	}
	resolved, err = p.Starting(run.SpecLoRA(l), from, document)
	return resolved, spec.Policy{From: from}, err
}

// importAdapters imports adapters and their base model: the policy's, or the one that the
// adapters name on the hub.
func importAdapters(ctx context.Context, s store.Store, fsys fs.FS, p spec.Policy) (store.Ref, error) {
	files, err := openFiles(fsys, ofAdapters)
	if err != nil {
		return store.Ref{}, err
	}
	defer files.Close()
	l, err := model.ParseLoRA(files.Small[model.AdapterConfigFile])
	if err != nil {
		return store.Ref{}, fmt.Errorf("%w: %w", err, activities.ErrModelInvalid)
	}
	from, err := baseOf(p, l)
	if err != nil {
		return store.Ref{}, err
	}
	index, ok, err := importModel(ctx, s, spec.Policy{From: from}, false)
	if err == nil && !ok {
		err = fmt.Errorf("it is no stored model: %w", activities.ErrModelInvalid)
	}
	if err != nil {
		return store.Ref{}, fmt.Errorf("base model of the adapters: %w", err)
	}
	base, err := run.ReadIndex(ctx, s, index)
	if err != nil {
		return store.Ref{}, err
	}
	if _, twice := base.Files[model.AdapterConfigFile]; twice {
		return store.Ref{}, fmt.Errorf("the base model %s has adapters too, which is not supported: %w", from, activities.ErrModelInvalid)
	}
	about, err := run.ModelFiles(ctx, s, run.SmallRefs(base))
	if err != nil {
		return store.Ref{}, err
	}
	c, err := model.ParseConfig(about[model.ConfigFile])
	if err != nil {
		return store.Ref{}, fmt.Errorf("base model of the adapters: %w: %w", err, activities.ErrModelInvalid)
	}
	if err := files.fitAdapters(fsys, c); err != nil {
		return store.Ref{}, err
	}
	both, err := run.PutAdapters(ctx, s, base, files.checkedFiles())
	return both, run.ModelError(err)
}
