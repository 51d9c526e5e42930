package workflows

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
)

// The answers of a stage's steps, from the warm start to the commit.

func (s *stage) WarmStart(ctx context.Context, in activities.WarmStartInput) (activities.WarmStartResult, error) {
	out := activities.WarmStartResult{Steps: 10}
	if in.From != nil {
		out.Steps += in.From.Version
	}
	if out.Steps < s.plan.WarmStartSteps {
		out.Snapshot = &store.SnapshotRef{Version: out.Steps, Dir: "models/starter", State: fmt.Sprintf("w%d", out.Steps)}
	} else {
		base := ref("base")
		out.Base = &base
	}
	return out, s.begin(ctx, "WarmStart", in)
}

func (s *stage) Restore(ctx context.Context, in activities.RestoreInput) (activities.RestoreResult, error) {
	if err := s.begin(ctx, "Restore", in); err != nil {
		return activities.RestoreResult{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	before := in.Version.State
	if before == "" {
		before = "s0"
	}
	out := activities.RestoreResult{Load: s.load, Damaged: s.damaged, State: before, Before: before, Done: true, Programs: map[string]string{"turn-1.decode": cmp.Or(s.build, "p")}}
	for _, c := range slices.Backward(s.commits) {
		if c.Iteration != in.Version.Version-1 {
			continue
		}
		if err := activities.SamePrograms(c.Programs, out.Programs); err != nil && !in.Adopt {
			return out, temporal.NewNonRetryableApplicationError(err.Error(), activities.KindProgramsDiffer, nil, err)
		}
		break
	}
	for _, p := range in.Passed {
		out.State = p.State
	}
	if in.Pending != nil {
		out.State = in.Pending.State
	}
	out.Telemetry = s.tookBy(ctx, "Restore")
	out.Telemetry.Recomputed = 1
	if s.counts["Restore"] <= s.restores {
		out.Done = false
		return out, nil
	}
	s.resident = out.State
	return out, nil
}

// holds is what the real device checks before it computes.
func (s *stage) holds(v activities.Version) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.resident != v.State {
		return temporal.NewNonRetryableApplicationError("held is "+s.resident+", wanted "+v.State, activities.KindNotResident, nil)
	}
	return nil
}

func (s *stage) Generate(ctx context.Context, in activities.GenerateInput) (activities.GenerateResult, error) {
	if err := s.begin(ctx, "Generate", in); err != nil {
		return activities.GenerateResult{}, err
	}
	return activities.GenerateResult{Table: ref("generate", in), More: len(in.Pieces)+1 < s.pieces}, s.holds(in.Policy)
}

func (s *stage) Step(ctx context.Context, in activities.StepInput) (activities.StepResult, error) {
	alive := 16
	if s.alive != nil {
		alive = s.alive(in.Turn)
	}
	return activities.StepResult{Table: ref("step", in), Alive: alive}, s.begin(ctx, "Step", in)
}

func (s *stage) Select(ctx context.Context, in activities.SelectInput) (activities.SelectResult, error) {
	rows := 4
	if s.selected != nil {
		rows = s.selected(in.Rollout.Iteration)
	}
	if s.more != nil && s.more(in.Turns[len(in.Turns)-1].Round+1) {
		return activities.SelectResult{More: true}, s.begin(ctx, "Select", in)
	}
	for _, n := range s.parts {
		rows += n
	}
	metrics := activities.Metrics{"reward/mean": 0.5, "success/mean": 0.25}
	if n := in.Rollout.Iteration; n < len(s.success) {
		metrics["success/mean"] = canon.Float(float64(s.success[n]) / 100)
	}
	if s.plan.StopTokens > 0 {
		metrics[activities.SampledTokens] = 100
	}
	return activities.SelectResult{
		Trajectories: ref("trajectories", in), Rows: rows, Parts: s.parts, Metrics: metrics,
	}, s.begin(ctx, "Select", in)
}

func (s *stage) Measure(ctx context.Context, in activities.MeasureInput) (activities.MeasureResult, error) {
	t := ref("measured", in)
	return activities.MeasureResult{Evaluation: store.EvaluationRef{
		Version: in.Version, Suite: in.Rollout.Evaluation.Suite, State: in.State, Turns: in.Turns, Trajectories: &t, Metrics: activities.Metrics{"success/mean": 0.5},
	}}, s.begin(ctx, "Measure", in)
}

func (s *stage) Score(ctx context.Context, in activities.ScoreInput) (activities.ScoreResult, error) {
	if err := s.begin(ctx, "Score", in); err != nil {
		return activities.ScoreResult{}, err
	}
	if len(in.Pieces)+1 < s.pieces {
		return activities.ScoreResult{Scores: ref("scores", in), More: true}, s.holds(in.Policy)
	}
	return activities.ScoreResult{Scores: ref("scores", in), Metrics: activities.Metrics{"actor/entropy": 1}}, s.holds(in.Policy)
}

func (s *stage) Diagnose(ctx context.Context, in activities.DiagnoseInput) (activities.DiagnoseResult, error) {
	if err := s.begin(ctx, "Diagnose", in); err != nil {
		return activities.DiagnoseResult{}, err
	}
	if len(in.Pieces)+1 < s.pieces {
		piece := ref("diagnosis", in)
		return activities.DiagnoseResult{Piece: &piece}, s.holds(in.Policy)
	}
	return activities.DiagnoseResult{Metrics: activities.Metrics{"diagnosed": 1}}, s.holds(in.Policy)
}

func (s *stage) Grade(ctx context.Context, in activities.GradeInput) (activities.GradeResult, error) {
	return activities.GradeResult{Table: ref("grades", in)}, s.begin(ctx, "Grade", in)
}

func (s *stage) Report(ctx context.Context, in activities.ReportInput) (activities.ReportResult, error) {
	return activities.ReportResult{Location: "s3://bucket/runs/" + in.Run + "/report/index.html"}, s.begin(ctx, "Report", in)
}

func (s *stage) Credit(ctx context.Context, in activities.CreditInput) (activities.CreditResult, error) {
	var out activities.CreditResult
	if in.Scores != nil {
		batch := ref("batch", in)
		out.Batch = &batch
		if in.Pass == nil {
			out.Turns = s.passes
		} else {
			corrections := ref("corrections", in)
			out.Corrections = &corrections
		}
	}
	if in.Settings.Credit.ObservesStates() {
		out.Tables = activities.Tables{activities.StatesTable.Name: ref("states", in)}
	}
	return out, s.begin(ctx, "Credit", in)
}

func (s *stage) Update(ctx context.Context, in activities.UpdateInput) (activities.UpdateResult, error) {
	if err := s.begin(ctx, "Update", in); err != nil {
		return activities.UpdateResult{}, err
	}
	if err := s.holds(in.Policy); err != nil {
		return activities.UpdateResult{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	begun := activities.BegunUpdate{Of: s.pieces}
	if in.Begun != nil {
		begun = *in.Begun
	}
	if begun.Done > s.begun {
		return activities.UpdateResult{}, temporal.NewNonRetryableApplicationError("it does not follow on what is in memory", activities.KindNotResident, nil)
	}
	took := s.tookBy(ctx, "Update")
	if begun.Done == 0 && begun.Lost > 0 && s.begun == 0 {
		took.Recomputed = 1
	}
	if begun.Done == s.begun && s.begun+1 >= s.pieces {
		begun.Of, s.begun = 0, 0
	} else if begun.Done == s.begun {
		s.begun++
	}
	if begun.Of > 0 {
		begun.Done = s.begun
		return activities.UpdateResult{Begun: &begun, Telemetry: took}, nil
	}
	s.resident = ref("state", in.Policy.State, in.Batch, in.Settings).Digest[:8]
	return activities.UpdateResult{
		State: s.resident, Counts: store.UpdateCounts{Rows: 4, Tokens: 8, MicroBatches: 1},
		Metrics: s.figures(in.Policy), Telemetry: took,
	}, nil
}

// tookBy is the telemetry of a step in its session.
func (s *stage) tookBy(ctx context.Context, name string) activities.Telemetry {
	return s.took[activity.GetInfo(ctx).TaskQueue+" "+name]
}

// figures are an update's.
func (s *stage) figures(v activities.Version) activities.Metrics {
	m := activities.Metrics{"actor/loss": canon.Float(0.125)}
	if s.gradNorm != nil {
		m["actor/grad_norm"] = canon.Float(s.gradNorm(v.Branch, v.Version))
	}
	return m
}

func (s *stage) Snapshot(ctx context.Context, in activities.SnapshotInput) (activities.SnapshotResult, error) {
	if err := s.begin(ctx, "Snapshot", in); err != nil {
		return activities.SnapshotResult{}, err
	}
	stored := store.SnapshotRef{Version: in.Policy.Version, Dir: "snapshots/" + in.Policy.State, State: in.Policy.State}
	begun := activities.BegunSnapshot{Snapshot: stored}
	if in.Begun != nil {
		begun.Sent = in.Begun.Sent + 1
	}
	if begun.Sent+1 < s.pieces {
		return activities.SnapshotResult{Begun: &begun}, s.holds(in.Policy)
	}
	return activities.SnapshotResult{Snapshot: stored}, s.holds(in.Policy)
}

func (s *stage) Commit(ctx context.Context, in activities.CommitInput) (activities.CommitResult, error) {
	if err := s.begin(ctx, "Commit", in); err != nil {
		return activities.CommitResult{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.commits = append(s.commits, in)
	in.Timings, in.Lost, in.Costs, in.LostSessions = nil, 0, nil, nil // telemetry is not in the manifest
	return activities.CommitResult{Manifest: ref("manifest", in)}, nil
}
