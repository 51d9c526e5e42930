package bucket

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/reprise-rl/reprise/infra/store"
)

// Removal is what removing a run, a sweep with its trials, or an evaluation deletes, and what is against it.
type Removal struct {
	// Usage is what there is, with the marker of a removal that was begun.
	Usage
	// Uploads are multipart uploads that never ended.
	Uploads int `json:"uploads"`
	// Refused are the reasons why it stays, with what to do about each; none if it may go.
	Refused []string `json:"refused,omitempty"`
	// Begun is the marker of an earlier removal, which did not end if there are objects left.
	Begun *store.Removed `json:"begun,omitempty"`
	// Models are the base models that nothing else in the bucket needs then. They stay.
	Models []string `json:"models,omitempty"`

	parts []part
}

// part is a folder that is removed.
type part struct {
	dir, what, id string
	size          Size
	marked        bool
	marker        Size // what the marker of an earlier removal takes
	heads         []store.RemovedHead
}

// Dir is the folder in which the marker stays.
func (r Removal) Dir() string { return dirOf(r.What, r.ID) }

// Left is how much there is to delete: all but the markers.
func (r Removal) Left() Size {
	left := r.Size
	for _, p := range r.parts {
		left.Objects, left.Bytes = left.Objects-p.marker.Objects, left.Bytes-p.marker.Bytes
	}
	return left
}

// Open asks which of some workflows are open.
type Open func(ctx context.Context, ids []string) ([]string, error)

// PlanRemoval looks at what has an id. open is nil if a person says that nobody works on it.
func PlanRemoval(ctx context.Context, s store.Store, id string, open Open, progress Progress) (Removal, error) {
	found, err := Measure(ctx, s, []string{id}, progress)
	if err != nil {
		return Removal{}, err
	}
	if len(found) > 1 {
		// A run, a sweep and an evaluation have one workflow id at different times only; each is looked at by itself.
		found = slices.DeleteFunc(found, func(u Usage) bool { return u.Removed && len(u.Kinds) == 1 && u.Objects == 1 })
	}
	if len(found) > 1 {
		return Removal{}, fmt.Errorf("%q is a %s and a %s in this bucket: nothing tells which one is meant", id, found[0].What, found[1].What)
	}
	r := Removal{Usage: found[0]}
	for _, u := range append(slices.Clone(r.Trials), r.Usage) { // the sweep's own last: it tells the trials
		if err := r.part(ctx, s, u); err != nil {
			return r, err
		}
	}
	if r.Refused, err = r.against(ctx, s, open); err != nil {
		return r, err
	}
	if r.What != OfEvaluation {
		r.Models, err = modelsOf(ctx, s, r.who())
	}
	return r, err
}

// dirOf is the folder of a run, a sweep or an evaluation.
func dirOf(what, id string) string {
	switch what {
	case OfSweep:
		return store.SweepDir(id)
	case OfEvaluation:
		return store.ApartDir(id)
	}
	return store.RunDir(id)
}

func (r *Removal) part(ctx context.Context, s store.Store, u Usage) error {
	p := part{dir: dirOf(u.What, u.ID), what: u.What, id: u.ID, size: u.Size}
	for _, t := range u.Trials {
		p.size.Objects, p.size.Bytes = p.size.Objects-t.Objects, p.size.Bytes-t.Bytes
	}
	marker, err := store.ReadRemoved(ctx, s, p.dir)
	if err != nil {
		return err
	}
	if p.marked = marker != nil; p.marked {
		o, err := s.Stat(ctx, store.RemovedKey(p.dir))
		if err != nil {
			return err
		}
		p.marker = Size{Objects: 1, Bytes: o.Size}
	}
	if u.What == r.What {
		r.Begun = marker
	}
	for _, err := range s.Uploads(ctx, p.dir+"/") {
		if err != nil {
			return err
		}
		r.Uploads++
	}
	if u.What == OfRun && !p.marked {
		if p.heads, err = headsOf(ctx, s, u.ID); err != nil {
			return err
		}
	}
	r.parts = append(r.parts, p)
	return nil
}

// headsOf are the newest commits of a run's branches. A damaged one is left out: a damaged run may be removed.
func headsOf(ctx context.Context, s store.Store, run string) ([]store.RemovedHead, error) {
	branches, err := store.Branches(ctx, s, run)
	if err != nil {
		return nil, err
	}
	var out []store.RemovedHead
	for _, branch := range branches {
		head, err := store.HeadOf(ctx, s, run, branch)
		if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrInvalid) || errors.Is(err, store.ErrTooLarge) {
			continue
		}
		if err != nil {
			return nil, err
		}
		m := head.Manifest
		out = append(out, store.RemovedHead{Branch: branch, Iteration: m.Iteration, Manifest: head.Ref.Digest, State: m.StateAfter})
	}
	return out, nil
}

func (r *Removal) who() who {
	w := who{runs: map[string]bool{}}
	for _, p := range r.parts {
		segment := store.EscapeSegment(p.id)
		switch p.what {
		case OfRun:
			w.runs[segment] = true
		case OfSweep:
			w.sweep = segment
		case OfEvaluation:
			w.evaluation = segment
		}
	}
	return w
}

