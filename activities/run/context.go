// Package run has the code that the steps of a run share: the run's context (its spec,
// its tasks and its base model), the rows of its tables, the batch on its way from a
// rollout to an update, metrics, telemetry, and the errors of activities.
package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sync/singleflight"

	"github.com/reprise-rl/reprise/activities"
	_ "github.com/reprise-rl/reprise/envs/all"
	"github.com/reprise-rl/reprise/envs/rewards"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/cost"
	"github.com/reprise-rl/reprise/model/tokenizer"
	"github.com/reprise-rl/reprise/model/tokenizer/chat"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// registers them

// Context is what the steps of one run share: its resolved spec, its task and its
// suites' tasks, and its base model. It is read from the store once and never
// changes.
type Context struct {
	Train    spec.Train
	Training *Task
	Suites   []*Task
	// Modules are those of the spec's rewards, in its order.
	Modules []rewards.Module
	*BaseModel
	// Teacher and JudgeModel are nil in a run without such a model, and in a context that NewContext alone has made.
	Teacher, JudgeModel *Frozen
}

// BaseModel is a base model's configuration and tokenizer, which its runs share; in a Context,
// the configuration has the run's adapters.
type BaseModel struct {
	Config    model.Config
	Tokenizer *tokenizer.Tokenizer
	Legal     []bool // ids of the model's vocabulary that the tokenizer has
}

// Contexts caches run contexts by the digests of spec and base model. What is missing is
// read without a lock, so that a run whose bucket is slow delays no other; calls that miss
// the same one read it once.
type Contexts struct {
	mu       sync.Mutex // of what follows
	contexts recent[*Context]
	models   recent[*BaseModel]

	reading singleflight.Group
}

const (
	// maxRunContexts is how many runs and evaluations a worker remembers: a sweep's trials
	// have a spec each.
	MaxContexts = 256
	// maxBaseModels is how many base models it remembers: a tokenizer of 150,000 pieces is tens of MB.
	maxBaseModels = 8
)

// Read gives the context of a run.
func (c *Contexts) Read(ctx context.Context, s store.Store, run activities.Run) (*Context, error) {
	key := run.Spec.Digest + run.Base.Digest
	return once(ctx, c, &c.contexts, MaxContexts, "run "+key, key, func() (*Context, error) {
		t, err := ReadSpec(ctx, s, run.Spec)
		if err != nil {
			return nil, err
		}
		w, err := c.base(ctx, s, run)
		if err != nil {
			return nil, err
		}
		rc, err := NewContext(t, w)
		if err != nil {
			return nil, fmt.Errorf("run %s: %w", run.ID, err)
		}
		if err := c.frozen(ctx, s, rc); err != nil {
			return nil, fmt.Errorf("run %s: %w", run.ID, err)
		}
		return rc, nil
	})
}

// base gives the base model of a run.
func (c *Contexts) base(ctx context.Context, s store.Store, run activities.Run) (*BaseModel, error) {
	w, err := c.model(ctx, s, run.Base)
	if err != nil {
		return nil, fmt.Errorf("base model of run %s: %w", run.ID, err)
	}
	return w, nil
}

// model gives the model of an index.
func (c *Contexts) model(ctx context.Context, s store.Store, index store.Ref) (*BaseModel, error) {
	key := index.Digest
	return once(ctx, c, &c.models, maxBaseModels, "model "+key, key, func() (*BaseModel, error) {
		m, err := ReadIndex(ctx, s, index)
		if err != nil {
			return nil, err
		}
		files, err := ModelFiles(ctx, s, SmallRefs(m))
		if err != nil {
			return nil, err
		}
		return NewBaseModel(files)
	})
}

// once gives a key's value of a cache, and reads it where it is missing: one call does,
// and those that come meanwhile wait for it. flight names the value among all caches.
func once[V any](ctx context.Context, c *Contexts, cache *recent[*V], most int, flight, key string, read func() (*V, error)) (*V, error) {
	for {
		c.mu.Lock()
		cache.most = most
		v, ok := cache.get(key)
		c.mu.Unlock()
		if ok {
			return v, nil
		}
		mine := false
		got, err, _ := c.reading.Do(flight, func() (any, error) {
			mine = true
			v, err := read()
			if err == nil {
				c.mu.Lock()
				cache.put(key, v)
				c.mu.Unlock()
			}
			return v, err
		})
		switch {
		case err == nil:
			return got.(*V), nil
		case mine || ctx.Err() != nil:
			return nil, err
		case !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded):
			return nil, err
		}
		// The call that read was ended, not this one.
	}
}

