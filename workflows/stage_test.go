package workflows

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/workflows/spec"
)

const (
	testRun     = "bandit-1"
	testPrint   = "f00d"
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
	base       bool             // the model is imported: no warm start
	attributes bool
	// selected is the rows an iteration keeps; nil keeps 4.
	selected func(iteration int) int
	// alive is the episodes left after a turn; nil: all until the last.
	alive func(turn int) int
	// errors are an activity's answers to its first calls, nil for success.
	errors map[string][]error
	// stall is which execution of an activity never answers, from 1.
	stall map[string]int
	// restores are how many calls of Restore say that another is needed.
	restores int

	mu       sync.Mutex
	calls    []call
	commits  []activities.CommitInput
	counts   map[string]int
	resident string
	over     chan struct{}
}

func testPlan() activities.Plan {
	t, err := spec.Decode([]byte(`{"environment": {"name": "bandit"}, "iterations": 3, "rollout": {"turns": 1, "groups": 4, "group_size": 4}}`),
		spec.Known{Environments: []string{"bandit"}})
	if err != nil {
		panic(err)
	}
	return activities.Plan{
		Iterations: 3, Turns: 1, Rows: 16, Environment: "bandit", Snapshot: spec.Snapshot{Every: 2},
		Evaluation:      spec.Evaluation{Every: 2, Seed: 1, Instances: 8, Samples: 1},
		ActivitySeconds: 30, Settings: spec.SettingsOf(t), WarmStartSteps: 30,
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
	s.mu.Lock()
	s.counts[name]++
	n := s.counts[name]
	s.calls = append(s.calls, call{name: name, queue: activity.GetInfo(ctx).TaskQueue, input: input})
	var err error
	if answers := s.errors[name]; n <= len(answers) {
		err = answers[n-1]
	}
	// Counted by queue: the activity of a lost session may begin when another
	// session's has run, and must do nothing then; the other one has to answer.
	queue := activity.GetInfo(ctx).TaskQueue
	s.counts[queue+" "+name]++
	stalled := s.stall[name] == s.counts[queue+" "+name] && !slices.Contains([]string{"session-2", "session-3"}, queue)
	s.mu.Unlock()
	if stalled {
		<-s.over
		return errors.New("nobody hears this")
	}
	return err
}

func (s *stage) Resolve(ctx context.Context, in activities.ResolveInput) (activities.ResolveResult, error) {
	out := activities.ResolveResult{Spec: ref("spec"), Plan: s.plan, Head: s.head, SearchAttributes: s.attributes}
	if s.base {
		base := ref("base")
		out.Base = &base
	}
	return out, s.begin(ctx, "Resolve", in)
}

func (s *stage) Load(ctx context.Context, in activities.LoadInput) (activities.LoadResult, error) {
	out := activities.LoadResult{Plan: s.plan}
	if in.Spec == nil {
		out.Run = activities.Run{ID: in.Run, Spec: ref("spec"), Base: ref("base")}
		out.Version, out.State, out.Fingerprint = 2, "s2", testPrint
		out.Head = &activities.Head{Manifest: ref("manifest"), Iteration: 1, State: "s2", Fingerprint: testPrint}
	}
	return out, s.begin(ctx, "Load", in)
}

func (s *stage) Describe(ctx context.Context) (activities.DeviceInfo, error) {
	return activities.DeviceInfo{Fingerprint: testPrint, Fields: json.RawMessage(`{"platform":"cpu"}`)}, s.begin(ctx, "Describe", nil)
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
	out := activities.RestoreResult{State: before, Before: before, Done: true, Programs: map[string]string{"turn-1.decode": "p"}}
	if in.Pending != nil {
		out.State = in.Pending.State
	}
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
	return activities.GenerateResult{Table: ref("generate", in)}, s.holds(in.Policy)
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
	return activities.SelectResult{
		Trajectories: ref("trajectories", in), Rows: rows,
		Metrics: activities.Metrics{"reward/mean": 0.5, "success/mean": 0.25},
	}, s.begin(ctx, "Select", in)
}

func (s *stage) Measure(ctx context.Context, in activities.MeasureInput) (activities.MeasureResult, error) {
	t := ref("measured", in)
	return activities.MeasureResult{Evaluation: store.EvaluationRef{
		Version: in.Version, State: in.State, Turns: in.Turns, Trajectories: &t, Metrics: activities.Metrics{"success/mean": 0.5},
	}}, s.begin(ctx, "Measure", in)
}

func (s *stage) Score(ctx context.Context, in activities.ScoreInput) (activities.ScoreResult, error) {
	if err := s.begin(ctx, "Score", in); err != nil {
		return activities.ScoreResult{}, err
	}
	return activities.ScoreResult{Scores: ref("scores", in), Metrics: activities.Metrics{"actor/entropy": 1}}, s.holds(in.Policy)
}

func (s *stage) Credit(ctx context.Context, in activities.CreditInput) (activities.CreditResult, error) {
	return activities.CreditResult{Batch: ref("batch", in)}, s.begin(ctx, "Credit", in)
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
	s.resident = ref("state", in.Policy.State, in.Batch, in.Settings).Digest[:8]
	return activities.UpdateResult{
		State: s.resident, Counts: store.UpdateCounts{Rows: 4, Tokens: 8, MicroBatches: 1},
		Metrics: activities.Metrics{"actor/loss": canon.Float(0.125)},
	}, nil
}

func (s *stage) Snapshot(ctx context.Context, in activities.SnapshotInput) (activities.SnapshotResult, error) {
	if err := s.begin(ctx, "Snapshot", in); err != nil {
		return activities.SnapshotResult{}, err
	}
	return activities.SnapshotResult{Snapshot: store.SnapshotRef{
		Version: in.Policy.Version, Dir: "snapshots/" + in.Policy.State, State: in.Policy.State,
	}}, s.holds(in.Policy)
}

func (s *stage) Commit(ctx context.Context, in activities.CommitInput) (activities.CommitResult, error) {
	if err := s.begin(ctx, "Commit", in); err != nil {
		return activities.CommitResult{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.commits = append(s.commits, in)
	in.Timings, in.Lost = nil, 0 // telemetry is not in the manifest
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

// play is a stage in Temporal's test environment, with sessions.
type play struct {
	*testsuite.TestWorkflowEnvironment
	t *testing.T
	s *stage
	w Workflows
	// absent is how many tries for a session find no device.
	absent int
	// lost ends the nth session, from 1, when its channel is closed.
	lost map[int]chan struct{}
	// hooks run before the nth execution of an activity.
	hooks map[string]func()

	mu      sync.Mutex
	opened  int // sessions
	tried   []string
	closed  int
	started map[string]int
	order   []string // activities as they were started, but the session's own
}

func newPlay(t *testing.T, s *stage) *play {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	p := &play{
		TestWorkflowEnvironment: suite.NewTestWorkflowEnvironment(), t: t, s: s, w: Workflows{SessionHeartbeat: 5 * time.Second},
		lost: map[int]chan struct{}{}, hooks: map[string]func(){}, started: map[string]int{},
	}
	s.counts, s.over = map[string]int{}, make(chan struct{})
	t.Cleanup(func() { close(s.over) })
	p.SetWorkerOptions(worker.Options{EnableSessionWorker: true})
	p.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: testRun, TaskQueue: activities.WorkflowQueue})
	p.SetTestTimeout(testTimeout)
	p.RegisterActivity(s)
	p.RegisterWorkflowWithOptions(p.w.Train, workflow.RegisterOptions{Name: "Train"})
	p.OnActivity("internalSessionCreationActivity", mock.Anything, mock.Anything).Return(p.create)
	p.OnActivity("internalSessionCompletionActivity", mock.Anything, mock.Anything).Return(func(context.Context, string) error {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.closed++
		return nil
	})
	p.SetOnActivityStartedListener(func(info *activity.Info, _ context.Context, _ converter.EncodedValues) {
		name := info.ActivityType.Name
		p.started[name]++
		if !strings.HasPrefix(name, "internal") {
			p.order = append(p.order, name)
		}
		if hook := p.hooks[fmt.Sprintf("%s %d", name, p.started[name])]; hook != nil {
			hook()
		}
	})
	return p
}

// create is a device worker that accepts a session, or its absence.
func (p *play) create(ctx context.Context, id string) error {
	p.mu.Lock()
	p.tried = append(p.tried, activity.GetInfo(ctx).TaskQueue)
	if len(p.tried) <= p.absent {
		p.mu.Unlock()
		return temporal.NewTimeoutError(enums.TIMEOUT_TYPE_SCHEDULE_TO_START, nil)
	}
	p.opened++
	n := p.opened
	p.mu.Unlock()
	p.SignalWorkflow(id, map[string]string{"Taskqueue": fmt.Sprintf("session-%d", n), "ResourceID": "device", "HostName": "device"})
	if lost := p.lost[n]; lost != nil {
		<-lost
		return temporal.NewNonRetryableApplicationError("no heartbeat", "Lost", nil)
	}
	return nil
}

// when runs f before the nth execution of an activity; f may query, update and
// cancel the workflow.
func (p *play) when(name string, n int, f func()) { p.hooks[fmt.Sprintf("%s %d", name, n)] = f }

// loseAt kills the session that runs the nth execution of an activity.
func (p *play) loseAt(name string, n int) {
	lost := make(chan struct{})
	p.lost[1] = lost
	if p.s.stall == nil {
		p.s.stall = map[string]int{}
	}
	p.s.stall[name] = n
	p.when(name, n, func() { close(lost) })
}

// train runs the workflow to its end.
func (p *play) train(carry *Carry) { p.ExecuteWorkflow(p.w.Train, json.RawMessage(`{}`), carry) }

// result is the run's last word; the run has to have succeeded.
func (p *play) result() TrainResult {
	p.t.Helper()
	require.True(p.t, p.IsWorkflowCompleted())
	require.NoError(p.t, p.GetWorkflowError())
	var r TrainResult
	require.NoError(p.t, p.GetWorkflowResult(&r))
	return r
}

// status asks the query.
func (p *play) status() Status {
	p.t.Helper()
	v, err := p.QueryWorkflow("status")
	require.NoError(p.t, err)
	var s Status
	require.NoError(p.t, v.Get(&s))
	return s
}

// answer is what became of an update.
type answer struct {
	accepted bool
	text     string
	err      error
}

// send sends an update; the answer is filled in when the workflow has judged it.
func (p *play) send(name string, args ...any) *answer {
	a := &answer{}
	p.UpdateWorkflow(name, "", &testsuite.TestUpdateCallback{
		OnAccept: func() { a.accepted = true },
		OnReject: func(err error) { a.err = err },
		OnComplete: func(v any, err error) {
			a.err = err
			a.text, _ = v.(string)
		},
	}, args...)
	return a
}

// undisturbed are the commits of the stage's run without anything in its way.
func undisturbed(t *testing.T, of *stage) []activities.CommitInput {
	s := &stage{plan: of.plan, head: of.head, base: of.base, attributes: of.attributes, selected: of.selected, alive: of.alive}
	p := newPlay(t, s)
	p.train(nil)
	p.result()
	return s.commits
}

// manifests are commits without what telemetry tells.
func manifests(commits []activities.CommitInput) []activities.CommitInput {
	out := slices.Clone(commits)
	for i := range out {
		out[i].Timings, out[i].Lost = nil, 0
	}
	return out
}

func kind(t *testing.T, err error) string {
	var app *temporal.ApplicationError
	require.ErrorAs(t, err, &app)
	return app.Type()
}
