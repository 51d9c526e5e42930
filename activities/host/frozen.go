package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// frozen resolves the models beside the policy of a spec: its teacher, whose vocabulary must be that of the policy with these
// small files, nil for a starter; and the model that judges. A policy that is its own teacher must have room for what it is shown.
func (h *Host) frozen(ctx context.Context, t spec.Train, policy map[string][]byte) (spec.Train, error) {
	if t.Teacher.Self() {
		own, err := run.Tokenizer(t, policy)
		if err == nil {
			err = run.CheckShown(t, own)
		}
		if err != nil {
			return t, err
		}
	}
	if of := t.Teacher.Apart(); of != nil {
		teacher, w, err := h.resolveFrozen(ctx, *of, "teacher", "teacher.model")
		if err != nil {
			return t, err
		}
		own, err := run.Tokenizer(t, policy)
		if err != nil {
			return t, err
		}
		if err := run.OtherVocabulary(t, own, w.Tokenizer); err != nil {
			return t, err
		}
		t.Teacher = spec.TeacherOf(teacher)
	}
	if of := t.JudgeModel(); of != nil {
		judge, w, err := h.resolveFrozen(ctx, *of, "judge", "rewards")
		if err != nil {
			return t, err
		}
		if err := run.CannotJudge(t, w.Tokenizer); err != nil {
			return t, err
		}
		t = t.WithJudgeModel(judge)
	}
	return t, nil
}

// resolveFrozen is a model beside the policy with its digest and its shape. It is copied into the store unless it is there already
// under a digest that the spec has. Errors call it what, and the field of its digest field.
func (h *Host) resolveFrozen(ctx context.Context, of spec.Frozen, what, field string) (spec.Frozen, *run.BaseModel, error) {
	var m store.ModelRef
	err := store.ErrNotFound
	if of.Model != "" {
		_, m, err = run.FindModel(ctx, h.Store, of.Model)
	}
	if errors.Is(err, store.ErrNotFound) {
		m, err = h.importFrozen(ctx, of)
	}
	if err != nil {
		return of, nil, fmt.Errorf("%s %s: %w", what, of.From, err)
	}
	if of.Model != "" && of.Model != m.Digest {
		return of, nil, spec.Problems{{Path: field, Found: what + " " + of.Model, Allowed: m.Digest, Hint: of.From + " is that model now"}}
	}
	of.Model = m.Digest
	files, err := run.ModelFiles(ctx, h.Store, run.SmallRefs(m))
	if err != nil {
		return of, nil, fmt.Errorf("%s %s: %w", what, of.From, err)
	}
	w, err := run.NewBaseModel(files)
	if err != nil {
		return of, nil, fmt.Errorf("%s %s: %w", what, of.From, err)
	}
	return run.WithShape(of, w), w, nil
}

// importFrozen copies a model beside the policy into the store.
func (h *Host) importFrozen(ctx context.Context, of spec.Frozen) (m store.ModelRef, err error) {
	origin, err := of.Origin()
	if err != nil {
		return m, err
	}
	var index store.Ref
	if origin.Kind == spec.OriginRun {
		index, err = h.importVersion(ctx, origin)
	} else {
		index, _, err = importModel(ctx, h.Store, spec.Policy{From: of.From}, false)
	}
	if err != nil {
		return m, err
	}
	if m, err = run.ReadIndex(ctx, h.Store, index); err != nil {
		return m, err
	}
	if _, adapted := m.Files[model.AdapterConfigFile]; adapted {
		return m, fmt.Errorf("%w: a teacher or a judge is one; `reprise export --hf --merge` makes it of adapters and their base model", errAdapters)
	}
	return m, nil
}

// takenFrom is a spec with the digests of the models beside the policy that a written spec has of the same places.
func takenFrom(t, written spec.Train) spec.Train {
	same := func(a, b *spec.Frozen) bool { return a != nil && b != nil && a.From == b.From && a.Model == "" }
	if same(t.Teacher.Apart(), written.Teacher.Apart()) {
		t.Teacher = written.Teacher
	}
	if of := written.JudgeModel(); same(t.JudgeModel(), of) {
		t = t.WithJudgeModel(*of)
	}
	return t
}