// Len is how many run contexts are remembered.
func (c *Contexts) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.contexts.values)
}

// NewContext makes a run context from a resolved spec and its base model.
func NewContext(t spec.Train, w *BaseModel) (*Context, error) {
	if err := spec.SettingsOf(t).Linked(t.Rollout.Search); err != nil {
		return nil, err // not for good: a worker that has the method may read the same spec
	}
	rc := &Context{Train: t, BaseModel: w}
	tok, err := withVariables(w.Tokenizer, t)
	if err != nil {
		return nil, err
	}
	lora, err := loraOf(t.Policy)
	if err != nil {
		return nil, err
	}
	if tok != w.Tokenizer || t.Policy.LoRA != nil {
		own := *w
		own.Tokenizer, own.Config.LoRA, rc.BaseModel = tok, lora, &own
	}
	if rc.Training, err = trainingTask(t); err != nil {
		return nil, err
	}
	if err := rc.Training.bind(rc.Tokenizer, t.Environment); err != nil {
		return nil, err
	}
	if rc.Modules, err = newModules(t); err != nil {
		return nil, err
	}
	for _, suite := range t.Evaluation.Suites {
		s, err := suiteTask(suite)
		if err != nil {
			return nil, err
		}
		if err := s.bind(rc.Tokenizer, suite.Environment); err != nil {
			return nil, fmt.Errorf("suite %s: %w", suite.Name, err)
		}
		rc.Suites = append(rc.Suites, s)
	}
	return rc, nil
}

// withVariables is a model's tokenizer with the variables that a spec gives to its chat
// template.
func withVariables(tok *tokenizer.Tokenizer, t spec.Train) (*tokenizer.Tokenizer, error) {
	v, err := chat.ParseVariables(t.Policy.ChatTemplateKwargs)
	if err == nil {
		tok, err = tok.With(v)
	}
	if err != nil {
		return nil, fmt.Errorf("policy.chat_template_kwargs: %w", err)
	}
	return tok, nil
}

// Rewrites reports how the chat template of a model's files, with a spec's variables, renders
// an earlier turn in another way than the context keeps it; nil if it does not. said is what
// is sampled in the probe.
func Rewrites(t spec.Train, files map[string][]byte, said string) (*tokenizer.Rewritten, error) {
	tok, err := tokenizer.Load(files)
	if err == nil {
		tok, err = withVariables(tok, t)
	}
	if err != nil {
		return nil, err
	}
	return tok.Rewrites(said)
}

// NewBaseModel reads a model's small files.
func NewBaseModel(files map[string][]byte) (*BaseModel, error) {
	w := &BaseModel{}
	var err error
	if w.Config, err = model.ParseConfig(files["config.json"]); err != nil {
		return nil, fmt.Errorf("config.json: %w: %w", err, activities.ErrModelInvalid)
	}
	if w.Tokenizer, err = tokenizer.Load(files); err != nil {
		return nil, fmt.Errorf("tokenizer: %w: %w", err, activities.ErrModelInvalid)
	}
	if w.Legal, err = w.Tokenizer.Legal(w.Config.VocabSize); err != nil {
		return nil, fmt.Errorf("tokenizer: %w: %w", err, activities.ErrModelInvalid)
	}
	return w, nil
}

// ShapeOf is what the sizes that follow from a spec depend on.
func ShapeOf(c model.Config) cost.Network {
	return cost.Network{
		Layers: c.Layers, HiddenSize: c.HiddenSize, IntermediateSize: c.IntermediateSize,
		Heads: c.Heads, KVHeads: c.KVHeads, HeadDim: c.HeadDim, VocabSize: c.VocabSize, Tied: c.TieEmbeddings,
		Unbiased: c.Family != model.Qwen2, HeadNorms: c.Family == model.Qwen3,
	}
}

// ReadSpec reads a run's resolved spec.
func ReadSpec(ctx context.Context, s store.Store, ref store.Ref) (spec.Train, error) {
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

// WrittenSpec reads a run's spec.json, nil if there is none.
func WrittenSpec(ctx context.Context, s store.Store, run string) (*spec.Train, store.Ref, error) {
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
