package host

import (
	"context"
	"fmt"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/envs/starter"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/cost"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// flags are this worker's, for the run's model; nil where it has none. base is the model,
// if it is imported; otherwise the starter is made later.
func (h *Host) flags(ctx context.Context, t spec.Train, base store.Ref, imported bool) (*activities.Flags, error) {
	if h.Flags.SessionHeartbeat == 0 {
		return nil, nil
	}
	shape, err := h.shape(ctx, t, base, imported)
	if err != nil {
		return nil, err
	}
	return new(h.Flags.ForModel(shape.Parameters())), nil
}

// shape is what the sizes of the run's model depend on.
func (h *Host) shape(ctx context.Context, t spec.Train, base store.Ref, imported bool) (cost.Network, error) {
	if !imported {
		return t.Policy.Starter.Shape(starter.Vocabulary(t.Policy.Starter.Tokenizer).Size()), nil
	}
	m, err := run.ReadIndex(ctx, h.Store, base)
	if err != nil {
		return cost.Network{}, err
	}
	ref, ok := m.Files[model.ConfigFile]
	if !ok {
		return cost.Network{}, fmt.Errorf("model %s has no %s: %w", m.Dir, model.ConfigFile, activities.ErrModelInvalid)
	}
	b, err := store.GetArtifact(ctx, h.Store, ref)
	if err != nil {
		return cost.Network{}, fmt.Errorf("model file %s: %w", model.ConfigFile, err)
	}
	c, err := model.ParseConfig(b)
	if err != nil {
		return cost.Network{}, err
	}
	return run.ShapeOf(c), nil
}
