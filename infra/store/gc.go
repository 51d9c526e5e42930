package store

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"strconv"
	"strings"
	"time"
)

// DefaultGrace is how old an orphan must be before it is collected.
const DefaultGrace = 24 * time.Hour

// GarbageOptions say what [FindGarbage] takes for garbage.
type GarbageOptions struct {
	// Grace is the least age; 0 means [DefaultGrace], and a negative one none.
	Grace time.Duration
	// Now is compared with the server's times; zero means the present.
	Now time.Time
	// Ended says that nobody works on the run any more. Without it, the objects of an
	// iteration that has begun but not committed are kept, however old they are: a run
	// that waits for a device for days still needs them.
	Ended bool
}

// Garbage is what can be deleted, for showing before it is.
type Garbage struct {
	Run string `json:"run"`
	// Objects are artifacts that no manifest names, in key order.
	Objects []Object `json:"objects"`
	// Uploads are multipart uploads that never ended, by key and id.
	Uploads []Upload `json:"uploads"`
	// Bytes is the objects' size together; what uploads hold is not known.
	Bytes int64 `json:"bytes"`
	// Young and Pending count orphans that were kept: because of the grace period, and
	// because they belong to a running iteration.
	Young   int `json:"young"`
	Pending int `json:"pending"`
}

// FindGarbage lists what no manifest of a run names: leftovers of attempts that were
// killed or abandoned. It looks below runs/RUN only and never lists a manifest, the
// spec, telemetry or reports. A run with a damaged manifest is refused
// ([ErrInvalid]): what that one named would look like garbage.
func FindGarbage(ctx context.Context, s Store, run string, opts GarbageOptions) (Garbage, error) {
	grace := opts.Grace
	if grace == 0 {
		grace = DefaultGrace
	}
	now := opts.Now
	if now.IsZero() {
		now = time.Now()
	}
	oldest := now.Add(-max(grace, 0))
	out := Garbage{Run: run}
	fail := func(err error) (Garbage, error) {
		return Garbage{Run: run}, fmt.Errorf("find garbage of run %q: %w", run, err)
	}
	// Listed first: what is committed after this is younger than the listing.
	var listed []Object
	for o, err := range s.List(ctx, RunDir(run)+"/") {
		if err != nil {
			return fail(err)
		}
		listed = append(listed, o)
	}
	for u, err := range s.Uploads(ctx, RunDir(run)+"/") {
		if err != nil {
			return fail(err)
		}
		if u.Started.Before(oldest) {
			out.Uploads = append(out.Uploads, u)
		} else {
			out.Young++
		}
	}
	sort.Slice(out.Uploads, func(i, j int) bool {
		a, b := out.Uploads[i], out.Uploads[j]
		return a.Key < b.Key || a.Key == b.Key && a.ID < b.ID
	})
	w, err := loadRun(ctx, s, run)
	switch {
	case errors.Is(err, ErrNotFound):
		// Nothing is committed yet: everything belongs to a running iteration.
		w = &walk{s: s, report: Report{Run: run}, refs: map[string]artifactUse{}}
		if w.report.Branches, err = emptyBranches(ctx, s, run); err != nil {
			return fail(err)
		}
	case err != nil:
		return fail(err)
	}
	if err := w.refuseDamage(); err != nil {
		return fail(err)
	}
	w.gatherRefs()
	for _, o := range listed {
		switch {
		case !w.isOrphan(o.Key):
		case !o.Modified.Before(oldest):
			out.Young++
		case !opts.Ended && w.pending(o.Key):
			out.Pending++
		default:
			out.Objects = append(out.Objects, o)
			out.Bytes += o.Size
		}
	}
	return out, nil
}

// DeleteGarbage deletes what was found. It stops at the first failure; deleting again
// continues.
func DeleteGarbage(ctx context.Context, s Store, g Garbage) error {
	for _, o := range g.Objects {
		if err := s.Delete(ctx, o.Key); err != nil {
			return err
		}
	}
	for _, u := range g.Uploads {
		if err := s.AbortUpload(ctx, u); err != nil {
			return err
		}
	}
	return nil
}

func emptyBranches(ctx context.Context, s Store, run string) ([]BranchReport, error) {
	branches, err := Branches(ctx, s, run)
	out := make([]BranchReport, len(branches))
	for i, b := range branches {
		out[i] = BranchReport{Branch: b, First: -1, Last: -1}
	}
	return out, err
}

// refuseDamage finds manifests that cannot be read, or that a child names and nobody
// has.
func (w *walk) refuseDamage() error {
	for _, p := range w.report.Problems {
		return fmt.Errorf("%s: repair the run first, reprise verify lists the damage: %w", p, ErrInvalid)
	}
	for _, link := range w.links {
		parent := link.Manifest.Parent
		if parent == nil || !strings.HasPrefix(parent.Key, RunDir(w.report.Run)+"/") {
			continue
		}
		if have, ok := w.byKey[parent.Key]; !ok || have.Ref != *parent {
			return fmt.Errorf("%s: missing or altered, and named by %s; repair the run first: %w", parent.Key, link.Manifest.Key(), ErrInvalid)
		}
	}
	return nil
}

// pending says that a key may belong to an iteration that is running: to one after its
// branch's head, to the snapshot it makes or to the evaluations it runs.
func (w *walk) pending(key string) bool {
	rest, ok := strings.CutPrefix(key, RunDir(w.report.Run)+"/")
	parts := strings.SplitN(rest, "/", 4)
	if !ok || len(parts) < 4 {
		return true // not a place we write to: leave it alone
	}
	branch, ok := parseBranch(parts[0])
	digits, _, _ := strings.Cut(parts[2], ".")
	n, err := strconv.Atoi(digits)
	if !ok || err != nil {
		return true
	}
	last := -1
	for _, b := range w.report.Branches {
		if b.Branch == branch {
			last = b.Last
		}
	}
	// Versions count one ahead of iterations: after the head they are last+1 (being
	// evaluated) and last+2 (being made).
	return n > last
}
