package activities

import (
	"context"
	"errors"
	"fmt"

	"github.com/reprise-rl/reprise/infra/store"
)

// Prepare compiles the programs of a run that others compute, if the device is
// free now; it says whether there was anything to compile. The policy in memory
// stays. A run that has committed nothing yet has no base model to go by.
func (e *Engine) Prepare(ctx context.Context, d *Device, run string) (compiled bool, err error) {
	host := Host{Store: d.Store}
	_, spec, err := host.writtenSpec(ctx, run)
	if err != nil {
		return false, err
	}
	newest, err := store.Head(ctx, d.Store, run)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	base, err := putIndex(ctx, d.Store, newest.Manifest.Base)
	if err != nil {
		return false, err
	}
	r := Run{ID: run, Spec: spec, Base: base}
	k, err := d.kits.read(ctx, d.Store, r)
	if err != nil {
		return false, err
	}
	select {
	case <-e.lease:
		defer func() { e.lease <- struct{}{} }()
	default:
		return false, nil // somebody computes
	}
	if e.draining.Load() {
		return false, nil
	}
	had := len(e.programs)
	all, err := e.all(k, r)
	if err != nil {
		return false, err
	}
	if len(e.programs) == had {
		return false, nil
	}
	for _, p := range all {
		if err := p.programs.Compile(ctx, nil); err != nil {
			return compiled, fmt.Errorf("compile the programs of run %s, %s: %w", run, p.name, err)
		}
		compiled = true
	}
	return compiled, nil
}