// besidePolicy is a model beside the policy as a manifest names it; nil for nil.
func (h *Host) besidePolicy(ctx context.Context, of *spec.Frozen) (*store.ModelRef, error) {
	if of == nil {
		return nil, nil
	}
	_, m, err := run.FindModel(ctx, h.Store, of.Model)
	if err != nil {
		return nil, err
	}
	m.Name = of.From
	return &m, nil
}

// importVersion copies the policy of a run's snapshot to the models of the store, so that it lasts as long as whoever learns
// from it or is judged by it. Version 0 is a model there already.
func (h *Host) importVersion(ctx context.Context, of spec.Origin) (store.Ref, error) {
	if err := store.RefuseRemoved(ctx, h.Store, of.Name); err != nil {
		return store.Ref{}, err
	}
	version := &of.Version
	if of.Version <= 0 {
		version = nil
	}
	head, err := run.FindHead(ctx, h.Store, of.Name, version)
	if err != nil {
		return store.Ref{}, err
	}
	if head == nil {
		return store.Ref{}, fmt.Errorf("run %q has committed nothing in %s: %w", of.Name, h.Store.Location(store.RunsDir), activities.ErrNotFound)
	}
	if of.Version == 0 {
		return head.Base, nil
	}
	found, err := store.FindRebuild(ctx, h.Store, head.Manifest, nil)
	if err != nil {
		return store.Ref{}, err
	}
	there := 0
	if found.Snapshot != nil {
		there = found.Snapshot.Version
	}
	if of.Version > 0 && there != of.Version || there == 0 {
		return store.Ref{}, fmt.Errorf("version %d of run %q has no snapshot; the newest before it is that of version %d: %w",
			max(of.Version, head.Iteration+1), of.Name, there, activities.ErrNotFound)
	}
	return copyPolicy(ctx, h.Store, found.Snapshot.Files)
}

// copyPolicy stores the policy among the files of a snapshot as a model. The bytes are sent on as they are read, and checked.
func copyPolicy(ctx context.Context, s store.Store, files map[string]store.Ref) (store.Ref, error) {
	if _, adapted := files[model.AdapterConfigFile]; adapted {
		return store.Ref{}, errAdapters
	}
	folder, err := model.OpenFS(store.FS(ctx, s, files, nil))
	if err != nil {
		return store.Ref{}, run.ModelError(err)
	}
	names := append(slices.Clone(run.SmallFiles), append(folder.WeightFiles(), model.WeightsIndex)...)
	copied := map[string]store.Ref{}
	for _, name := range names {
		if ref, there := files[name]; there {
			copied[name] = ref
		}
	}
	m := store.ModelRef{Digest: store.FolderDigest(copied), Files: copied}
	m.Dir = store.ModelPrefix + store.ShortDigest(m.Digest)
	for _, name := range run.SortedKeys(copied) {
		from, to := copied[name], copied[name]
		to.Key = m.Dir + "/" + name
		open := func() io.Reader {
			return &lazily{open: func() (io.ReadCloser, error) { return store.OpenArtifact(ctx, s, from) }}
		}
		if err := store.PutFolderFile(ctx, s, to, store.FolderFile{Name: name, Open: open, Size: to.Size}); err != nil {
			return store.Ref{}, err
		}
		copied[name] = to
	}
	return run.PutIndex(ctx, s, m)
}

// lazily opens what it reads at the first read, and closes it at its end.
type lazily struct {
	open func() (io.ReadCloser, error)
	body io.ReadCloser
	err  error
}

// Read implements io.Reader.
func (l *lazily) Read(p []byte) (n int, err error) {
	if l.err == nil && l.body == nil {
		l.body, l.err = l.open()
	}
	if l.err != nil {
		return 0, l.err
	}
	if n, l.err = l.body.Read(p); l.err != nil {
		l.body.Close()
	}
	return n, l.err
}
