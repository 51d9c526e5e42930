package bucket

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workflows/sweep"
)

// What a [Usage] is of.
const (
	OfRun        = "run"
	OfSweep      = "sweep"
	OfEvaluation = "evaluation"
	OfModels     = "models"   // base models, which runs share
	OfPrograms   = "programs" // compiled programs, which workers share
	OfRest       = "rest"     // whatever else is under the prefix
)

// Size is a number of objects and of bytes.
type Size struct {
	Objects int   `json:"objects"`
	Bytes   int64 `json:"bytes"`
}

func (s *Size) add(o Size) { s.Objects, s.Bytes = s.Objects+o.Objects, s.Bytes+o.Bytes }

// Usage is what a run, a sweep with its trials, an evaluation, or the shared models or programs take.
type Usage struct {
	// What is one of the Of… constants. ID is empty for models, programs and the rest.
	What string `json:"what"`
	ID   string `json:"id,omitempty"`
	Size
	// Kinds are the sizes by kind of object.
	Kinds map[string]Size `json:"kinds,omitempty"`
	// Trials are the runs of a sweep, which its sizes include.
	Trials []Usage `json:"trials,omitempty"`
	// Removed says that a person has removed it: its marker stays, and whatever a slow worker wrote afterwards.
	Removed bool `json:"removed,omitempty"`

	segment string
}

func (u *Usage) object(p place, bytes int64) {
	one := Size{Objects: 1, Bytes: bytes}
	u.add(one)
	if !u.kinds() {
		return
	}
	if p.rest == "removed.json" {
		u.Removed = true
	}
	u.kind(p.kindOf(), one)
}

// kinds reports whether it has a size by kind: it is a run, a sweep or an evaluation.
func (u *Usage) kinds() bool { return u.What != OfModels && u.What != OfPrograms && u.What != OfRest }

func (u *Usage) kind(kind string, s Size) {
	if u.Kinds == nil {
		u.Kinds = map[string]Size{}
	}
	s.add(u.Kinds[kind])
	u.Kinds[kind] = s
}

// Progress receives how many objects are listed so far; nil is fine.
type Progress func(objects int)

// Measure lists all that is under a store's prefix, or what has one of the given ids, and sums it by run, sweep and
// evaluation, the largest first. Trials belong to their sweep. With ids, one that nothing has is a [store.ErrNotFound].
func Measure(ctx context.Context, s store.Store, ids []string, progress Progress) ([]Usage, error) {
	m := meter{store: s, progress: progress, of: map[string]*Usage{}}
	if len(ids) == 0 {
		if err := m.list(ctx, ""); err != nil {
			return nil, err
		}
		return m.all(ctx)
	}
	var out []Usage
	for _, id := range ids {
		one, err := m.one(ctx, id)
		if err != nil {
			return nil, err
		}
		out = append(out, one...)
	}
	sortUsages(out)
	return out, nil
}

func sortUsages(all []Usage) {
	slices.SortFunc(all, func(a, b Usage) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.What, b.What), cmp.Compare(a.ID, b.ID))
	})
}

// meter sums up listings.
type meter struct {
	store    store.Store
	progress Progress
	listed   int
	of       map[string]*Usage // by top folder and segment
	order    []*Usage          // in the order of keys
}

// whatOf is what the folders of each top folder are.
var whatOf = map[string]string{
	topRuns: OfRun, topSweeps: OfSweep, topEvaluations: OfEvaluation, topModels: OfModels, topPrograms: OfPrograms,
}

// list sums up what has a prefix.
func (m *meter) list(ctx context.Context, prefix string) error {
	for o, err := range m.store.List(ctx, prefix) {
		if err != nil {
			return fmt.Errorf("list what the bucket holds: %w", err)
		}
		p := placeOf(o.Key)
		what := whatOf[p.top]
		switch {
		case what == "" || p.segment == "":
			what, p.segment = OfRest, ""
		case what == OfModels || what == OfPrograms:
			p.segment = ""
		}
		m.usage(what, p.segment).object(p, o.Size)
		if m.listed++; m.progress != nil {
			m.progress(m.listed)
		}
	}
	return nil
}

func (m *meter) usage(what, segment string) *Usage {
	key := what + "/" + segment
	u := m.of[key]
	if u == nil {
		u = &Usage{What: what, segment: segment}
		if id, ok := store.UnescapeSegment(segment); ok && segment != "" {
			u.ID = id
		} else {
			u.ID = segment // shortened: a sweep's definition or a manifest may tell
		}
		m.of[key] = u
		m.order = append(m.order, u)
	}
	return u
}

// all gives the trials to their sweeps.
func (m *meter) all(ctx context.Context) ([]Usage, error) {
	trials := map[string]bool{}
	for _, u := range m.order {
		if u.What != OfSweep {
			continue
		}
		labels, id, err := trialsOf(ctx, m.store, u.segment)
		if err != nil && !errors.Is(err, store.ErrInvalid) { // of a damaged sweep, trials are listed as runs
			return nil, err
		}
		u.ID = cmp.Or(id, u.ID)
		for _, label := range labels {
			run := sweep.ID(u.ID, label)
			if of := m.of[OfRun+"/"+store.EscapeSegment(run)]; of != nil && !trials[of.segment] {
				trials[of.segment], of.ID = true, run
				u.trial(*of)
			}
		}
		sortUsages(u.Trials)
	}
	var out []Usage
	for _, u := range m.order {
		if u.What == OfRun && trials[u.segment] {
			continue
		}
		if u.What == OfRun && strings.Contains(u.segment, "~") {
			if id, err := RunOf(ctx, m.store, u.segment); err == nil {
				u.ID = id
			}
		}
		out = append(out, *u)
	}
	sortUsages(out)
	return out, nil
}

