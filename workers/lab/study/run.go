package study

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/reprise-rl/reprise/activities/device"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workers/train"
)

// Runner makes runs in this process and in memory, one after the other: what Train
// workflows would compute, bit for bit. Runs that begin with the same starter share
// its warm start.
type Runner struct {
	engine *device.Engine
	models *store.Memory
}

// NewRunner makes a runner on an engine.
func NewRunner(engine *device.Engine) *Runner {
	return &Runner{engine: engine, models: store.NewMemory()}
}

// Run makes one run of a setting. text is the run's spec, made from the setting's
// preset and fields.
func (r *Runner) Run(ctx context.Context, s Setting, size Size, seed uint64, text []byte) (Record, error) {
	out := Record{Setting: s.Name(), Seed: seed, Size: size, Fingerprint: r.engine.Info().Fingerprint, Events: []Event{}}
	var err error
	if out.Spec, err = SpecDigest(text); err != nil {
		return out, err
	}
	memory := store.NewOverlay(r.models)
	trained, err := train.New(r.engine, memory).Train(ctx, out.Name(), text)
	if err != nil {
		return out, fmt.Errorf("run %s: %w", out.Name(), err)
	}
	for n := range trained.Iterations {
		m, _, err := store.ReadManifestAt(ctx, memory, out.Name(), 0, n)
		if err != nil {
			return out, fmt.Errorf("run %s: %w", out.Name(), err)
		}
		if err := out.add(m); err != nil {
			return out, fmt.Errorf("run %s: %w", out.Name(), err)
		}
	}
	if err := KeepModels(ctx, r.models, memory); err != nil {
		return out, fmt.Errorf("run %s: %w", out.Name(), err)
	}
	return out, nil
}

// KeepModels makes a run's starters available to later runs: it puts the models of a run's own objects
// into the memory that runs share.
func KeepModels(ctx context.Context, shared, own *store.Memory) error {
	for _, o := range own.Own() {
		if !strings.HasPrefix(o.Key, store.ModelPrefix) {
			continue
		}
		b, _, err := store.ReadFixed(ctx, own, o.Key, o.Size)
		if err != nil {
			return fmt.Errorf("keep the starter: %w", err)
		}
		if err := shared.Put(ctx, o.Key, b, store.PutOptions{IfAbsent: true}); err != nil && !errors.Is(err, store.ErrExists) {
			return fmt.Errorf("keep the starter: %w", err)
		}
	}
	return nil
}
