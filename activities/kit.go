package activities

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	_ "github.com/reprise-rl/reprise/envs/all" // registers them
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/tokenizer"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// runContext is what the steps of one run share: its resolved spec, its task and its
// suites' tasks, and its base model. It is read from the store once and never
// changes.
type runContext struct {
	train    spec.Train
	training *task
	suites   []*task
	*baseModel
}

// baseModel is a base model's configuration and tokenizer, which its runs share.
type baseModel struct {
	config    model.Config
	tokenizer *tokenizer.Tokenizer
	legal     []bool // ids of the model's vocabulary that the tokenizer has
}

// runContexts caches run contexts by the digests of spec and base model.
type runContexts struct {
	mu       sync.Mutex
	contexts recent[*runContext]
	models   recent[*baseModel]
}

const (
	// maxRunContexts is how many runs and evaluations a worker remembers: a sweep's trials
	// have a spec each.
	maxRunContexts = 256
	// maxBaseModels is how many base models it remembers: a tokenizer of 150,000 pieces is tens of MB.
	maxBaseModels = 8
)

// read gives the context of a run.
func (c *runContexts) read(ctx context.Context, s store.Store, run Run) (*runContext, error) {
	key := run.Spec.Digest + run.Base.Digest
	c.mu.Lock()
	defer c.mu.Unlock()
	c.contexts.most, c.models.most = maxRunContexts, maxBaseModels
	if rc, ok := c.contexts.get(key); ok {
		return rc, nil
	}
	t, err := readSpec(ctx, s, run.Spec)
	if err != nil {
		return nil, err
	}
	w, ok := c.models.get(run.Base.Digest)
	if !ok {
		base, err := readIndex(ctx, s, run.Base)
		if err != nil {
			return nil, err
		}
		files, err := modelFiles(ctx, s, smallRefs(base))
		if err != nil {
			return nil, fmt.Errorf("base model of run %s: %w", run.ID, err)
		}
		if w, err = newBaseModel(files); err != nil {
			return nil, fmt.Errorf("base model of run %s: %w", run.ID, err)
		}
		c.models.put(run.Base.Digest, w)
	}
	rc, err := newRunContext(t, w)
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", run.ID, err)
	}
	c.contexts.put(key, rc)
	return rc, nil
}

// len is how many run contexts are remembered.
func (c *runContexts) len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.contexts.values)
}

// newRunContext makes a run context from a resolved spec and its base model.
func newRunContext(t spec.Train, w *baseModel) (*runContext, error) {
	rc := &runContext{train: t, baseModel: w}
	var err error
	if rc.training, err = trainingTask(t); err != nil {
		return nil, err
	}
	for _, suite := range t.Evaluation.Suites {
		s, err := suiteTask(suite)
		if err != nil {
			return nil, err
		}
		rc.suites = append(rc.suites, s)
	}
	return rc, nil
}

// newBaseModel reads a model's small files.
func newBaseModel(files map[string][]byte) (*baseModel, error) {
	w := &baseModel{}
	var err error
	if w.config, err = model.ParseConfig(files["config.json"]); err != nil {
		return nil, fmt.Errorf("config.json: %w: %w", err, ErrModelInvalid)
	}
	if w.tokenizer, err = tokenizer.Load(files); err != nil {
		return nil, fmt.Errorf("tokenizer: %w: %w", err, ErrModelInvalid)
	}
	if w.legal, err = w.tokenizer.Legal(w.config.VocabSize); err != nil {
		return nil, fmt.Errorf("tokenizer: %w: %w", err, ErrModelInvalid)
	}
	return w, nil
}

// readSpec reads a run's resolved spec.
func readSpec(ctx context.Context, s store.Store, ref store.Ref) (spec.Train, error) {
	b, err := store.GetArtifact(ctx, s, ref)
	if err != nil {
		return spec.Train{}, fmt.Errorf("resolved spec: %w", err)
	}
	var t spec.Train
	if err := json.Unmarshal(b, &t); err != nil {
		return spec.Train{}, fmt.Errorf("resolved spec %s: %w", ref.Key, err)
	}
	return t, nil
}

// writtenSpec reads a run's spec.json, nil where there is none.
func writtenSpec(ctx context.Context, s store.Store, run string) (*spec.Train, store.Ref, error) {
	b, ref, err := store.ReadFixed(ctx, s, store.SpecKey(run), spec.MaxBytes)
	if errors.Is(err, store.ErrNotFound) {
		return nil, ref, nil
	}
	if err != nil {
		return nil, ref, err
	}
	var t spec.Train
	if err := json.Unmarshal(b, &t); err != nil {
		return nil, ref, fmt.Errorf("%s: %w", s.Location(ref.Key), err)
	}
	return &t, ref, nil
}
