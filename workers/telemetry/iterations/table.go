package iterations

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/reprise-rl/reprise/infra/store"
)

// Kind is what a column holds.
type Kind int

// The kinds of columns, with the Go type of their values and Parquet's.
const (
	Text    Kind = iota // string; UTF-8 byte array
	Integer             // int64; INT64
	Number              // float64, NaN and infinities too; DOUBLE
	Truth               // bool; BOOLEAN
)

// Column is a column's name and kind.
type Column struct {
	// Name is a manifest's name of the value: a metric's as it is, a field's by
	// its path ("update.tokens"), an evaluation's metric with the prefix
	// "evaluation/SUITE/", or "evaluation_before/SUITE/" if the version that the
	// iteration began with was measured.
	Name string
	Kind Kind
	// Required says that every row has a value.
	Required bool
}

// Table is a run's iterations. The fixed columns come first, then the columns of the
// metrics, sorted by name; rows are by branch, then by iteration.
type Table struct {
	Columns []Column
	// Rows have a value a column, of its kind's Go type, or nil.
	Rows [][]any
}

// fixed are the columns that every table has, in order. Every other column has a slash in
// its name, or is a metric with that name in the run's code.
var fixed = []Column{
	{"run", Text, true},
	{"branch", Integer, true},
	{"iteration", Integer, true},
	{"abandoned", Truth, true}, // not on the line of the run's newest iteration
	{"manifest", Text, true},   // SHA-256
	{"parent.branch", Integer, false},
	{"settings_digest", Text, true},
	{"fingerprint", Text, true},
	{"state_before", Text, true},
	{"state_after", Text, true},
	{"update.skipped", Truth, true},
	{"update.skipped_total", Integer, true},
	{"update.steps", Integer, true},
	{"update.rows", Integer, true},
	{"update.tokens", Integer, true},
	{"update.micro_batches", Integer, true},
	{"snapshot.version", Integer, false},
	{"detected.decision.action", Text, false},
	{"detected.events", Text, false}, // the detectors' names, comma-separated
	{"opened.branch", Integer, false},
	{"opened.iteration", Integer, false},
}

// From makes the table of a run's manifests, in any order. They must belong to one run
// and have each iteration of a branch once. Each except the run's first must follow
// another of them, or an iteration of another run. Otherwise the error is
// [store.ErrBroken] or [store.ErrInvalid].
func From(links []store.Link) (Table, error) {
	links = slices.Clone(links)
	slices.SortFunc(links, func(a, b store.Link) int {
		return cmp.Or(cmp.Compare(a.Manifest.Branch, b.Manifest.Branch), cmp.Compare(a.Manifest.Iteration, b.Manifest.Iteration))
	})
	byKey, err := index(links)
	if err != nil {
		return Table{}, err
	}
	kept := line(links, byKey)
	rows := make([]row, len(links))
	names := map[string]bool{}
	for i, link := range links {
		parent := (*store.Manifest)(nil)
		if link.Manifest.Parent != nil {
			parent = byKey[link.Manifest.Parent.Key].Manifest
		}
		if rows[i], err = rowOf(link, parent, !kept[link.Manifest.Key()]); err != nil {
			return Table{}, fmt.Errorf("iteration %d of branch %d: %w", link.Manifest.Iteration, link.Manifest.Branch, err)
		}
		for name := range rows[i].numbers {
			names[name] = true
		}
	}
	t := Table{Columns: slices.Clone(fixed)}
	measured := slices.Sorted(maps.Keys(names))
	for _, name := range measured {
		t.Columns = append(t.Columns, Column{Name: name, Kind: Number})
	}
	for _, r := range rows {
		cells := slices.Clone(r.fixed)
		for _, name := range measured {
			if v, ok := r.numbers[name]; ok {
				cells = append(cells, v)
			} else {
				cells = append(cells, nil)
			}
		}
		t.Rows = append(t.Rows, cells)
	}
	return t, nil
}

// index finds manifests by key, and checks that they are one run's chain.
func index(links []store.Link) (map[string]store.Link, error) {
	byKey := make(map[string]store.Link, len(links))
	for _, link := range links {
		m := link.Manifest
		if m.Run != links[0].Manifest.Run {
			return nil, fmt.Errorf("manifests of the runs %q and %q: %w", links[0].Manifest.Run, m.Run, store.ErrInvalid)
		}
		if _, twice := byKey[m.Key()]; twice {
			return nil, fmt.Errorf("iteration %d of branch %d is there twice: %w", m.Iteration, m.Branch, store.ErrInvalid)
		}
		byKey[m.Key()] = link
	}
	for _, link := range links {
		m := link.Manifest
		if m.Parent == nil || !strings.HasPrefix(m.Parent.Key, store.RunDir(m.Run)+"/") {
			continue
		}
		parent, ok := byKey[m.Parent.Key]
		if !ok || parent.Ref.Digest != m.Parent.Digest {
			return nil, fmt.Errorf("iteration %d of branch %d follows %s with SHA-256 %s, which is not there: %w", m.Iteration, m.Branch, m.Parent.Key, m.Parent.Digest, store.ErrBroken)
		}
		if err := store.Follows(m, parent.Manifest); err != nil {
			return nil, err
		}
	}
	return byKey, nil
}

// line are the keys of the manifests that lead to the run's newest iteration: the
// last of the last branch. The others were abandoned.
func line(sorted []store.Link, byKey map[string]store.Link) map[string]bool {
	kept := map[string]bool{}
	if len(sorted) == 0 {
		return kept
	}
	for next, ok := sorted[len(sorted)-1], true; ok; {
		kept[next.Manifest.Key()] = true
		if next.Manifest.Parent == nil {
			break
		}
		next, ok = byKey[next.Manifest.Parent.Key]
	}
	return kept
}
