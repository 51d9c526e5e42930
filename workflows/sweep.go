package workflows

import (
	"encoding/json"
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/steps"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workflows/sweep"
)

// SweepResult is the result of a Sweep workflow; the table has the rest.
type SweepResult struct {
	Sweep string `json:"sweep"`
	// Table and Definition are artifacts: sweeps/SWEEP/….
	Table      store.Ref   `json:"table"`
	Definition store.Ref   `json:"definition"`
	Counts     SweepCounts `json:"counts"`
	// Report is where the sweep's page is, if one was written.
	Report string `json:"report,omitempty"`
}

// SweepCarry is what a sweep hands to its next execution at continue-as-new. A person
// who starts a sweep leaves it out.
type SweepCarry struct {
	// Written is the artifact with the definition and all trials.
	Written    store.Ref `json:"definition"`
	Attributes bool      `json:"attributes"`
	Location   string    `json:"location"`
	Parallel   int       `json:"parallel"`
	// Closing says why no further trials begin; it is empty while they do. Broken is the
	// trial whose failure was the reason.
	Closing string `json:"closing,omitempty"`
	Broken  string `json:"broken,omitempty"`
	// Report is where the sweep's page is; empty while none was written.
	Report string `json:"report,omitempty"`
	// Costs are what its trials have reported, by device kind.
	Costs []activities.Cost `json:"costs,omitempty"`
	// Records are of the trials that have begun or ended.
	Records []activities.TrialRecord `json:"records,omitempty"`
}

// trial is a trial in a sweep's memory.
type trial struct {
	activities.TrialRecord
	of sweep.Trial // without its spec
	// spec is read shortly before the start and dropped at the start.
	spec    json.RawMessage
	contact contact
	// child is its workflow, from when this execution starts it until its end is noted.
	child workflow.ChildWorkflowFuture
	// needsPoints says that the trial has reached a rung and its reports do not have its
	// point there, so that the store is read.
	needsPoints bool
	lastReport  time.Time
}

// contact is how a sweep learns that an open trial has ended.
type contact int

const (
	// byReports: an earlier execution of this sweep started it, so its state comes only
	// from the trial's own reports.
	byReports contact = iota
	// starting: its workflow is being started.
	starting
	// byFuture: it is a child of this execution, and its future has the result.
	byFuture
	// byServer: it could not be reached or reported nothing for long, so the server is
	// asked.
	byServer
)

// reached notes that a trial has reported, so that the server need not be queried.
func (t *trial) reached() {
	if t.contact == byServer {
		t.contact = byReports
	}
}

// sweeping is a Sweep workflow in memory.
type sweeping struct {
	*Workflows
	SweepCarry
	id         string
	definition sweep.Definition
	rungs      []int
	trials     []*trial
	labels     map[string]*trial
	open       []*trial        // those whose workflow is open
	children   []*trial        // those whose child is followed
	made       map[string]bool // the values of Trial.Shared whose policy exists
	first      int             // no trial before this index is pending
	ready      bool
	over       bool // nothing can be added any more
	cancelled  bool // by a person: no trial begins, and the table is written
	phase      string
	shown      time.Time // when the Current Details were written
	tally      *sweep.Tally
	judge      *sweep.Judge // nil before the first decision, and when points were taken back
	warnings   []string
	result     *activities.WriteTableResult
	// root outlives a cancellation, so that children are cancelled and waited for and the
	// table is written.
	root workflow.Context
	// changed counts the changes that the main loop must see, reports the trials' reports
	// since the last continue-as-new, and busy the calls that run concurrently with the
	// main loop.
	changed, reports, busy int
	newPoints              bool // points have come since the last decisions
	adding                 workflow.Mutex
}

// quiet is how long a trial that is not a child of this execution may report nothing
// before the server is asked for its state.
const quiet = time.Minute

