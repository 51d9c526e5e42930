package workflows

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/workflows/spec"
)

const (
	testRun     = "bandit-1"
	testPrint   = "f00df00df00d"
	testTimeout = 20 * time.Second
)

// call is one execution of an activity, as the worker saw it.
type call struct {
	name, queue string
	input       any
}

// stage plays all activities: pure functions of their inputs, a device that
// holds one state, and a note of every call. Its methods have the activities'
// names, by which workflows call them.
type stage struct {
	plan       activities.Plan
	head       *activities.Head // what Resolve finds committed
	from       *activities.Head // another run's iteration that this one is forked from
	theirs     *activities.Head // what Find says of it
	base       bool             // the model is imported: no warm start
	teach      bool             // an imported model has a warm start
	model      bool             // an Evaluate measures a model, no run
	attributes bool
	warnings   []string // of Resolve
	// description is what the environment says of itself; "" is what it says at first.
	description string
	flags       *activities.Flags // of the worker that resolves
	// selected is the rows an iteration keeps; nil keeps 4.
	selected func(iteration int) int
	// parts are the rows of the iterations that share a rollout; more says after how many
	// rounds another is wanted.
	parts []int
	// success is that of each iteration's rollout in percent, where it is not 25.
	success []int
	more    func(rounds int) bool
	// pieces of each Generate, Score, Diagnose, Update and Snapshot; 0 is one.
	pieces int
	// passes are the turns of each update's passes; nil for one update.
	passes []int
	// gradNorm is an update's, by branch and iteration; nil gives none.
	gradNorm func(branch, iteration int) float64
	// alive is the episodes left after a turn; nil: all until the last.
	alive func(turn int) int
	// errors are an activity's answers to its first calls, nil for success.
	errors map[string][]error
	// stall is which execution of an activity never answers, from 1.
	stall map[string]int
	// stalls has a channel for each execution of Generate that answers nothing before it is closed, from the first on.
	stalls []chan struct{}
	// load is what Restore says of the worker's machine.
	load *activities.Load
	// damaged is what Restore says of snapshots.
	damaged []int
	// instead is what activities do instead of their work, by their id: it is set when
	// they begin, and holds for one try.
	instead map[string]func() error
	// print is the fingerprint of the device that answers; "" is testPrint.
	print string
	// build is what the workers' programs are; "" is "p".
	build string
	// took is the telemetry of steps, by session and name: "session-1 Update".
	took map[string]activities.Telemetry
	// restores are how many calls of Restore say that another is needed.
	restores int

	// helps is what the nth offer of a block to another worker comes to. helped are those that were
	// taken, late are blocks of the session by a version that is in memory no more.
	helps                func(n int, in activities.BlockInput) error
	offers, helped, late int
	// helperTook is what other workers say of each block that they take.
	helperTook activities.Telemetry

	mu       sync.Mutex
	calls    []call
	commits  []activities.CommitInput
	counts   map[string]int
	resident string
	begun    int // pieces of the update in memory
	over     chan struct{}
	// gate is closed when an activity that was held may begin; nil for others. See play.
	gate func(id string) <-chan struct{}
}

func testPlan() activities.Plan {
	t, err := spec.Decode([]byte(`{"environment": {"name": "bandit"}, "iterations": 3, "rollout": {"turns": 1, "groups": 4, "group_size": 4}}`),
		spec.Known{Environments: []string{"bandit"}})
	if err != nil {
		panic(err)
	}
	return activities.Plan{
		Iterations: 3, Turns: 1, Rows: 16, Environment: "bandit", Snapshot: spec.Snapshot{Every: 2},
		EvaluateEvery: 2, Suites: []activities.PlanSuite{{Name: "in-distribution", Turns: 1, Rows: 8}},
		ActivitySeconds: 30, Settings: spec.SettingsOf(t), Prepare: true, WarmStartSteps: 30,
	}
}

// ref is an artifact that says what it was made from.
func ref(kind string, inputs ...any) store.Ref {
	b, err := canon.Marshal(inputs)
	if err != nil {
		panic(err)
	}
	d := canon.Digest(append([]byte(kind), b...))
	return store.Ref{Key: "runs/" + testRun + "/" + kind + "." + d[:12], Digest: d, Size: 1}
}

