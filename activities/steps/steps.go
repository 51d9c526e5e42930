// Package steps is the table of all activities: a typed value each, which says what an
// activity takes and gives, and where and how long it runs. Workflows, workers and
// programs that run steps without a workflow name activities by these values alone.
package steps

import (
	"context"
	"slices"
	"time"

	"github.com/reprise-rl/reprise/activities"
)

// Place is where an activity runs.
type Place int

const (
	// OnHost is any host worker.
	OnHost Place = iota
	// OnSession is the device worker that holds the run's session.
	OnSession
	// OnDevice is any device worker; it serves questions about the device alone.
	OnDevice
	// OnHelper is a device worker of the run's fingerprint on which no run has a session. No
	// activity is bound to it alone; see Routing.Helping.
	OnHelper
	// OnLine is the line of the runs that wait for a device: a worker whose device is free takes the first.
	OnLine
	// OnHolder is the process that gave the run its lease.
	OnHolder
	// Local is not an activity: the workflow computes the step itself.
	Local
)

// Routing is an activity's name, queue, timeout and retries.
type Routing struct {
	// Name is the activity's name in Temporal's history.
	Name string
	// Step is what metrics call its work; several activities may be one step. "" is
	// other work than that of a run or an evaluation.
	Step  string
	Place Place
	// Bound is the start-to-close timeout in units of the spec's
	// limits.activity_seconds. Those of a device have room to wait until a program of
	// another run has ended: a PJRT execution cannot be interrupted.
	Bound int
	// Import is added to the timeout: the step copies a base model into the store, and may
	// have to download it first, which takes as long as the model is large.
	Import time.Duration
	// Attempts limits the tries; 0 means until it works, with backoff.
	Attempts int32
	// Patient is a step of what cannot pause: it is tried again also where a person has to correct the bucket.
	Patient bool
}

// Helping is a step of a session on a worker that is free: it is tried there once.
func (r Routing) Helping() Routing {
	r.Place, r.Attempts = OnHelper, 1
	return r
}

// Activity is an activity that takes an In and gives an Out.
type Activity[In, Out any] struct{ Routing }

// Runner executes an activity: it waits for the answer and decodes it into result, a
// pointer. summary is what the Web UI shows of the call.
type Runner func(r Routing, summary string, input, result any) error

// Do executes the activity.
func (a Activity[In, Out]) Do(run Runner, summary string, in In) (out Out, err error) {
	err = run(a.Routing, summary, in, &out)
	return out, err
}

// Binding is an activity with the function that does it.
type Binding struct {
	Routing
	// Func is the function, as a Temporal worker registers it.
	Func any
	// Call is the function, called directly. It gives a pointer to its result.
	Call func(ctx context.Context, in any) (result any, err error)
}

// By binds the activity to the function that does it.
func (a Activity[In, Out]) By(do func(context.Context, In) (Out, error)) Binding {
	return Binding{Routing: a.Routing, Func: do, Call: func(ctx context.Context, in any) (any, error) {
		out, err := do(ctx, in.(In))
		return &out, err
	}}
}

// The steps that begin a run, an evaluation or a sweep, and the steps that read the
// store.
var (
	Resolve           = imports(on[activities.ResolveInput, activities.ResolveResult]("Resolve", "resolve", OnHost, 2))
	Load              = on[activities.LoadInput, activities.LoadResult]("Load", "resolve", OnHost, 1)
	Find              = on[activities.FindInput, activities.LoadResult]("Find", "resolve", OnHost, 1)
	ResolveEvaluation = imports(on[activities.ResolveEvaluationInput, activities.LoadResult]("ResolveEvaluation", "resolve", OnHost, 2))
)

// The steps of an iteration and of an evaluation.
var (
	Generate = on[activities.GenerateInput, activities.GenerateResult]("Generate", "generate", OnSession, 2)
	// Publish stores what other workers need to sample Blocks. A block runs in the session or, by
	// Helping, on a worker that is free.
	Publish = on[activities.PublishInput, activities.PublishResult]("Publish", "publish", OnSession, 2)
	Block   = on[activities.BlockInput, activities.BlockResult]("Block", "generate", OnSession, 2)
	// Join puts the blocks of a turn together where the session does something else meanwhile.
	Join = on[activities.JoinInput, activities.GenerateResult]("Join", "generate", OnHost, 1)
	// Ask asks foreign environments and stores what they answer. It has room for three calls.
	Ask = on[activities.AskInput, activities.AskResult]("Ask", "ask", OnHost, 4)
	// Grade has the run's own engine answer questions about a round's episodes, before Judge makes verdicts of the answers.
	Grade = on[activities.GradeInput, activities.GradeResult]("Grade", "grade", OnSession, 2)
	// Judge asks a judge outside this program about a round's episodes and stores its verdicts.
	Judge = on[activities.JudgeInput, activities.JudgeResult]("Judge", "judge", OnHost, 4)
	// CallTools answers the calls of tools in a turn's samples and stores calls and answers.
	CallTools = on[activities.CallToolsInput, activities.CallToolsResult]("CallTools", "tools", OnHost, 4)
	// TakeCalls gives a rollout's agents their answers and stores the calls that they make. Agents live on the worker that
	// holds the run's device.
	TakeCalls = on[activities.TakeCallsInput, activities.TakeCallsResult]("TakeCalls", "agent", OnSession, 2)
	// Arrange makes the turns of the calls that agents have made.
	Arrange = on[activities.ArrangeInput, activities.ArrangeResult]("Arrange", "arrange", OnHost, 1)
	Step    = on[activities.StepInput, activities.StepResult]("Step", "step", OnHost, 1)
	// Choose says which rows of a search are kept after a turn, or where branches begin, and stores why.
	Choose   = on[activities.ChooseInput, activities.ChooseResult]("Choose", "choose", OnHost, 1)
	Select   = on[activities.SelectInput, activities.SelectResult]("Select", "select", OnHost, 1)
	Score    = on[activities.ScoreInput, activities.ScoreResult]("Score", "score", OnSession, 2)
	Diagnose = on[activities.DiagnoseInput, activities.DiagnoseResult]("Diagnose", "diagnose", OnSession, 2)
	Credit   = on[activities.CreditInput, activities.CreditResult]("Credit", "credit", OnHost, 1)
	Update   = on[activities.UpdateInput, activities.UpdateResult]("Update", "update", OnSession, 2)
	Snapshot = on[activities.SnapshotInput, activities.SnapshotResult]("Snapshot", "snapshot", OnSession, 2)
	Measure  = on[activities.MeasureInput, activities.MeasureResult]("Measure", "evaluate", OnHost, 1)
	Commit   = on[activities.CommitInput, activities.CommitResult]("Commit", "commit", OnHost, 1)

	// Detect is pure: the detectors of collapse look at an iteration before it is
	// committed.
	Detect = on[struct{}, activities.Detected]("Detect", "", Local, 0)
)

