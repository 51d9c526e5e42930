package run

import (
	"context"
	"fmt"

	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model/tokenizer"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// Teacher is the model that scores a run's rows and is not trained.
type Teacher struct {
	*BaseModel
	// Index is the model's in the store, and Files are its files.
	Index store.Ref
	Files map[string]store.Ref
}

// teach gives a run's context its teacher, and the teacher's shape to its spec.
func (c *Contexts) teach(ctx context.Context, s store.Store, rc *Context) error {
	index, m, err := FindModel(ctx, s, rc.Train.Teacher.Model)
	if err != nil {
		return err
	}
	w, err := c.model(ctx, s, index)
	if err != nil {
		return err
	}
	rc.Teacher = &Teacher{BaseModel: w, Index: index, Files: m.Files}
	rc.Train.Teacher = WithShape(rc.Train.Teacher, w)
	return nil
}

// WithShape is a spec's teacher with the shape of its model.
func WithShape(t *spec.Teacher, w *BaseModel) *spec.Teacher {
	shaped, shape := *t, ShapeOf(w.Config)
	shaped.Network = &shape
	return &shaped
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