// begin notes a call, and answers as the test wants it.
func (s *stage) begin(ctx context.Context, name string, input any) error {
	if s.gate != nil {
		if begun := s.gate(activity.GetInfo(ctx).ActivityID); begun != nil {
			select {
			case <-begun:
			case <-s.over:
				return errors.New("nobody hears this")
			}
		}
	}
	s.mu.Lock()
	s.counts[name]++
	n := s.counts[name]
	s.calls = append(s.calls, call{name: name, queue: activity.GetInfo(ctx).TaskQueue, input: input})
	var err error
	if answers := s.errors[name]; n <= len(answers) {
		err = answers[n-1]
	}
	// Counted by queue: the activity of a lost session may begin when another session's
	// has run, and must do nothing then; the other one must answer.
	queue := activity.GetInfo(ctx).TaskQueue
	s.counts[queue+" "+name]++
	id := activity.GetInfo(ctx).ActivityID
	instead := s.instead[id]
	delete(s.instead, id)
	stalled := s.stall[name] == s.counts[queue+" "+name] && !slices.Contains([]string{"session-2", "session-3"}, queue)
	var until chan struct{} = s.over
	if n := s.counts[queue+" "+name]; name == "Generate" && n <= len(s.stalls) {
		stalled, until = true, s.stalls[n-1]
	}
	s.mu.Unlock()
	if instead != nil {
		return instead()
	}
	if stalled {
		<-until
		return errors.New("nobody hears this")
	}
	return err
}

func (s *stage) Resolve(ctx context.Context, in activities.ResolveInput) (activities.ResolveResult, error) {
	out := activities.ResolveResult{Spec: ref("spec"), Plan: s.plan, Head: s.head, From: s.from, SearchAttributes: s.attributes, Flags: s.flags, Warnings: s.warnings}
	s.mu.Lock()
	described := specOf(s.description)
	s.mu.Unlock()
	if d := in.Describe; d != nil {
		out = activities.ResolveResult{Spec: d.Spec, Plan: s.plan}
		if d.Spec != described {
			out.Changed = "widest[0] is " + s.description
		}
		if d.Take {
			out.Spec = described
		}
		return out, s.begin(ctx, "Resolve", in)
	}
	if s.base {
		base := ref("base")
		out.Base, out.Plan.Prepare = &base, s.teach
	}
	return out, s.begin(ctx, "Resolve", in)
}

// specOf is the resolved spec with a description.
func specOf(description string) store.Ref {
	if description == "" {
		return ref("spec")
	}
	return ref("spec", description)
}

func (s *stage) Ask(ctx context.Context, in activities.AskInput) (activities.AskResult, error) {
	return activities.AskResult{Table: ref("ask", in.Rollout, in.Turn, in.Run.Spec)}, s.begin(ctx, "Ask", in)
}

func (s *stage) Load(ctx context.Context, in activities.LoadInput) (activities.LoadResult, error) {
	return activities.LoadResult{Plan: s.plan}, s.begin(ctx, "Load", in)
}

// Find answers from what was committed, on whatever branch it was last.
func (s *stage) Find(ctx context.Context, in activities.FindInput) (activities.LoadResult, error) {
	out := activities.LoadResult{Version: *in.Version}
	s.mu.Lock()
	if s.theirs != nil && *in.Version == s.plan.First {
		out.Head, out.Run.Spec = s.theirs, ref("spec", "theirs")
	}
	for _, c := range s.commits {
		if c.Iteration == *in.Version-1 {
			out.Head, out.Run.Spec = headOf(c, s.commits), c.Run.Spec
		}
	}
	s.mu.Unlock()
	return out, s.begin(ctx, "Find", in)
}

// newestSnapshot is the newest version at or before the one that an iteration made that has a
// snapshot.
func newestSnapshot(commits []activities.CommitInput, iteration int) int {
	version := 0
	for _, c := range commits {
		if c.Snapshot != nil && c.Iteration <= iteration {
			version = max(version, c.Snapshot.Version)
		}
	}
	return version
}

func (s *stage) ResolveEvaluation(ctx context.Context, in activities.ResolveEvaluationInput) (activities.LoadResult, error) {
	out := activities.LoadResult{Plan: s.plan}
	if s.model {
		out.Run = activities.Run{ID: in.ID, Spec: ref("spec"), Base: ref("base")}
	} else {
		out.Run = activities.Run{ID: "other-run", Spec: ref("spec"), Base: ref("base")}
		out.Version, out.State, out.Fingerprint = 2, "s2", testPrint
		out.Head = &activities.Head{Manifest: ref("manifest"), Iteration: 1, State: "s2", Fingerprint: testPrint}
	}
	return out, s.begin(ctx, "ResolveEvaluation", in)
}

func (s *stage) Describe(ctx context.Context) (activities.DeviceInfo, error) {
	s.mu.Lock()
	print := cmp.Or(s.print, testPrint)
	s.mu.Unlock()
	return activities.DeviceInfo{Fingerprint: print, Fields: json.RawMessage(`{"platform":"cpu"}`)}, s.begin(ctx, "Describe", nil)
}

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

// names are the calls in order, without those that names exclude.
func (s *stage) names(without ...string) []string {
	var out []string
	for _, c := range s.calls {
		if !slices.Contains(without, c.name) {
			out = append(out, c.name)
		}
	}
	return out
}

// inputs are the inputs of an activity's calls.
func inputs[T any](s *stage, name string) []T {
	var out []T
	for _, c := range s.calls {
		if c.name == name {
			out = append(out, c.input.(T))
		}
	}
	return out
}