// The steps at the beginning of a session.
var (
	// Describe asks a device worker what it is.
	Describe = tried[struct{}, activities.DeviceInfo]("Describe", "", OnDevice, 1, 1)
	// Acquire waits in line for a device, and answers with a lease. Hold lasts as long as the run has the device, and
	// Release gives it back.
	Acquire   = on[activities.AcquireInput, activities.Lease]("Acquire", "", OnLine, 1)
	Hold      = tried[activities.HoldInput, activities.HoldResult]("Hold", "", OnHolder, 1, 1)
	Release   = tried[activities.HoldInput, struct{}]("Release", "", OnHolder, 1, 1)
	WarmStart = on[activities.WarmStartInput, activities.WarmStartResult]("WarmStart", "warm_start", OnSession, 3)
	Restore   = on[activities.RestoreInput, activities.RestoreResult]("Restore", "restore", OnSession, 3)
)

// The steps of a sweep. ResolveSweep and ExtendSweep import the models that trials
// start from.
var (
	ResolveSweep = imports(on[activities.ResolveSweepInput, activities.SweepResult]("ResolveSweep", "", OnHost, 5))
	ExtendSweep  = imports(on[activities.ExtendSweepInput, activities.SweepResult]("ExtendSweep", "", OnHost, 5))
	SweepTrials  = patient(on[activities.SweepTrialsInput, activities.SweepTrialsResult]("SweepTrials", "", OnHost, 1))
	LookUp       = patient(on[activities.LookUpInput, activities.LookUpResult]("LookUp", "", OnHost, 1))
	Summarize    = patient(on[activities.SummarizeInput, activities.SummarizeResult]("Summarize", "", OnHost, 5))
	WriteTable   = patient(on[activities.WriteTableInput, activities.WriteTableResult]("WriteTable", "", OnHost, 5))
)

// Pages for people: three tries, since a run does not depend on them.
var (
	Report      = tried[activities.ReportInput, activities.ReportResult]("Report", "", OnHost, 5, 3)
	ReportSweep = tried[activities.ReportSweepInput, activities.ReportResult]("ReportSweep", "", OnHost, 5, 3)
)

// The SDK's activities that open a session and end it, by which runs of earlier builds have their device.
const (
	SessionOpens = "internalSessionCreationActivity"
	SessionEnds  = "internalSessionCompletionActivity"
)

// Holds tells whether an activity, by its name, is no step but what a run has a device by: a lease, or a session of the SDK's.
func Holds(name string) bool {
	return slices.Contains([]string{Acquire.Name, Hold.Name, Release.Name, SessionOpens, SessionEnds}, name)
}

// all are the routings of all activities, in the order of this file.
var all []Routing

// All are the routings of all activities.
func All() []Routing { return slices.Clone(all) }

// Named are the names of the activities that run at a place.
func Named(place Place) (names []string) {
	for _, r := range all {
		if r.Place == place {
			names = append(names, r.Name)
		}
	}
	return names
}

func on[In, Out any](name, step string, place Place, bound int) Activity[In, Out] {
	return tried[In, Out](name, step, place, bound, 0)
}

func tried[In, Out any](name, step string, place Place, bound int, attempts int32) Activity[In, Out] {
	r := Routing{Name: name, Step: step, Place: place, Bound: bound, Attempts: attempts}
	all = append(all, r)
	return Activity[In, Out]{r}
}

// importTime is enough for 15 GB, a model of 7 billion parameters, at 1 MB/s. A download that
// stands still ends much earlier, and an interrupted one resumes.
const importTime = 5 * time.Hour

func imports[In, Out any](a Activity[In, Out]) Activity[In, Out] {
	a.Import = importTime
	all[len(all)-1] = a.Routing
	return a
}

func patient[In, Out any](a Activity[In, Out]) Activity[In, Out] {
	a.Patient = true
	all[len(all)-1] = a.Routing
	return a
}
