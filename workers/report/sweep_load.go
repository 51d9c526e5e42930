package report

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workflows/sweep"
)

// maxSweep bounds a sweep's definition and its table, in bytes.
const maxSweep = 256 << 20

// LoadSweep reads a sweep: its definition, its table if it has ended, and the runs of its
// trials. It returns [store.ErrNotFound] if the store does not have the sweep; each trial
// says what is missing of it.
//
// A store may hold several of both: of a sweep that trials were added to, or that was
// started again. The definition is the newest one; it is as new as the newest table that
// names it. If several have the same time, as in a copied bucket, it is the one with most
// trials. Its table is the newest that names it and that no run has gone beyond.
func LoadSweep(ctx context.Context, s store.Store, id string) (Sweep, error) {
	out := Sweep{ID: id, Location: s.Location(store.SweepDir(id))}
	if err := out.load(ctx, s); err != nil {
		return out, fmt.Errorf("read sweep %q: %w", id, err)
	}
	return out, nil
}

// definition is what a sweep's definition says to a page.
type definition struct {
	Definition sweep.Definition `json:"definition"`
	Trials     []sweep.Trial    `json:"trials"`
}

func (s *Sweep) load(ctx context.Context, from store.Store) error {
	definitions, err := readAll[definition](ctx, from, sweepKey(s.ID, "definition"))
	if err != nil {
		return err
	}
	if len(definitions) == 0 {
		return &store.Error{Op: "read", Where: s.Location, Kind: store.ErrNotFound, Detail: "no sweep has this id"}
	}
	tables, err := readAll[sweep.Table](ctx, from, sweepKey(s.ID, "table"))
	if err != nil {
		return err
	}
	chosen := newestDefinition(definitions, tables)
	tables = slices.DeleteFunc(tables, func(t written[sweep.Table]) bool { return t.value.Definition != chosen.digest })

	d := chosen.value.Definition
	s.Description, s.Metrics, s.Goal = d.Description, d.Metrics, d.Goal
	s.Trials = make([]Trial, len(chosen.value.Trials))
	for i, t := range chosen.value.Trials {
		s.Trials[i] = Trial{Label: t.Label, Setting: t.Setting, Seed: t.Seed, Of: t.Iterations, Spec: t.Spec}
	}
	if err := s.readRuns(ctx, from); err != nil {
		return err
	}
	if len(tables) == 0 {
		return nil
	}
	if err := s.readMemory(ctx, from); err != nil {
		return err
	}
	best := slices.IndexFunc(tables, func(t written[sweep.Table]) bool { return len(s.beyond(t.value)) == 0 })
	s.Final = best >= 0
	s.take(tables[max(best, 0)].value)
	return nil
}

// readMemory reads what the trials need of a device from the telemetry beside the table.
// What older releases wrote does not say it.
func (s *Sweep) readMemory(ctx context.Context, from store.Store) error {
	b, _, err := store.ReadFixed(ctx, from, store.SweepDir(s.ID)+"/telemetry.json", maxSweep)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	var rows []struct {
		Trial  string `json:"trial"`
		Memory int64  `json:"memory_bytes"`
	}
	if err := json.Unmarshal(b, &rows); err != nil {
		s.Missing = append(s.Missing, Missing{What: "telemetry of the sweep", Why: err.Error()})
		return nil
	}
	needs := make(map[string]int64, len(rows))
	for _, row := range rows {
		needs[row.Trial] = row.Memory
	}
	for i := range s.Trials {
		s.Trials[i].Memory = needs[s.Trials[i].Label]
	}
	return nil
}

// newestDefinition chooses among definitions, of which there is one at least.
func newestDefinition(all []written[definition], tables []written[sweep.Table]) written[definition] {
	last := func(d written[definition]) time.Time {
		at := d.modified
		for _, t := range tables {
			if t.value.Definition == d.digest && t.modified.After(at) {
				at = t.modified
			}
		}
		return at
	}
	return slices.MinFunc(all, func(a, b written[definition]) int {
		return cmp.Or(last(b).Compare(last(a)), cmp.Compare(len(b.value.Trials), len(a.value.Trials)), cmp.Compare(a.digest, b.digest))
	})
}

