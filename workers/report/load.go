package report

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"golang.org/x/sync/errgroup"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/workers/report/episodes"
	"github.com/reprise-rl/reprise/workflows/collapse"
)

// streams is how many objects are read at once.
const streams = 8

// maxSpec bounds a stored spec, in bytes.
const maxSpec = 8 << 20

// Load reads a run: manifests, telemetry and spec, no tables. The error says why the
// store could not be read, or is [store.ErrNotFound] if it has nothing of the run;
// [Run.Missing] lists what is gone or damaged.
func Load(ctx context.Context, s store.Store, run string) (*Run, error) {
	r, err := load(ctx, s, run)
	if err != nil {
		return nil, fmt.Errorf("read run %q: %w", run, err)
	}
	return r, nil
}

func load(ctx context.Context, s store.Store, run string) (*Run, error) {
	r := &Run{ID: run, Location: s.Location(store.RunDir(run))}
	if err := r.readSpec(ctx, s); err != nil {
		return nil, err
	}
	numbers, err := store.Branches(ctx, s, run)
	if err != nil {
		return nil, err
	}
	if r.SpecText == nil && len(numbers) == 0 {
		return nil, &store.Error{Op: "read", Where: r.Location, Kind: store.ErrNotFound, Detail: "nothing is stored of it", Hint: "check the run's id and the store's prefix"}
	}
	for _, n := range numbers {
		b, err := r.readBranch(ctx, s, n)
		if err != nil {
			return nil, err
		}
		if len(b.Iterations) > 0 {
			r.Branches = append(r.Branches, b)
		} else if len(b.Uncommitted) > 0 {
			r.lacks(Missing{What: fmt.Sprintf("branch %d", n), Why: "begun, and nothing of it is committed"})
		}
	}
	if err := r.readNewestSpec(ctx, s); err != nil {
		return nil, err
	}
	r.fork()
	r.smooth()
	if err := r.findMissing(ctx, s); err != nil {
		return nil, err
	}
	return r, nil
}

func (r *Run) lacks(m Missing) { r.Missing = append(r.Missing, m) }

func (r *Run) readSpec(ctx context.Context, s store.Store) error {
	return r.readSpecAt(ctx, s, store.SpecKey(r.ID))
}

// readNewestSpec reads the spec of the newest branch, where it took a description of the environment after the run's start.
func (r *Run) readNewestSpec(ctx context.Context, s store.Store) error {
	if len(r.Branches) == 0 {
		return nil
	}
	iterations := r.Branches[len(r.Branches)-1].Iterations
	if key := iterations[len(iterations)-1].Manifest.Spec.Key; key != store.SpecKey(r.ID) {
		return r.readSpecAt(ctx, s, key)
	}
	return nil
}

func (r *Run) readSpecAt(ctx context.Context, s store.Store, key string) error {
	b, ref, err := store.ReadFixed(ctx, s, key, maxSpec)
	switch {
	case errors.Is(err, store.ErrNotFound):
		r.lacks(Missing{What: "resolved spec", Why: "missing", Key: key})
		return nil
	case err != nil:
		return err
	}
	if !json.Valid(b) {
		r.lacks(Missing{What: "resolved spec", Why: "no JSON", Key: ref.Key})
		return nil
	}
	r.SpecText = b
	// A newer program's spec has fields that this one does not know.
	if err := json.Unmarshal(b, &r.Spec); err != nil {
		r.lacks(Missing{What: "parts of the resolved spec", Why: err.Error(), Key: ref.Key})
	}
	return nil
}

