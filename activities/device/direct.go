package device

import (
	"context"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/host"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// Direct calls the activities one after the other in this process, without
// Temporal: what replay and the bench do. The decisions are the caller's.
type Direct struct {
	Host   *host.Host
	Device *Device
}

// Iteration says what one iteration does besides training.
type Iteration struct {
	Run      activities.Run
	Plan     activities.Plan
	Branch   int
	Number   int
	Parent   *store.Ref // manifest of the iteration before
	State    string     // state fingerprint of version Number
	Settings spec.Settings
	Programs map[string]string
	// Baseline evaluates version Number first; Evaluate version Number+1 after
	// the update; Snapshot stores it.
	Baseline, Evaluate, Snapshot bool
	// States is the table of initial states' values before the iteration, where the
	// run keeps one.
	States *store.Ref
	// Rolled is the rollout that the iteration shares with one before; nil where it
	// rolls out. Replay are the batches that a replay buffer draws from.
	Rolled *activities.Rolled
	Replay []store.Ref
	// Previous are the metrics of the iteration before.
	Previous activities.Metrics
	// Before is what the detectors knew before the iteration; Opened why its branch
	// was opened, where it is the first of one.
	Before activities.Detected
	Opened *activities.Opened
	// Took, where set, is told each step's name and what it measured.
	Took func(step string, t activities.Telemetry)
}

// Iterate does an iteration up to its commit, whose input it gives.
func (d *Direct) Iterate(ctx context.Context, it Iteration) (activities.CommitInput, error) {
	if it.Took == nil {
		it.Took = func(string, activities.Telemetry) {}
	}
	info := d.Device.Engine.Info()
	out := activities.CommitInput{
		Run: it.Run, Branch: it.Branch, Iteration: it.Number, Parent: it.Parent, Settings: it.Settings,
		Fingerprint: info.Fingerprint, Device: info.Fields, Programs: it.Programs,
		StateBefore: it.State, StateAfter: it.State, States: it.States, Metrics: activities.Metrics{}, Timings: map[string]activities.Telemetry{},
	}
	if it.Baseline {
		if err := d.evaluate(ctx, it, it.Number, it.State, &out); err != nil {
			return out, err
		}
	}
	version := activities.Version{Run: it.Run, Branch: it.Branch, Version: it.Number, State: it.State}
	rows := 0 // that the iteration learns from
	if r := it.Rolled; r != nil {
		out.Rollout, out.Trajectories, out.Scores, rows = &r.RolloutRef, r.Trajectories, r.Scores, r.Rows[r.Update]
	} else {
		var err error
		if rows, err = d.rollOut(ctx, it, version, &out); err != nil {
			return out, err
		}
	}
	if it.Rolled == nil && it.Plan.Diagnostics.Due(it.Number) {
		d, err := d.Device.Diagnose(ctx, activities.DiagnoseInput{
			Policy: version, Iteration: it.Number, Settings: it.Settings, Trajectories: out.Trajectories, Before: activities.Averages(it.Previous),
		})
		if err != nil {
			return out, err
		}
		it.Took("diagnose", d.Telemetry)
		addMetrics(&out, d.Metrics)
	}
	if host.Credits(it.Settings, out.Rollout, rows) {
		if err := d.learn(ctx, it, version, &out); err != nil {
			return out, err
		}
	}
	if out.Batch == nil {
		out.Update = store.UpdateCounts{Skipped: true, SkippedTotal: 1}
	}
	if it.Snapshot {
		s, err := d.Device.Snapshot(ctx, activities.SnapshotInput{Policy: next(version, out.StateAfter)})
		if err != nil {
			return out, err
		}
		it.Took("snapshot", s.Telemetry)
		out.Snapshot = &s.Snapshot
	}
	out.Opened = it.Opened
	if it.Evaluate {
		if err := d.evaluate(ctx, it, it.Number+1, out.StateAfter, &out); err != nil {
			return out, err
		}
	}
	it.Plan.Smooth(it.Previous, out.Metrics)
	out.Detected = it.Plan.Detect(it.Before, it.Number, out.Metrics, out.Evaluations)
	return out, nil
}

// next is the version that an update of v made.
func next(v activities.Version, state string) activities.Version {
	v.Version, v.State = v.Version+1, state
	return v
}

func addMetrics(c *activities.CommitInput, m activities.Metrics) {
	for k, v := range m {
		c.Metrics[k] = v
	}
}

// rollOut makes the iteration's trajectories, in rounds, and scores the selected. It
// gives the number of rows that the iteration learns from.
func (d *Direct) rollOut(ctx context.Context, it Iteration, version activities.Version, out *activities.CommitInput) (rows int, err error) {
	var selected activities.SelectResult
	for round := 0; round == 0 || round < it.Plan.Freshness.Rounds() || selected.More; round++ {
		r := activities.Rollout{Iteration: it.Number, Round: round}
		turns, err := d.roll(ctx, it, r, version, it.Plan.Turns)
		if err != nil {
			return 0, err
		}
		out.Turns = append(out.Turns, turns...)
		if round+1 < it.Plan.Freshness.Rounds() {
			continue
		}
		selected, err = d.Host.Select(ctx, activities.SelectInput{
			Run: it.Run, Branch: it.Branch, Rollout: activities.Rollout{Iteration: it.Number}, Settings: it.Settings, Turns: out.Turns,
		})
		if err != nil {
			return 0, err
		}
		it.Took("select", selected.Telemetry)
	}
	out.Trajectories, out.Rollout = selected.Trajectories, selected.Shared(it.Branch, it.Number)
	rows = selected.Rows
	if selected.Parts != nil {
		rows = selected.Parts[0]
	}
	addMetrics(out, selected.Metrics)
	if selected.Rows == 0 {
		return 0, nil
	}
	scored, err := d.Device.Score(ctx, activities.ScoreInput{
		Policy: version, Iteration: it.Number, Settings: it.Settings, Trajectories: selected.Trajectories,
	})
	if err != nil {
		return 0, err
	}
	it.Took("score", scored.Telemetry)
	out.Scores = &scored.Scores
	addMetrics(out, scored.Metrics)
	return rows, nil
}

// learn is credit, and the update where there is something to learn from.
func (d *Direct) learn(ctx context.Context, it Iteration, version activities.Version, out *activities.CommitInput) error {
	credited, err := d.Host.Credit(ctx, activities.CreditInput{
		Run: it.Run, Branch: it.Branch, Iteration: it.Number, Settings: it.Settings,
		Trajectories: out.Trajectories, Scores: out.Scores, Rollout: out.Rollout, Replay: it.Replay, States: it.States,
	})
	if err != nil {
		return err
	}
	it.Took("credit", credited.Telemetry)
	if out.States = credited.States; credited.Batch == nil {
		return nil
	}
	updated, err := d.Device.Update(ctx, activities.UpdateInput{Policy: version, Batch: *credited.Batch, Settings: it.Settings})
	if err != nil {
		return err
	}
	it.Took("update", updated.Telemetry)
	out.Batch, out.Update, out.StateAfter = credited.Batch, updated.Counts, updated.State
	addMetrics(out, credited.Metrics)
	addMetrics(out, updated.Metrics)
	return nil
}

// roll makes a rollout's episodes, of at most so many turns.
func (d *Direct) roll(ctx context.Context, it Iteration, r activities.Rollout, policy activities.Version, most int) ([]store.TurnRefs, error) {
	prefix := ""
	if r.Evaluation != nil {
		prefix = "evaluation."
	}
	var turns []store.TurnRefs
	for turn := 1; turn <= most; turn++ {
		g, err := d.Device.Generate(ctx, activities.GenerateInput{Policy: policy, Rollout: r, Settings: it.Settings, Turn: turn, Turns: turns})
		if err != nil {
			return nil, err
		}
		it.Took(prefix+"generate", g.Telemetry)
		s, err := d.Host.Step(ctx, activities.StepInput{Run: it.Run, Branch: it.Branch, Rollout: r, Turn: turn, Turns: turns, Generate: g.Table})
		if err != nil {
			return nil, err
		}
		it.Took(prefix+"step", s.Telemetry)
		turns = append(turns, store.TurnRefs{Round: r.Round, Generate: g.Table, Step: s.Table})
		if s.Alive == 0 {
			break
		}
	}
	return turns, nil
}

// evaluate measures a version on the run's suites.
func (d *Direct) evaluate(ctx context.Context, it Iteration, version int, state string, out *activities.CommitInput) error {
	for _, suite := range it.Plan.Suites {
		r := activities.Rollout{Iteration: version, Evaluation: &activities.EvaluationOf{Suite: suite.Name}}
		turns, err := d.roll(ctx, it, r, activities.Version{Run: it.Run, Branch: it.Branch, Version: version, State: state}, suite.Turns)
		if err != nil {
			return err
		}
		m, err := d.Host.Measure(ctx, activities.MeasureInput{
			Run: it.Run, Branch: it.Branch, Rollout: r, Version: version, State: state, Fingerprint: out.Fingerprint, Turns: turns,
		})
		if err != nil {
			return err
		}
		it.Took("evaluation.measure", m.Telemetry)
		out.Evaluations = append(out.Evaluations, m.Evaluation)
	}
	return nil
}
