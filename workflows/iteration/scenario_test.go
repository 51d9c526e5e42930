package iteration

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/steps"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/model/methods/methodstest"
	"github.com/reprise-rl/reprise/workflows/collapse"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// scenario is an iteration to run, and what its steps answer: functions of their inputs
// alone.
type scenario struct {
	start    Start
	settings spec.Settings
	shared   *activities.Rolled // the rollout that it learns from; nil if it rolls out
	rounds   int                // Select asks for more before there are so many
	rows     []int              // rows selected, for each iteration that learns from the rollout
	pieces   int                // of each step that can be in pieces; 0 is one
	gradNorm float64
	small    bool  // no row is worth a step
	turns    []int // of the passes of an update; nil if it has one
	earlier  bool  // the host worker is of an earlier release
}

// state is a new iteration's.
func (sc *scenario) state() *State {
	if sc.start.Head != nil && sc.start.Head.NextRollout != nil {
		return BeginAfter(sc.start.Head, sc.settings)
	}
	return Begin(sc.settings, sc.shared)
}

// settings are a small run's, with an algorithm that gives advantages.
func settings(algorithm string) spec.Settings {
	t, err := spec.Decode([]byte(`{"environment": {"name": "bandit"}, "iterations": 3, "rollout": {"turns": 1, "groups": 4, "group_size": 4}}`),
		spec.Known{Environments: []string{"bandit"}})
	if err != nil {
		panic(err)
	}
	s := spec.SettingsOf(t)
	if algorithm != "" {
		s.Credit.Algorithm = algorithm
	}
	return s
}

// everything is an iteration that has each part due: it begins a run, and detectors
// look at it.
func everything() *scenario {
	return &scenario{
		start: Start{
			Run: activities.Run{ID: "run", Spec: ref("spec"), Base: ref("base")},
			Plan: activities.Plan{
				Turns: 2, Rows: 16, Suites: []activities.PlanSuite{{Name: "near", Turns: 2, Rows: 8}, {Name: "far", Turns: 1, Rows: 8}},
				Diagnostics: spec.Diagnostics{Every: 1, Samples: 2}, Collapse: collapse.Defaults(),
			},
			Policy: "s0", Due: Due{Baseline: true, Snapshot: true, Evaluate: true}, Fingerprint: "f00d",
		},
		settings: settings(""), rounds: 1, rows: []int{4}, gradNorm: 1,
	}
}

// random is an iteration of any kind of run.
func random(r *rand.Rand) *scenario {
	one := func(n int) bool { return r.IntN(n) == 0 }
	sc := everything()
	sc.rounds, sc.rows = 1+r.IntN(3), []int{r.IntN(5)}
	if one(3) {
		sc.settings = settings("state_baseline")
	}
	if one(2) {
		sc.gradNorm = math.Inf(1)
	}
	sc.pieces = r.IntN(4)
	s := &sc.start
	s.Branch, s.Number = r.IntN(2), r.IntN(4)
	s.Plan.Turns = 1 + r.IntN(3)
	s.Plan.Suites = s.Plan.Suites[:r.IntN(3)]
	s.Plan.Diagnostics.Every = r.IntN(3)
	switch r.IntN(3) {
	case 0:
		s.Plan.Collapse = collapse.Config{} // a release without detectors
	case 1:
		s.Plan.Collapse.OnDetection = []collapse.Action{collapse.Stop, collapse.RollBack}[r.IntN(2)]
	}
	measured := len(s.Plan.Suites) > 0
	s.Due = Due{Baseline: measured && one(2), Snapshot: one(2), Evaluate: measured && one(2)}
	s.Plan.Freshness = []spec.Freshness{
		{}, {Online: 1, Reuse: 1, ReplayIterations: 2, ReplayShare: 0.5}, {Online: 2, Reuse: 1}, {Online: 3, Reuse: 1, ReplayIterations: 1}, {Online: 1, Reuse: 2},
	}[r.IntN(5)]
	for range s.Plan.Freshness.Updates() - 1 {
		sc.rows = append(sc.rows, r.IntN(3))
	}
	if s.Number > 0 {
		s.Head = &activities.Head{Manifest: ref("manifest"), Iteration: s.Number - 1}
		s.Previous = activities.Metrics{"reward/mean_ema": 0.25, "success/mean_ema": 0.5, "actor/entropy_ema": 2}
		if d := s.Plan.Detect(activities.Detected{}, s.Number-1, activities.Metrics{"actor/grad_norm": 1}, nil); d != nil {
			s.Before = *d
		}
		for n := range r.IntN(3) {
			s.Head.Batches = append(s.Head.Batches, ref("batch", n))
		}
		if one(2) {
			s.Head.Tables = activities.Tables{activities.StatesTable.Name: ref("states")}
		}
		if updates := len(sc.rows); updates > 1 && one(2) {
			scores := ref("scores")
			sc.shared = &activities.Rolled{
				RolloutRef:   store.RolloutRef{Iteration: s.Number - 1, Update: 1, Updates: updates, Rows: sc.rows},
				Trajectories: ref("trajectories"), Scores: &scores,
			}
		}
	}
	if one(3) {
		sc.settings.Selection.Metric = "exact_entropy"
	}
	sc.small = one(8)
	s.Plan.Foreign = one(3)
	for i := range s.Plan.Suites {
		s.Plan.Suites[i].Foreign = one(3)
	}
	if s.Plan.Judged = one(3); s.Plan.Judged && s.Plan.Foreign { // no draw of its own, so that the scenarios stay
		s.Plan.Questions = 16
	}
	if one(3) {
		s.Plan.Workers, s.Plan.BlockRows = 2, 4+r.IntN(16)
	}
	if len(sc.rows) == 1 && s.Plan.Freshness.ReplayIterations == 0 {
		sc.turns = [][]int{nil, {3, 2, 1}, {4, 1}, {1}}[r.IntN(4)]
	}
	if s.Plan.Search = []string{"", "", "beam", "best_of_n"}[r.IntN(4)]; !methodstest.There(s.Plan.Search) {
		s.Plan.Search = ""
	}
	if len(sc.rows) == 1 && s.Plan.Freshness.Rounds() < 2 && sc.rounds == 1 && sc.turns == nil && s.Plan.Search == "" {
		sc.lags(r)
	}
	sc.earlier = one(3)
	s.Plan.ScoredBySampler = s.Plan.Lag == 0 && !sc.earlier && one(3)
	s.Plan.Tools = one(3)
	for i := range s.Plan.Suites {
		s.Plan.Suites[i].Tools = one(3)
	}
	return sc
}

