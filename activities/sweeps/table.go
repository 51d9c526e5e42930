package sweeps

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/cost"
	"github.com/reprise-rl/reprise/workflows/spec"
	"github.com/reprise-rl/reprise/workflows/sweep"
)

// Summarize reads what trials left: their committed iterations, and nothing else,
// make the table.
func (s *Sweeps) Summarize(ctx context.Context, in activities.SummarizeInput) (activities.SummarizeResult, error) {
	defer run.Heartbeat(ctx)()
	var out activities.SummarizeResult
	for _, t := range in.Trials {
		o, err := s.summarize(ctx, in.Definition, t)
		if err != nil && run.KindOf(err) != "" {
			// No retry fixes it, and only this trial is affected.
			o, err = activities.Outcome{Values: in.Definition.Measured(), Problem: err.Error()}, nil
		}
		if err != nil {
			run.Edge(ctx, &err, "summarize trial %s", t.Run)
			return activities.SummarizeResult{}, err
		}
		out.Outcomes = append(out.Outcomes, o)
	}
	return out, nil
}

func (s *Sweeps) summarize(ctx context.Context, d sweep.Definition, t activities.SummarizeTrial) (activities.Outcome, error) {
	out := activities.Outcome{Values: d.Measured()}
	rungs := d.Stopping.Rungs(d.MaxIterations)
	heads, err := s.heads(ctx, t.Run, len(rungs) > 0 || t.Until > 0)
	if err != nil || len(heads) == 0 {
		return out, err
	}
	// The newest branch counts; up to a rung, the branch that first reached it.
	counted := len(heads) - 1
	if first := slices.IndexFunc(heads, func(h store.Link) bool { return h.Manifest.Iteration+1 >= t.Until }); t.Until > 0 && first >= 0 {
		counted = first
	}
	for i, head := range heads {
		further := len(out.Points) < len(rungs) && rungs[len(out.Points)] <= head.Manifest.Iteration+1
		if !further && i != counted {
			continue
		}
		chain, err := store.LoadChain(ctx, s.Store, head.Ref)
		if err != nil {
			return out, err
		}
		judged := make([]float64, len(chain))
		for n, link := range chain {
			m := link.Manifest
			judged[n] = math.NaN()
			if m.Run != t.Run {
				continue // of the run that it continues: not what this trial measured
			}
			judged[n] = activities.MeasuredIn(m.Metrics, m.Evaluations, n+1, d.Metrics[0])
			if i != counted || t.Until > 0 && n >= t.Until {
				continue
			}
			for k, name := range d.Metrics {
				out.Values[k] = out.Values[k].Add(activities.MeasuredIn(m.Metrics, m.Evaluations, n+1, name), n, d.GoalOf(k))
			}
			out.Branch, out.Iterations = m.Branch, n+1
		}
		out.Points = d.Stopping.Along(out.Points, rungs, judged, d.Goal)
	}
	return out, nil
}

// heads are the newest committed iterations of a run's branches that have any, in
// their order: of all, or of the last alone.
func (s *Sweeps) heads(ctx context.Context, run string, all bool) ([]store.Link, error) {
	branches, err := store.Branches(ctx, s.Store, run)
	if err != nil {
		return nil, err
	}
	var out []store.Link
	for _, b := range slices.Backward(branches) {
		head, err := store.HeadOf(ctx, s.Store, run, b)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if out = append(out, head); !all {
			break
		}
	}
	slices.Reverse(out)
	return out, nil
}

// trialTelemetry is what the store keeps of a trial, beside its sweep's table.
type trialTelemetry struct {
	Trial string `json:"trial"`
	// Started and Ended are when its workflow began and ended; null if it did not.
	Started *time.Time `json:"started"`
	Ended   *time.Time `json:"ended"`
	// LostDevices and Recomputed are the run's; Reason is why it failed.
	LostDevices int    `json:"lost_devices"`
	Recomputed  int    `json:"recomputed_updates"`
	Reason      string `json:"reason,omitempty"`
	// Memory is what the run needs of a device, in bytes, as validate estimates it; 0 if
	// nothing is committed.
	Memory int64 `json:"memory_bytes,omitempty"`
}