// beyond are the trials whose runs have committed more than their rows say: since the
// table the sweep was started again. If a rule stopped a trial, its iterations after the
// rung do not count.
func (s *Sweep) beyond(table sweep.Table) map[string]bool {
	committed := map[string]int{}
	for _, t := range s.Trials {
		if t.Run == nil || len(t.Run.Missing) > 0 {
			continue // of a damaged chain the table knows nothing
		}
		for _, it := range t.Run.Line() {
			committed[t.Label] = it.Manifest.Iteration + 1
		}
	}
	for _, decided := range table.Decisions {
		delete(committed, decided.Trial)
	}
	out := map[string]bool{}
	for _, row := range table.Rows {
		if committed[row.Trial] > row.Iterations {
			out[row.Trial] = true
		}
	}
	return out
}

// take gives the trials the states and decisions of a table. One that the sweep did not
// end with is right about what was done and what was decided; the other trials may run
// again, and so have no state.
func (s *Sweep) take(table sweep.Table) {
	states, notes, beyond := map[string]sweep.State{}, map[string]string{}, s.beyond(table)
	for _, decided := range table.Decisions {
		notes[decided.Trial] = decided.Text
	}
	for _, row := range table.Rows {
		if s.Final || notes[row.Trial] != "" || row.State == sweep.Done && !beyond[row.Trial] {
			states[row.Trial] = row.State
		}
	}
	for i := range s.Trials {
		t := &s.Trials[i]
		t.State, t.Note = string(states[t.Label]), notes[t.Label]
	}
}

// readRuns reads the trials' runs, several at once.
func (s *Sweep) readRuns(ctx context.Context, from store.Store) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(readers)
	for i := range s.Trials {
		t := &s.Trials[i]
		group.Go(func() error {
			r, err := Load(ctx, from, sweep.ID(s.ID, t.Label))
			if errors.Is(err, store.ErrNotFound) {
				return nil
			}
			if err != nil {
				return err
			}
			r.slim()
			t.Run = r
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	none := 0
	for _, t := range s.Trials {
		if t.Run == nil {
			none++
			continue
		}
		for _, m := range t.Run.Missing {
			m.What = t.Label + ": " + m.What
			s.Missing = append(s.Missing, m)
		}
	}
	if none > 0 {
		s.Missing = append([]Missing{{What: "runs of trials", Why: "nothing is stored of them yet", Count: none}}, s.Missing...)
	}
	return nil
}

// written is one of a sweep's JSON artifacts.
type written[T any] struct {
	digest   string
	modified time.Time
	value    T
}

// readAll reads a sweep's JSON artifacts with a prefix, the newest first. Their bytes
// must be those that their names carry the digest of.
func readAll[T any](ctx context.Context, s store.Store, prefix string) ([]written[T], error) {
	var out []written[T]
	for o, err := range s.List(ctx, prefix) {
		if err != nil {
			return nil, err
		}
		b, ref, err := store.ReadFixed(ctx, s, o.Key, maxSweep)
		if err != nil {
			return nil, err
		}
		sha, _, _ := strings.Cut(strings.TrimPrefix(o.Key, prefix), ".")
		if sha != store.ShortDigest(ref.Digest) {
			return nil, fmt.Errorf("read %s: SHA-256 %s is not that of its name: %w", s.Location(o.Key), ref.Digest, store.ErrAltered)
		}
		w := written[T]{digest: ref.Digest, modified: o.Modified}
		if err := json.Unmarshal(b, &w.value); err != nil {
			return nil, fmt.Errorf("read %s: %w: %w", path.Base(o.Key), store.ErrInvalid, err)
		}
		out = append(out, w)
	}
	slices.SortFunc(out, func(a, b written[T]) int {
		return cmp.Or(b.modified.Compare(a.modified), cmp.Compare(a.digest, b.digest))
	})
	return out, nil
}