// against are the reasons why the parts stay.
func (r *Removal) against(ctx context.Context, s store.Store, open Open) ([]string, error) {
	var out []string
	if open != nil {
		var ids []string
		for _, p := range r.parts {
			ids = append(ids, p.id)
		}
		still, err := open(ctx, ids)
		if err != nil {
			return nil, err
		}
		for _, id := range still {
			out = append(out, fmt.Sprintf("workflow %q is open: temporal workflow cancel -w %[1]s", id))
		}
	}
	w := r.who()
	if len(w.runs) == 0 {
		return out, nil
	}
	names, err := namesOf(ctx, s, w)
	if err != nil {
		return nil, err
	}
	for _, n := range names {
		of := ""
		if len(r.parts) > 1 {
			of = fmt.Sprintf("trial %q: ", shown(n.run))
		}
		out = append(out, fmt.Sprintf("%s%s (%s)", of, n.by, n.how))
	}
	return out, nil
}

// ErrRefused: something is against a removal.
var ErrRefused = errors.New("it stays")

// Remove marks every part of a plan as removed, looks once more whether anything is against it, and deletes all other objects.
// Killed anywhere and repeated, it ends with the same bytes: a marker is written before the first object goes, no marker is
// replaced, and what tells the trials of a sweep goes last. deleted is called with the number of objects that are gone, once at a time.
func Remove(ctx context.Context, s store.Store, r Removal, now time.Time, open Open, deleted func(objects int)) error {
	if len(r.Refused) > 0 {
		return ErrRefused
	}
	if err := r.mark(ctx, s, now); err != nil {
		return err
	}
	against, err := r.against(ctx, s, open)
	if err != nil {
		return err
	}
	if len(against) > 0 {
		if err := r.unmark(ctx, s); err != nil {
			return err
		}
		return fmt.Errorf("nothing was deleted now, %w: %s", ErrRefused, strings.Join(against, "; "))
	}
	var mu sync.Mutex
	count := 0
	gone := func() {
		mu.Lock()
		defer mu.Unlock()
		count++
		deleted(count)
	}
	for _, step := range order(r.parts) {
		if err := empty(ctx, s, step, gone); err != nil {
			return fmt.Errorf("delete %s (what is left can be deleted by another rm): %w", step.dir, err)
		}
	}
	return nil
}

// mark writes the markers that are missing: of the sweep first, whose time is that of its trials' markers.
func (r *Removal) mark(ctx context.Context, s store.Store, now time.Time) error {
	whole := ""
	if r.What == OfSweep {
		whole = r.ID
	}
	at := now
	for _, p := range slices.Backward(r.parts) {
		m := store.Removed{Kind: p.what, ID: p.id, At: at, Objects: p.size.Objects, Bytes: p.size.Bytes, Heads: p.heads}
		if p.what == OfRun {
			m.Sweep = whole
		}
		have, err := store.MarkRemoved(ctx, s, p.dir, m)
		if err != nil {
			return err
		}
		if p.what == OfSweep {
			at = have.At
		}
	}
	return nil
}

// unmark deletes the markers that mark has written.
func (r *Removal) unmark(ctx context.Context, s store.Store) error {
	for _, p := range r.parts {
		if !p.marked {
			if err := s.Delete(ctx, store.RemovedKey(p.dir)); err != nil {
				return err
			}
		}
	}
	return nil
}

// step is a folder that is cleared before the next step, but for its marker and what begins with later: that tells of other
// folders, and goes when they are gone.
type step struct{ dir, later string }

// order is in which order folders are cleared.
func order(parts []part) []step {
	var out, last []step
	for _, p := range parts {
		if p.what == OfSweep {
			out = append(out, step{dir: p.dir, later: "definition."})
			last = append(last, step{dir: p.dir})
			continue
		}
		out = append(out, step{dir: p.dir})
	}
	return append(out, last...)
}

// takes reports whether a step deletes an object: no step deletes a marker.
func (st step) takes(key string) bool {
	rest := strings.TrimPrefix(key, st.dir+"/")
	return rest != "removed.json" && (st.later == "" || !strings.HasPrefix(rest, st.later))
}

// empty deletes what a step takes, several objects at once, and aborts uploads.
func empty(ctx context.Context, s store.Store, st step, deleted func()) error {
	group, deleting := errgroup.WithContext(ctx)
	group.SetLimit(readers)
	for o, err := range s.List(ctx, st.dir+"/") {
		if err != nil || deleting.Err() != nil {
			return errors.Join(err, group.Wait())
		}
		if !st.takes(o.Key) {
			continue
		}
		group.Go(func() error {
			if err := s.Delete(deleting, o.Key); err != nil {
				return err
			}
			deleted()
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for u, err := range s.Uploads(ctx, st.dir+"/") {
		if err == nil {
			err = s.AbortUpload(ctx, u)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
