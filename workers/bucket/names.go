package bucket

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workflows/spec"
	"github.com/reprise-rl/reprise/workflows/sweep"
)

// readers is how many objects are read, or deleted, at once.
const readers = 8

// name says that something in the bucket needs a run.
type name struct {
	run string // the folder's name of the run
	by  string // what needs it, in words
	how string // how to do without it
}

// who are the things whose names do not count: what is removed together.
type who struct {
	runs              map[string]bool // folders' names
	sweep, evaluation string
}

// namesOf finds what names a run of the given ones: a fork by its spec or by the parent of its first manifest, an evaluation,
// and a sweep as its trial or by a trial's spec. All specs of the bucket are read.
func namesOf(ctx context.Context, s store.Store, of who) ([]name, error) {
	var mu sync.Mutex
	var out []name
	found := func(run, by, how string) {
		if of.runs[run] {
			mu.Lock()
			defer mu.Unlock()
			out = append(out, name{run, by, how})
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(readers)
	for _, scan := range []struct {
		top  string
		but  func(segment string) bool
		read func(ctx context.Context, s store.Store, segment string, found func(run, by, how string)) error
	}{
		{topRuns, func(segment string) bool { return of.runs[segment] }, namesInRun},
		{topEvaluations, func(segment string) bool { return segment == of.evaluation }, namesInEvaluation},
		{topSweeps, func(segment string) bool { return segment == of.sweep }, namesInSweep},
	} {
		for segment, err := range s.Folders(ctx, scan.top+"/") {
			if err != nil {
				return nil, errors.Join(err, group.Wait())
			}
			if !scan.but(segment) {
				group.Go(func() error { return scan.read(ctx, s, segment, found) })
			}
		}
	}
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("find what names it: %w", err)
	}
	slices.SortFunc(out, func(a, b name) int { return strings.Compare(a.by+a.run, b.by+b.run) })
	return slices.Compact(out), nil
}

// fromOf is the part of a spec that names another run.
type fromOf struct {
	From struct {
		Run string `json:"run"`
	} `json:"from"`
}

func namesInRun(ctx context.Context, s store.Store, segment string, found func(run, by, how string)) error {
	dir := topRuns + "/" + segment
	id := shown(segment)
	by, how := fmt.Sprintf("run %q was forked from it", id), "reprise rm "+id
	b, ref, err := store.ReadFixed(ctx, s, dir+"/spec.json", spec.MaxBytes)
	forked := errors.Is(err, store.ErrNotFound) // then its first manifest tells
	switch {
	case forked:
	case err != nil:
		return err
	default:
		var t fromOf
		if err := json.Unmarshal(b, &t); err != nil {
			return fmt.Errorf("read %s: %w: %w", s.Location(ref.Key), store.ErrInvalid, err)
		}
		if forked = t.From.Run != ""; forked {
			found(store.EscapeSegment(t.From.Run), by, how)
		}
	}
	if !forked {
		return nil
	}
	// The iteration that it was forked at may be of the run that the other one was forked from.
	m, err := firstOf(ctx, s, dir)
	if err != nil || m == nil || m.Parent == nil {
		return err
	}
	found(placeOf(m.Parent.Key).segment, by, how)
	return nil
}

// firstOf is the first manifest of a run's first branch; nil if nothing is committed.
func firstOf(ctx context.Context, s store.Store, dir string) (*store.Manifest, error) {
	iterations := dir + "/b0/iterations/"
	for number, err := range s.Folders(ctx, iterations) {
		if err != nil {
			return nil, err
		}
		b, ref, err := store.ReadFixed(ctx, s, iterations+number+"/manifest.json", store.MaxManifest)
		if errors.Is(err, store.ErrNotFound) {
			return nil, nil // it has begun
		}
		if err != nil {
			return nil, err
		}
		m, err := store.DecodeManifest(b)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", s.Location(ref.Key), err)
		}
		return m, nil
	}
	return nil, nil
}

func namesInEvaluation(ctx context.Context, s store.Store, segment string, found func(run, by, how string)) error {
	for o, err := range s.List(ctx, topEvaluations+"/"+segment+"/"+store.MeasuredName+".") {
		if err != nil {
			return err
		}
		b, ref, err := store.ReadFixed(ctx, s, o.Key, spec.MaxBytes)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		var m store.Measured
		if err := json.Unmarshal(b, &m); err != nil {
			return fmt.Errorf("read %s: %w: %w", s.Location(ref.Key), store.ErrInvalid, err)
		}
		found(store.EscapeSegment(m.Run), fmt.Sprintf("evaluation %q measures it", shown(segment)), "reprise rm "+shown(segment))
	}
	return nil
}

func namesInSweep(ctx context.Context, s store.Store, segment string, found func(run, by, how string)) error {
	definitions, err := definitionsOf(ctx, s, segment)
	if err != nil {
		return err
	}
	for _, d := range definitions {
		how := "reprise rm " + d.Sweep + ", which removes its trials too"
		for _, t := range d.Trials {
			found(store.EscapeSegment(sweep.ID(d.Sweep, t.Label)), fmt.Sprintf("it is a trial of sweep %q", d.Sweep), how)
			var of fromOf
			if len(t.Spec) > 0 {
				if err := json.Unmarshal(t.Spec, &of); err != nil {
					return fmt.Errorf("spec of trial %s of sweep %s: %w: %w", t.Label, d.Sweep, store.ErrInvalid, err)
				}
			}
			if of.From.Run != "" {
				found(store.EscapeSegment(of.From.Run), fmt.Sprintf("trials of sweep %q are forked from it", d.Sweep), how)
			}
		}
	}
	return nil
}

// shown is the id of a folder for people: its name, if that is shortened.
func shown(segment string) string {
	if id, ok := store.UnescapeSegment(segment); ok {
		return id
	}
	return segment
}
