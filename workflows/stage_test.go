package workflows

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"

	"sync"
	"time"

	"go.temporal.io/sdk/activity"

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
	// device is what else it says.
	device activities.DeviceInfo
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
	info := s.device
	info.Fingerprint, info.Fields = print, json.RawMessage(`{"platform":"cpu"}`)
	return info, s.begin(ctx, "Describe", nil)
}

// Acquire, Hold and Release are those of play.
func (s *stage) Acquire(context.Context, activities.AcquireInput) (l activities.Lease, err error) {
	return l, errors.New("see play.acquire")
}

func (s *stage) Hold(context.Context, activities.HoldInput) (r activities.HoldResult, err error) {
	return r, errors.New("see play.hold")
}

func (s *stage) Release(context.Context, activities.HoldInput) error {
	return errors.New("see newPlay")
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