func (u *Usage) trial(t Usage) {
	u.Trials = append(u.Trials, t)
	u.add(t.Size)
	for _, kind := range Kinds {
		if s := t.Kinds[kind]; s.Objects > 0 {
			u.kind(kind, s)
		}
	}
}

// one measures what has an id.
func (m *meter) one(ctx context.Context, id string) ([]Usage, error) {
	segment := store.EscapeSegment(id)
	var out []Usage
	for _, top := range []string{topRuns, topSweeps, topEvaluations} {
		if err := m.list(ctx, top+"/"+segment+"/"); err != nil {
			return nil, err
		}
		u := m.of[whatOf[top]+"/"+segment]
		if u == nil {
			continue
		}
		u.ID = id
		if top == topSweeps {
			labels, _, err := trialsOf(ctx, m.store, segment)
			if err != nil {
				return nil, err
			}
			for _, label := range labels {
				run := sweep.ID(id, label)
				if err := m.list(ctx, store.RunDir(run)+"/"); err != nil {
					return nil, err
				}
				if of := m.of[OfRun+"/"+store.EscapeSegment(run)]; of != nil {
					of.ID = run
					u.trial(*of)
				}
			}
			sortUsages(u.Trials)
		}
		out = append(out, *u)
	}
	if len(out) == 0 {
		return nil, &store.Error{Op: "measure", Where: m.store.Location(store.RunDir(id)), Kind: store.ErrNotFound,
			Detail: fmt.Sprintf("nothing is stored of a run, a sweep or an evaluation %q", id), Hint: "reprise du lists all"}
	}
	return out, nil
}

// maxDefinition bounds a sweep's definition, in bytes.
const maxDefinition = 256 << 20

// definition is what a sweep's definition says to whoever looks for its trials.
type definition struct {
	Sweep  string        `json:"sweep"`
	Trials []sweep.Trial `json:"trials"`
}

// definitionsOf reads the definitions of a sweep by its folder's name: several of one that trials were added to.
func definitionsOf(ctx context.Context, s store.Store, segment string) ([]definition, error) {
	var out []definition
	for o, err := range s.List(ctx, topSweeps+"/"+segment+"/definition.") {
		if err != nil {
			return nil, fmt.Errorf("list the definitions of a sweep: %w", err)
		}
		b, _, err := store.ReadFixed(ctx, s, o.Key, maxDefinition)
		if errors.Is(err, store.ErrNotFound) {
			continue // removed since
		}
		if err != nil {
			return nil, fmt.Errorf("definition of a sweep: %w", err)
		}
		var d definition
		if err := json.Unmarshal(b, &d); err != nil {
			return nil, fmt.Errorf("definition of a sweep %s: %w: %w", s.Location(o.Key), store.ErrInvalid, err)
		}
		out = append(out, d)
	}
	return out, nil
}

// trialsOf are the labels of a sweep's trials, of all its definitions, and the sweep's id as they have it.
func trialsOf(ctx context.Context, s store.Store, segment string) (labels []string, id string, err error) {
	definitions, err := definitionsOf(ctx, s, segment)
	if err != nil {
		return nil, "", err
	}
	seen := map[string]bool{}
	for _, d := range definitions {
		if store.EscapeSegment(d.Sweep) == segment {
			id = d.Sweep
		}
		for _, t := range d.Trials {
			if !seen[t.Label] {
				seen[t.Label] = true
				labels = append(labels, t.Label)
			}
		}
	}
	return labels, id, nil
}

// RunOf is the id of the run in a folder under runs/. If the folder's name is shortened, the id is read from a manifest, or
// from what [store.MarkRemoved] left.
func RunOf(ctx context.Context, s store.Store, segment string) (string, error) {
	if id, ok := store.UnescapeSegment(segment); ok {
		return id, nil
	}
	dir := store.RunsDir + "/" + segment
	if r, err := store.ReadRemoved(ctx, s, dir); err != nil {
		return "", err
	} else if r != nil && store.EscapeSegment(r.ID) == segment {
		return r.ID, nil
	}
	for o, err := range s.List(ctx, dir+"/") {
		if err != nil {
			return "", err
		}
		if !strings.HasSuffix(o.Key, "/manifest.json") {
			continue
		}
		b, _, err := store.ReadFixed(ctx, s, o.Key, store.MaxManifest)
		if err != nil {
			return "", err
		}
		m, err := store.DecodeManifest(b)
		if err != nil {
			return "", fmt.Errorf("read %s: %w", s.Location(o.Key), err)
		}
		if store.EscapeSegment(m.Run) == segment {
			return m.Run, nil
		}
	}
	return "", errors.New("nothing in this folder tells the run's id: name the run")
}