// Sweep runs trials, each a child Train workflow, and tabulates them. input is the
// sweep's JSON as a person wrote it (docs/sweeps.md); carry is nil but after
// continue-as-new. Start it on queue "reprise"; trials have the ids
// "SWEEP/label".
//
// Children outlive an execution of the sweep: their parent close policy is to abandon
// them. They report by signal, and they are cancelled by request, each at its last
// committed iteration. Cancelled itself, the sweep waits for them and writes the table of
// what there is.
func (w *Workflows) Sweep(ctx workflow.Context, input json.RawMessage, carry *SweepCarry) (*SweepResult, error) {
	s := &sweeping{Workflows: w, id: workflow.GetInfo(ctx).WorkflowExecution.ID, made: map[string]bool{}, labels: map[string]*trial{},
		adding: workflow.NewMutex(ctx)}
	s.root, _ = workflow.NewDisconnectedContext(ctx)
	if carry != nil {
		s.SweepCarry = *carry
	}
	if err := s.handle(ctx); err != nil {
		return nil, err
	}
	if err := s.load(ctx, input, carry != nil); err != nil {
		s.show(ctx, "ended: "+reason(ctx, err))
		return nil, err
	}
	s.listen()
	again, err := s.run(ctx)
	if err == nil && again {
		return nil, s.continueAsNew(ctx, input)
	}
	if err == nil {
		err = s.finish(ctx)
	}
	switch {
	case err != nil && s.cancelled && s.result != nil:
		s.show(ctx, "cancelled; each trial's end is its last committed iteration")
		return nil, err
	case err != nil:
		s.show(ctx, "ended: "+reason(ctx, err))
		return nil, err
	}
	s.show(ctx, "done")
	return &SweepResult{Sweep: s.id, Table: s.result.Table, Definition: s.Written, Counts: s.counts(), Report: s.Report}, nil
}

// load resolves the sweep, or reads it again after continue-as-new.
func (s *sweeping) load(ctx workflow.Context, input json.RawMessage, again bool) error {
	s.show(ctx, "resolving")
	records := s.Records
	s.Records = nil
	if !again {
		r, err := steps.ResolveSweep.Do(s.onHost(ctx, 0), "check the sweep, expand it and write it down",
			activities.ResolveSweepInput{ID: s.id, Input: input})
		if err != nil {
			return err
		}
		s.Written, s.Attributes, s.Location, s.Parallel = r.Sweep, r.SearchAttributes, r.Location, r.Definition.Parallel
		if err := workflow.UpsertMemo(ctx, map[string]any{"artifacts": r.Location, "definition": r.Sweep.Digest}); err != nil {
			workflow.GetLogger(ctx).Warn("memo was not set", "error", err)
		}
	}
	if err := s.readTrials(s.root); err != nil {
		return err
	}
	for _, r := range records {
		t := s.trials[r.Index]
		t.TrialRecord = r
		s.made[t.of.Shared] = s.made[t.of.Shared] || t.Begun
		if !r.State.Final() && r.State != sweep.Pending {
			s.open = append(s.open, t)
			t.contact = byServer // it may have ended between the two executions
		}
	}
	s.ready, s.newPoints = true, true
	s.attributes(ctx, "sweeping")
	return nil
}

// pageTrials is how many trials' labels come in one payload.
const pageTrials = 1000

// readTrials reads the trials that follow those already read.
func (s *sweeping) readTrials(ctx workflow.Context) error {
	for {
		r, err := steps.SweepTrials.Do(s.onHost(ctx, 0), fmt.Sprintf("trials from %d on", len(s.trials)),
			activities.SweepTrialsInput{Sweep: s.Written, From: len(s.trials), Count: pageTrials})
		if err != nil {
			return err
		}
		for _, t := range r.Trials {
			own := &trial{TrialRecord: activities.TrialRecord{Index: len(s.trials), State: sweep.Pending}, of: t}
			s.trials, s.labels[t.Label] = append(s.trials, own), own
		}
		s.definition, s.rungs, s.judge = r.Definition, r.Definition.Stopping.Rungs(r.Definition.MaxIterations), nil
		if len(s.trials) >= r.Total || len(r.Trials) == 0 {
			return nil
		}
	}
}

// run is the main loop: it ends when all trials have, or with again when the
// history is long.
func (s *sweeping) run(ctx workflow.Context) (again bool, err error) {
	for {
		if ctx.Err() != nil && !s.cancelled {
			s.cancelled = true
			s.close("cancelled", true)
		}
		s.decide()
		if err := s.startDue(); err != nil {
			return false, err
		}
		s.show(ctx, s.doing())
		if read := s.dueReading(); read != nil {
			if err := read(); err != nil {
				return false, err
			}
			continue
		}
		switch {
		case len(s.open) == 0 && s.pending() == nil && s.idle():
			return false, nil
		case s.dueToContinue(ctx) && s.idle():
			seen := s.changed
			if err := s.others(); err != nil {
				return false, err
			}
			if s.changed == seen {
				return true, nil
			}
			continue
		}
		seen := s.changed
		if err := workflow.Await(s.root, func() bool {
			return s.changed != seen || ctx.Err() != nil && !s.cancelled
		}); err != nil {
			return false, err
		}
	}
}

