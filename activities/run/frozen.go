package run

import (
	"context"
	"fmt"

	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model/tokenizer"
	"github.com/reprise-rl/reprise/model/tokenizer/chat"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// Frozen is a model beside a run's policy that is not trained: its teacher or its judge.
type Frozen struct {
	*BaseModel
	// Index is the model's in the store, and Files are its files.
	Index store.Ref
	Files map[string]store.Ref
}

// frozen gives a run's context its teacher and the model that judges, and their shapes to its spec.
func (c *Contexts) frozen(ctx context.Context, s store.Store, rc *Context) error {
	t := &rc.Train
	if of := t.Teacher.Apart(); of != nil {
		teacher, err := c.findFrozen(ctx, s, *of)
		if err != nil {
			return fmt.Errorf("teacher: %w", err)
		}
		rc.Teacher, t.Teacher = teacher, spec.TeacherOf(WithShape(*of, teacher.BaseModel))
	}
	if of := t.JudgeModel(); of != nil {
		judge, err := c.findFrozen(ctx, s, *of)
		if err != nil {
			return fmt.Errorf("judge: %w", err)
		}
		rc.JudgeModel, *t = judge, t.WithJudgeModel(WithShape(*of, judge.BaseModel))
	}
	return nil
}

// findFrozen finds a model that a resolved spec names.
func (c *Contexts) findFrozen(ctx context.Context, s store.Store, of spec.Frozen) (*Frozen, error) {
	index, m, err := FindModel(ctx, s, of.Model)
	if err != nil {
		return nil, err
	}
	w, err := c.model(ctx, s, index)
	if err != nil {
		return nil, err
	}
	return &Frozen{BaseModel: w, Index: index, Files: m.Files}, nil
}

// WithShape is a model that a spec names with its shape.
func WithShape(f spec.Frozen, w *BaseModel) spec.Frozen {
	shape := ShapeOf(w.Config)
	f.Network = &shape
	return f
}

// FindModel finds a model in the store by the digest of its folder: its index, and what the index says. The digests of the files
// are checked against the folder's, so that nothing but the store's names of them is taken on trust.
func FindModel(ctx context.Context, s store.Store, digest string) (store.Ref, store.ModelRef, error) {
	prefix := store.ModelPrefix + store.ShortDigest(digest) + "/index."
	for o, err := range s.List(ctx, prefix) {
		if err != nil {
			return store.Ref{}, store.ModelRef{}, err
		}
		_, ref, err := store.ReadFixed(ctx, s, o.Key, maxIndex)
		if err != nil {
			return store.Ref{}, store.ModelRef{}, err
		}
		m, err := ReadIndex(ctx, s, ref)
		if err != nil {
			return store.Ref{}, store.ModelRef{}, err
		}
		if store.FolderDigest(m.Files) == digest {
			return ref, m, nil
		}
	}
	return store.Ref{}, store.ModelRef{}, fmt.Errorf("no model %s in %s: %w", digest, s.Location(store.ModelPrefix), store.ErrNotFound)
}

// maxIndex is the most bytes of a model's index.
const maxIndex = 1 << 20

// CannotJudge is the problem of a model that cannot be asked, because its chat template renders no question; nil if there is none.
func CannotJudge(t spec.Train, of *tokenizer.Tokenizer) error {
	_, err := of.EncodeChat([]chat.Message{{Role: "user", Content: "?"}}, true)
	if err == nil {
		return nil
	}
	return spec.Problems{{
		Path: "rewards", Found: fmt.Sprintf("the judge %s, which cannot be asked: %v", t.JudgeModel().From, err),
		Allowed: "a model with a chat template for a user's message",
	}}
}

// OtherVocabulary is the problem of a teacher whose tokens are not the policy's: what a policy has sampled is scored by its ids.
// It is nil if there is none.
func OtherVocabulary(t spec.Train, policy, teacher *tokenizer.Tokenizer) error {
	differs := policy.Differs(teacher)
	if differs == "" {
		return nil
	}
	return spec.Problems{{
		Path: "teacher.from", Found: fmt.Sprintf("%s, a model with another vocabulary than the policy's: %s", t.Teacher.From, differs),
		Allowed: "a model whose tokenizer has the policy's tokens under the same ids",
	}}
}