// lags has the iteration make the next one's rollout, and learn from the rollout that the one before has
// made for it.
func (sc *scenario) lags(r *rand.Rand) {
	s := &sc.start
	if s.Plan.Lag = 1; r.IntN(2) == 0 {
		s.Plan.Workers, s.Plan.BlockRows, s.Plan.Beside = 2, 4+r.IntN(8), r.IntN(4) > 0
	}
	if r.IntN(4) > 0 {
		next := sc.settings
		next.Rollout.Temperature /= 2
		s.NextSettings = &next
	}
	if s.Head != nil && r.IntN(4) > 0 {
		before := sc.settings
		before.Rollout.Temperature *= 2
		s.Head.NextRollout = &activities.NextRollout{
			Settings: before, Turns: []store.TurnRefs{{Generate: ref("generate"), Step: ref("step")}}, By: store.VersionRef{Version: s.Number - 1, State: "before"},
		}
	}
}

// ref is an artifact that says what it was made from.
func ref(kind string, inputs ...any) store.Ref {
	b, err := canon.Marshal(inputs)
	if err != nil {
		panic(err)
	}
	d := canon.Digest(append([]byte(kind), b...))
	return store.Ref{Key: kind + "." + d[:12], Digest: d, Size: 1}
}

// result is a step's answer. Telemetry is in small whole numbers, so that no sum of
// them depends on its order.
func (sc *scenario) result(c Call) any {
	of := ref(c.Name, c.Input)
	took := activities.Telemetry{Seconds: float64(of.Digest[0] % 8), WaitSeconds: float64(of.Digest[1] % 8), Tokens: int(of.Digest[2])}
	figure := canon.Float(of.Digest[3] % 8)
	switch in := c.Input.(type) {
	case activities.GenerateInput:
		return &activities.GenerateResult{Table: of, More: len(in.Pieces)+1 < sc.pieces && in.Blocks == nil, Telemetry: took}
	case activities.PublishInput:
		return &activities.PublishResult{Published: activities.Published{Files: map[string]store.Ref{"a": of}, Sampler: of.Digest}, Telemetry: took}
	case activities.BlockInput:
		return &activities.BlockResult{Table: of, Telemetry: took}
	case activities.JoinInput:
		return &activities.GenerateResult{Table: of, Telemetry: took}
	case activities.AskInput:
		return &activities.AskResult{Table: of, Telemetry: took}
	case activities.CallToolsInput:
		return &activities.CallToolsResult{Table: of, Telemetry: took}
	case activities.JudgeInput:
		if sc.start.Plan.Questions > 0 && in.Turns[len(in.Turns)-1].Questions == nil {
			out := &activities.JudgeResult{Telemetry: took}
			for piece := range sc.pieces {
				out.Questions = append(out.Questions, ref("questions", in, piece))
			}
			return out
		}
		return &activities.JudgeResult{Table: of, Telemetry: took}
	case activities.GradeInput:
		return &activities.GradeResult{Table: of, Telemetry: took}
	case activities.StepInput:
		return &activities.StepResult{Table: of, Alive: int(of.Digest[0] % 4), Telemetry: took} // sometimes no episode is left
	case activities.ChooseInput:
		return &activities.ChooseResult{Table: of, Over: of.Digest[0]%4 == 0, Telemetry: took}
	case activities.SelectInput:
		if in.Everything {
			return &activities.SelectResult{Trajectories: of, Rows: 16, Telemetry: took}
		}
		if in.Turns[len(in.Turns)-1].Round+1 < sc.rounds {
			return &activities.SelectResult{More: true, Telemetry: took}
		}
		out := &activities.SelectResult{Trajectories: of, Metrics: activities.Metrics{"reward/mean": figure, "success/mean": figure / 8}, Telemetry: took}
		for _, n := range sc.rows {
			out.Rows += n
		}
		if len(sc.rows) > 1 {
			out.Parts = sc.rows
		}
		if sc.start.Plan.ScoredBySampler && out.Rows > 0 {
			out.Scored = &activities.ScoreResult{Scores: ref("scores", c.Input), Metrics: activities.Metrics{"actor/entropy": figure}}
		}
		if in.Credit != nil && !sc.earlier && (in.Credit.Scores != nil || out.Scored != nil) && in.Credit.Due(sc.rows[0]) {
			credit := Call{Routing: steps.Credit.Routing, Input: in.Credit.Of(*out, out.Shared(in.Branch, in.Rollout.Iteration))}
			out.Credited = sc.result(credit).(*activities.CreditResult)
		}
		return out
	case activities.ScoreInput:
		if len(in.Pieces)+1 < sc.pieces {
			return &activities.ScoreResult{Scores: of, More: true, Telemetry: took}
		}
		return &activities.ScoreResult{Scores: of, Metrics: activities.Metrics{"actor/entropy": figure}, Telemetry: took}
	case activities.DiagnoseInput:
		if len(in.Pieces)+1 < sc.pieces {
			return &activities.DiagnoseResult{Piece: &of, Telemetry: took}
		}
		return &activities.DiagnoseResult{Metrics: activities.Metrics{"diagnosed": figure}, Telemetry: took}
	case activities.CreditInput:
		out := &activities.CreditResult{Metrics: activities.Metrics{"credit/mean": figure}, Telemetry: took}
		if in.Scores != nil && !sc.small && (in.Rollout == nil || in.Rollout.Rows[in.Rollout.Update] > 0) {
			out.Batch = &of
			if in.Pass == nil {
				out.Turns = sc.turns
			} else {
				corrections := ref("corrections", in)
				out.Corrections = &corrections
			}
		}
		if in.Settings.Credit.Algorithm == "state_baseline" {
			out.Tables = activities.Tables{activities.StatesTable.Name: ref("states", c.Input)}
		}
		return out
	case activities.UpdateInput:
		begun := activities.BegunUpdate{Done: 1, Of: sc.pieces}
		if in.Begun != nil {
			begun.Done += in.Begun.Done
		}
		if begun.Done < sc.pieces {
			return &activities.UpdateResult{Begun: &begun, Telemetry: took}
		}
		return &activities.UpdateResult{
			State: of.Digest[:8], Counts: store.UpdateCounts{Rows: 4, MicroBatches: 1},
			Metrics: activities.Metrics{"actor/loss": figure, "actor/grad_norm": canon.Float(sc.gradNorm)}, Telemetry: took,
		}
	case activities.SnapshotInput:
		begun := activities.BegunSnapshot{Snapshot: store.SnapshotRef{Dir: "begun", Files: map[string]store.Ref{"a": of, "b": of}}}
		if in.Begun != nil {
			begun.Sent = in.Begun.Sent + 1
		}
		if begun.Sent+1 < sc.pieces {
			return &activities.SnapshotResult{Begun: &begun, Telemetry: took}
		}
		return &activities.SnapshotResult{Snapshot: store.SnapshotRef{Version: in.Policy.Version, Dir: of.Key, State: in.Policy.State}, Telemetry: took}
	case activities.MeasureInput:
		return &activities.MeasureResult{Evaluation: store.EvaluationRef{
			Version: in.Version, Suite: in.Rollout.Evaluation.Suite, State: in.State, Turns: in.Turns, Trajectories: &of,
			Metrics: map[string]canon.Float{"success/mean": figure / 8},
		}, Telemetry: took}
	case activities.CommitInput:
		return &activities.CommitResult{Manifest: of, Telemetry: took}
	case struct{}:
		return c.NewResult() // the detectors' own
	}
	panic(fmt.Sprintf("no answer for %s", c.Name))
}

func encoded(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}
