package report

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workflows/sweep"
)

// maxSweep bounds a sweep's definition and its table, in bytes.
const maxSweep = 256 << 20

// LoadSweep reads a sweep: its definition, its table where it is written, and the
// runs of its trials. [store.ErrNotFound] where the store has no such sweep; what is
// missing of its trials is told by each.
func LoadSweep(ctx context.Context, s store.Store, id string) (Sweep, error) {
	out := Sweep{ID: id, Location: s.Location(store.SweepDir(id))}
	var definition struct {
		Definition sweep.Definition `json:"definition"`
		Trials     []sweep.Trial    `json:"trials"`
	}
	// Trials can be added: then there is a later definition, and it has more.
	found, err := newest(ctx, s, sweepKey(id, "definition"), &definition)
	if err != nil {
		return out, fmt.Errorf("read sweep %q: %w", id, err)
	}
	if !found {
		return out, &store.Error{Op: "read", Where: out.Location, Kind: store.ErrNotFound, Detail: "no sweep has this id"}
	}
	var table sweep.Table
	if out.Final, err = newest(ctx, s, sweepKey(id, "table"), &table); err != nil {
		return out, fmt.Errorf("read sweep %q: %w", id, err)
	}
	d := definition.Definition
	out.Description, out.Metrics, out.Goal = d.Description, d.Metrics, d.Goal
	rows, notes := map[string]sweep.Row{}, map[string]string{}
	for _, row := range table.Rows {
		rows[row.Trial] = row
	}
	for _, decided := range table.Decisions {
		notes[decided.Trial] = decided.Text
	}
	out.Trials = make([]Trial, len(definition.Trials))
	for i, t := range definition.Trials {
		out.Trials[i] = Trial{Label: t.Label, Setting: t.Setting, Seed: t.Seed, Of: t.Iterations, State: string(rows[t.Label].State), Note: notes[t.Label]}
	}
	if err := out.readRuns(ctx, s); err != nil {
		return out, fmt.Errorf("read sweep %q: %w", id, err)
	}
	return out, nil
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

// newest reads the newest of a sweep's JSON artifacts with a prefix into v, and says
// whether there is any. Its bytes must be those that its name carries the digest of.
func newest(ctx context.Context, s store.Store, prefix string, v any) (bool, error) {
	var last store.Object
	for o, err := range s.List(ctx, prefix) {
		if err != nil {
			return false, err
		}
		if last.Key == "" || o.Modified.After(last.Modified) {
			last = o
		}
	}
	if last.Key == "" {
		return false, nil
	}
	b, ref, err := store.ReadFixed(ctx, s, last.Key, maxSweep)
	if err != nil {
		return false, err
	}
	sha, _, _ := strings.Cut(strings.TrimPrefix(last.Key, prefix), ".")
	if sha != store.ShortDigest(ref.Digest) {
		return false, fmt.Errorf("read %s: SHA-256 %s is not that of its name: %w", s.Location(last.Key), ref.Digest, store.ErrAltered)
	}
	if err := json.Unmarshal(b, v); err != nil {
		return false, fmt.Errorf("read %s: %w: %w", path.Base(last.Key), store.ErrInvalid, err)
	}
	return true, nil
}