// readBranch reads a branch's manifests and telemetry.
func (r *Run) readBranch(ctx context.Context, s store.Store, branch int) (Branch, error) {
	b := Branch{Number: branch, Kept: -1}
	numbers, err := store.Iterations(ctx, s, r.ID, branch)
	if err != nil {
		return b, err
	}
	read := make([]Iteration, len(numbers))
	why := make([]error, len(numbers))
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(streams)
	for i, n := range numbers {
		group.Go(func() error {
			read[i], why[i] = readIteration(groupCtx, s, r.ID, branch, n)
			if why[i] != nil && !episodes.Tolerable(why[i]) {
				return why[i]
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return b, err
	}
	last := -1
	for i := range numbers {
		if why[i] == nil || !errors.Is(why[i], store.ErrNotFound) {
			last = i
		}
	}
	for i, n := range numbers {
		switch {
		case why[i] == nil:
			b.Iterations = append(b.Iterations, read[i])
		case i > last:
			b.Uncommitted = append(b.Uncommitted, n)
		default:
			r.lacks(Missing{What: fmt.Sprintf("iteration %d of branch %d", n, branch), Why: reason(why[i]), Count: 1, Key: store.ManifestKey(r.ID, branch, n)})
		}
	}
	if len(b.Iterations) > 0 {
		b.Opened = opened(b.Iterations[0].Manifest)
	}
	return b, nil
}

// readIteration reads a manifest and the objects beside it. Telemetry is outside the
// chain: a problem in it is not damage.
func readIteration(ctx context.Context, s store.Store, of string, branch, n int) (Iteration, error) {
	m, ref, err := store.ReadManifestAt(ctx, s, of, branch, n)
	if err != nil {
		return Iteration{}, err
	}
	it := Iteration{Link: store.Link{Ref: ref, Manifest: m}}
	if m.Detected != nil {
		var d activities.Detected
		if json.Unmarshal(m.Detected, &d) == nil {
			it.Detected = &d
		}
	}
	t, err := run.ReadTelemetry(ctx, s, of, branch, n)
	if err == nil {
		it.Telemetry = &t
	} else if ctx.Err() != nil || errors.Is(err, store.ErrUnavailable) {
		return Iteration{}, err
	}
	return it, nil
}

func opened(m *store.Manifest) *activities.Opened {
	if m.Opened == nil {
		return nil
	}
	var o activities.Opened
	if json.Unmarshal(m.Opened, &o) != nil {
		return nil
	}
	return &o
}

// reason is the kind of an error in words.
func reason(err error) string {
	for _, kind := range []error{store.ErrNotFound, store.ErrAltered, store.ErrInvalid, store.ErrTooLarge} {
		if errors.Is(err, kind) {
			return kind.Error()
		}
	}
	return err.Error()
}

// fork finds where each branch begins and how much of each one the newest version
// goes back to.
func (r *Run) fork() {
	for i := range r.Branches {
		b := &r.Branches[i]
		first := b.Iterations[0].Manifest
		if first.Parent == nil {
			continue
		}
		b.Fork = r.place(*first.Parent, first)
	}
	for i := len(r.Branches) - 1; i >= 0; {
		b := &r.Branches[i]
		if b.Kept < 0 {
			b.Kept = b.Iterations[len(b.Iterations)-1].Manifest.Iteration
		}
		next := -1
		for k := range i {
			if f := b.Fork; f != nil && f.Run == "" && r.Branches[k].Number == f.Branch {
				next, r.Branches[k].Kept = k, f.Iteration
			}
		}
		i = next
	}
}

// place says which iteration a parent's ref names. A ref to the branch itself, whose
// manifest is missing, is not a fork.
func (r *Run) place(parent store.Ref, child *store.Manifest) *Place {
	n := child.Iteration - 1
	for branch := child.Branch; branch >= 0; branch-- {
		if parent.Key == store.ManifestKey(r.ID, branch, n) {
			if branch == child.Branch {
				return nil
			}
			return &Place{Branch: branch, Iteration: n}
		}
	}
	return &Place{Run: parent.Key, Iteration: n}
}

// smooth adds the moving averages, along the branches.
func (r *Run) smooth() {
	decay := r.Spec.Collapse.Decay
	if decay <= 0 || decay >= 1 {
		decay = collapse.DefaultDecay
	}
	after := map[Place]averages{}
	for i := range r.Branches {
		b := &r.Branches[i]
		var before averages
		if b.Fork != nil {
			before = after[*b.Fork]
		}
		for k := range b.Iterations {
			it := &b.Iterations[k]
			before = before.with(it.Manifest.Metrics, decay)
			after[Place{Branch: b.Number, Iteration: it.Manifest.Iteration}] = before
			it.Smoothed = before.metrics()
		}
	}
}

// average is a moving average whose weights sum to 1 from the first value on: a curve of
// a few iterations does not hang on its first value.
type average struct{ sum, weight float64 }

// averages are by metric.
type averages map[string]average

// with returns the averages after an iteration. A value that is missing or not finite
// leaves its average as it is.
func (a averages) with(raw activities.Metrics, decay float64) averages {
	out := maps.Clone(a)
	if out == nil {
		out = make(averages, len(raw))
	}
	for _, name := range metricNames(raw) {
		if v := raw[name]; v.Finite() {
			before := out[name]
			out[name] = average{sum: decay*before.sum + (1-decay)*float64(v), weight: decay*before.weight + (1 - decay)}
		}
	}
	return out
}

func (a averages) metrics() activities.Metrics {
	out := make(activities.Metrics, len(a))
	for name, v := range a {
		out[name] = canon.Float(v.sum / v.weight)
	}
	return out
}