// dueReading is what must be read before the sweep continues; nil if nothing must.
func (s *sweeping) dueReading() func() error {
	if page := firstOf(s.trials, pageSummaries, (*trial).unsummarized); page != nil {
		return func() error { return s.summarize(page) }
	}
	if page := firstOf(s.open, pageLooks, func(t *trial) bool { return t.contact == byServer }); page != nil {
		return func() error { return s.lookUp(page) }
	}
	if page := firstOf(s.open, pageSummaries, func(t *trial) bool { return t.needsPoints }); page != nil {
		return func() error { return s.readPoints(page) }
	}
	return nil
}

// firstOf are the first trials that fit, at most n.
func firstOf(trials []*trial, n int, fits func(*trial) bool) []*trial {
	var out []*trial
	for _, t := range trials {
		if len(out) == n {
			break
		}
		if fits(t) {
			out = append(out, t)
		}
	}
	return out
}

// idle reports whether no call runs concurrently with the main loop, which a new
// execution would lose.
func (s *sweeping) idle() bool { return s.busy == 0 && workflow.AllHandlersFinished(s.root) }

func (s *sweeping) dueToContinue(ctx workflow.Context) bool {
	return !s.cancelled && (workflow.GetInfo(ctx).GetContinueAsNewSuggested() || s.ContinueAfter > 0 && s.reports >= s.ContinueAfter)
}

// others returns when all other coroutines have processed what this workflow task
// brought. The main loop runs first, and a report that has been handed to the listening
// coroutine is no longer in the channel.
func (s *sweeping) others() error {
	passed := false
	workflow.Go(s.root, func(workflow.Context) { passed = true }) // started last, so it runs last
	return workflow.Await(s.root, func() bool { return passed })
}

// continueAsNew continues in a new history.
func (s *sweeping) continueAsNew(ctx workflow.Context, input json.RawMessage) error {
	var err error
	if s.Records, err = s.records(func(t *trial) bool { return t.State != sweep.Pending }); err != nil {
		return err
	}
	if len(input) > maxInput {
		input = json.RawMessage(`{}`)
	}
	return workflow.NewContinueAsNewError(ctx, "Sweep", input, s.SweepCarry)
}

// The server accepts payloads of 2 MiB. Records use at most maxRecords of them, and a
// document that is longer than maxInput is not handed on: the next execution reads the
// artifact.
const (
	maxRecords = 1_900_000
	maxInput   = 64 << 10
)

// records are the records of the trials that fit, shortened to fit into a payload.
func (s *sweeping) records(fits func(*trial) bool) ([]activities.TrialRecord, error) {
	var out []activities.TrialRecord
	for _, t := range s.trials {
		if fits(t) {
			out = append(out, t.TrialRecord)
		}
	}
	return activities.FitRecords(out, maxRecords)
}

// finish writes the table, and the page if the document says so, and returns how the
// sweep ended.
func (s *sweeping) finish(ctx workflow.Context) error {
	s.over = true
	s.show(ctx, "writing the table")
	records, err := s.records(func(*trial) bool { return true })
	if err != nil {
		return err
	}
	in := activities.WriteTableInput{ID: s.id, Sweep: s.Written, Records: records}
	r, err := steps.WriteTable.Do(s.onHost(s.root, 0), fmt.Sprintf("the table of %d trials", len(s.trials)), in)
	if err != nil {
		return err
	}
	s.result = &r
	s.reportAtEnd()
	_ = workflow.Await(s.root, func() bool { return workflow.AllHandlersFinished(s.root) })
	s.attributes(s.root, "done")
	switch {
	case s.cancelled:
		return ctx.Err()
	case s.Broken != "":
		text := fmt.Sprintf("trial %s failed: %s (on_failure is \"stop\"); the table is %s", s.Broken, s.reasonOf(s.Broken), r.Table.Key)
		return temporal.NewNonRetryableApplicationError(text, KindTrialFailed, nil)
	}
	return nil
}

// KindTrialFailed is the kind of a sweep's error if a trial failed and on_failure is
// "stop".
const KindTrialFailed = "TrialFailed"

func (s *sweeping) reasonOf(label string) string {
	if t := s.find(label); t != nil {
		return t.Reason
	}
	return ""
}

// find is the trial of a label; nil if there is none.
func (s *sweeping) find(label string) *trial { return s.labels[label] }
