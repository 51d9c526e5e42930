// Package sweeps is the activities of a sweep: expanding it into trials, reading what
// trials left, and writing the table.
package sweeps

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/host"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/activities/steps"
	"github.com/reprise-rl/reprise/infra/presets"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/workflows/spec"
	"github.com/reprise-rl/reprise/workflows/sweep"
)

// Sweeps is the activities of Sweep workflows. They need no device.
type Sweeps struct {
	Store store.Store
	// Attributes asks the server whether it knows the Reprise* search attributes;
	// nil means it does not.
	Attributes func(context.Context) bool
	// Look asks the server for the state of a workflow.
	Look func(ctx context.Context, id string) (activities.Found, error)
	// WriteReport makes a sweep's page, file by file; nil if the worker writes none.
	WriteReport run.ReportWriter
}

// Steps are the activities of a sweep.
func (s *Sweeps) Steps() []steps.Binding {
	return []steps.Binding{
		steps.ResolveSweep.By(s.ResolveSweep), steps.ExtendSweep.By(s.ExtendSweep), steps.SweepTrials.By(s.SweepTrials),
		steps.LookUp.By(s.LookUp), steps.Summarize.By(s.Summarize), steps.WriteTable.By(s.WriteTable), steps.ReportSweep.By(s.ReportSweep),
	}
}

// KnownSweep is what a sweep is checked against.
func KnownSweep() sweep.Known { return sweep.Known{Spec: run.Known(), Base: presets.Read} }

// writtenSweep is a sweep as the store keeps it: the trials are expanded once, and
// what later releases would expand otherwise stays.
type writtenSweep struct {
	Sweep      string           `json:"sweep"`
	Definition sweep.Definition `json:"definition"`
	// Imported are the models that were fetched, "model:SHA12" by the name in the
	// document: trials that are added later start from the same.
	Imported map[string]string `json:"imported,omitempty"`
	Trials   []sweep.Trial     `json:"trials"`
}

// ResolveSweep checks a sweep, expands it, imports the models it starts from, and
// writes definition.json: from here on only that is read.
func (s *Sweeps) ResolveSweep(ctx context.Context, in activities.ResolveSweepInput) (_ activities.SweepResult, err error) {
	defer run.Edge(ctx, &err, "resolve sweep %s", in.ID)
	defer run.Heartbeat(ctx)()
	if err := store.RefuseRemoved(ctx, s.Store, in.ID); err != nil {
		return activities.SweepResult{}, err
	}
	d, trials, err := sweep.Decode(in.Input, KnownSweep())
	if err != nil {
		return activities.SweepResult{}, err
	}
	return s.write(ctx, writtenSweep{Sweep: in.ID, Definition: d, Trials: trials})
}

// ExtendSweep adds trials to a sweep: those it has stay as they are.
func (s *Sweeps) ExtendSweep(ctx context.Context, in activities.ExtendSweepInput) (_ activities.SweepResult, err error) {
	defer run.Edge(ctx, &err, "add trials to sweep %s", in.ID)
	defer run.Heartbeat(ctx)()
	w, err := readSweep(ctx, s.Store, in.Sweep)
	if err != nil {
		return activities.SweepResult{}, err
	}
	more, err := sweep.More(w.Definition, w.Trials, in.Input, run.Known())
	if err != nil {
		return activities.SweepResult{}, err
	}
	w.Sweep, w.Trials = in.ID, append(w.Trials, more...)
	return s.write(ctx, w)
}

func (s *Sweeps) write(ctx context.Context, w writtenSweep) (activities.SweepResult, error) {
	for _, t := range w.Trials {
		w.Definition.MaxIterations = max(w.Definition.MaxIterations, t.Iterations)
	}
	if err := s.importBases(ctx, &w); err != nil {
		return activities.SweepResult{}, err
	}
	b, err := canon.Marshal(w)
	if err != nil {
		return activities.SweepResult{}, err
	}
	ref, err := store.PutArtifact(ctx, s.Store, store.SweepDir(w.Sweep), "definition", "json", b)
	if err != nil {
		return activities.SweepResult{}, err
	}
	return activities.SweepResult{
		Sweep: ref, Definition: w.Definition, Trials: len(w.Trials), Location: s.Store.Location(store.SweepDir(w.Sweep)),
		SearchAttributes: s.Attributes != nil && s.Attributes(ctx),
	}, nil
}

// importBases copies each model that trials start from into the store once, and names it
// there by its digest. So trials do not fetch it one by one, and all start from the same
// model. A model that was imported before is not fetched again: a folder or a hub's
// branch may have changed since.
func (s *Sweeps) importBases(ctx context.Context, w *writtenSweep) error {
	for i, t := range w.Trials {
		var train struct {
			Policy struct {
				From string `json:"from"`
				Base string `json:"base"`
			} `json:"policy"`
		}
		if err := json.Unmarshal(t.Spec, &train); err != nil {
			return fmt.Errorf("spec of trial %s: %w", t.Label, err)
		}
		policy := spec.Policy{From: train.Policy.From, Base: train.Policy.Base}
		from := policy.From
		if policy.Base != "" {
			from += " over " + policy.Base
		}
		origin, err := policy.Origin()
		if from == "" || err != nil || origin.Kind != spec.OriginHub && origin.Kind != spec.OriginFolder {
			continue
		}
		if w.Imported[from] == "" {
			index, _, err := host.ImportBase(ctx, s.Store, policy)
			if err != nil {
				return err
			}
			name, _, _ := strings.Cut(strings.TrimPrefix(index.Key, store.ModelPrefix), "/")
			if w.Imported == nil {
				w.Imported = map[string]string{}
			}
			w.Imported[from] = spec.OriginModel + ":" + name
		}
		if w.Trials[i], err = t.With("policy.from", w.Imported[from]); err != nil {
			return err
		}
	}
	return nil
}

func readSweep(ctx context.Context, s store.Store, ref store.Ref) (writtenSweep, error) {
	var w writtenSweep
	b, err := store.GetArtifact(ctx, s, ref)
	if err != nil {
		return w, fmt.Errorf("definition of the sweep: %w", err)
	}
	if err := json.Unmarshal(b, &w); err != nil {
		return w, fmt.Errorf("definition of the sweep %s: %w", ref.Key, err)
	}
	return w, nil
}

// maxPage bounds a page of trials in bytes: it is a payload of the history.
const maxPage = 256 << 10

// SweepTrials reads a page of a sweep's trials.
func (s *Sweeps) SweepTrials(ctx context.Context, in activities.SweepTrialsInput) (_ activities.SweepTrialsResult, err error) {
	defer run.Edge(ctx, &err, "read the trials of a sweep")
	w, err := readSweep(ctx, s.Store, in.Sweep)
	if err != nil {
		return activities.SweepTrialsResult{}, err
	}
	out := activities.SweepTrialsResult{Definition: w.Definition, Total: len(w.Trials)}
	bytes := 0
	for i := max(in.From, 0); i < min(in.From+in.Count, len(w.Trials)); i++ {
		t := w.Trials[i]
		if !in.Specs {
			t.Spec = nil
		}
		if bytes += len(t.Label) + len(t.Setting) + len(t.Spec); bytes > maxPage && len(out.Trials) > 0 {
			break
		}
		out.Trials = append(out.Trials, t)
	}
	return out, nil
}