// WriteTable writes a sweep's table as an artifact. Beside it it writes whatever differs
// between two sweeps of one definition: times, lost and recomputed work.
func (s *Sweeps) WriteTable(ctx context.Context, in activities.WriteTableInput) (_ activities.WriteTableResult, err error) {
	defer run.Edge(ctx, &err, "write the table of sweep %s", in.ID)
	defer run.Heartbeat(ctx)()
	w, err := readSweep(ctx, s.Store, in.Sweep)
	if err != nil {
		return activities.WriteTableResult{}, err
	}
	if len(in.Records) != len(w.Trials) {
		return activities.WriteTableResult{}, fmt.Errorf("a table of %d rows for %d trials: %w", len(in.Records), len(w.Trials), store.ErrInvalid)
	}
	rows := make([]sweep.Row, len(in.Records))
	progress := make([]sweep.Progress, len(in.Records))
	telemetry := make([]trialTelemetry, len(in.Records))
	for i, r := range in.Records {
		t := w.Trials[i]
		rows[i] = sweep.Row{Trial: t.Label, Setting: t.Setting, Seed: t.Seed, State: r.State, Of: t.Iterations}
		progress[i] = sweep.Progress{Points: r.Points, Ended: true}
		telemetry[i] = trialTelemetry{
			Trial: t.Label, Started: moment(r.Started), Ended: moment(r.Ended), LostDevices: r.LostDevices, Recomputed: r.Recomputed,
			Reason: r.Reason,
		}
		if r.Iterations == 0 {
			continue
		}
		m, ref, err := store.ReadManifestAt(ctx, s.Store, sweep.ID(in.ID, t.Label), r.Branch, r.Iterations-1)
		if err != nil {
			return activities.WriteTableResult{}, fmt.Errorf("trial %s: %w", t.Label, err)
		}
		rows[i].Iterations, rows[i].Manifest, rows[i].Policy = r.Iterations, ref.Digest, m.StateAfter
		rows[i].Metrics = w.Definition.Named(r.Values)
		if telemetry[i].Memory, err = s.memory(ctx, m); err != nil {
			return activities.WriteTableResult{}, fmt.Errorf("trial %s: %w", t.Label, err)
		}
	}
	d := w.Definition
	decisions := d.Stopping.Decide(progress, d.Stopping.Rungs(d.MaxIterations), d.Goal)
	b, err := sweep.NewTable(in.ID, in.Sweep.Digest, d, rows, decisions).JSON()
	if err != nil {
		return activities.WriteTableResult{}, err
	}
	ref, err := store.PutArtifact(ctx, s.Store, store.SweepDir(in.ID), "table", "json", b)
	if err != nil {
		return activities.WriteTableResult{}, err
	}
	if b, err = json.MarshalIndent(telemetry, "", " "); err != nil {
		return activities.WriteTableResult{}, fmt.Errorf("encode telemetry: %w", err)
	}
	if err := s.Store.Put(ctx, store.SweepDir(in.ID)+"/telemetry.json", b, store.PutOptions{}); err != nil {
		return activities.WriteTableResult{}, err
	}
	return activities.WriteTableResult{Table: ref}, nil
}

// memory is the estimate of what the run of a manifest needs of a device, in bytes.
func (s *Sweeps) memory(ctx context.Context, m *store.Manifest) (int64, error) {
	t, err := run.ReadSpec(ctx, s.Store, m.Spec)
	if err != nil {
		return 0, err
	}
	shape, err := s.shape(ctx, m.Base)
	if err != nil {
		return 0, err
	}
	if t.Teacher != nil && m.Teacher != nil {
		teacher, err := s.shape(ctx, *m.Teacher)
		if err != nil {
			return 0, fmt.Errorf("teacher: %w", err)
		}
		t.Teacher.Network = &teacher
	}
	if judge := t.JudgeModel(); judge != nil && m.Judge != nil {
		of, err := s.shape(ctx, *m.Judge)
		if err != nil {
			return 0, fmt.Errorf("judge: %w", err)
		}
		judge.Network = &of
		t = t.WithJudgeModel(*judge)
	}
	return spec.Derive(t, shape).Memory.Peak, nil
}

// shape is that of a stored model.
func (s *Sweeps) shape(ctx context.Context, m store.ModelRef) (cost.Network, error) {
	b, err := store.GetArtifact(ctx, s.Store, m.Files[model.ConfigFile])
	if err != nil {
		return cost.Network{}, fmt.Errorf("model file %s: %w", model.ConfigFile, err)
	}
	c, err := model.ParseConfig(b)
	if err != nil {
		return cost.Network{}, fmt.Errorf("model file %s: %w", model.ConfigFile, err)
	}
	return run.ShapeOf(c), nil
}

func moment(unix int64) *time.Time {
	if unix == 0 {
		return nil
	}
	return new(time.Unix(unix, 0).UTC())
}

// ReportSweep writes a sweep's page for people beside its table and replaces the previous
// page. It shows whatever exists, and is not an artifact either.
func (s *Sweeps) ReportSweep(ctx context.Context, in activities.ReportSweepInput) (_ activities.ReportResult, err error) {
	defer run.Edge(ctx, &err, "report of sweep %s", in.Sweep)
	return s.WriteReport.Into(ctx, s.Store, in.Sweep, store.SweepReportDir(in.Sweep))
}
