package workflows

import (
	"errors"
	"fmt"
	"slices"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/steps"
	"github.com/reprise-rl/reprise/workflows/sweep"
)

// pending is the next trial to begin; nil if there is none.
func (s *sweeping) pending() *trial {
	if s.Closing != "" {
		return nil
	}
	for ; s.first < len(s.trials); s.first++ {
		if t := s.trials[s.first]; t.State == sweep.Pending {
			return t
		}
	}
	return nil
}

// due is the next trial that may begin. Trials that share a warm start make it once: while
// one of them makes it, the others wait, and trials that share something else go first.
func (s *sweeping) due() *trial {
	if s.pending() == nil {
		return nil
	}
	making := map[string]bool{}
	for _, t := range s.open {
		making[t.of.Shared] = making[t.of.Shared] || !t.Begun && t.State != sweep.Paused
	}
	for _, t := range s.trials[s.first:] {
		if t.State == sweep.Pending && (t.of.Shared == "" || s.made[t.of.Shared] || !making[t.of.Shared]) {
			return t
		}
	}
	return nil
}

// running counts the open trials that have a place: a paused one gives it back. Resumed,
// it goes on at once, so that more than Parallel run until others have ended.
func (s *sweeping) running() int {
	n := 0
	for _, t := range s.open {
		if t.State != sweep.Paused {
			n++
		}
	}
	return n
}

// startDue starts trials up to Parallel.
func (s *sweeping) startDue() error {
	for s.running() < s.Parallel {
		t := s.due()
		if t == nil {
			return nil
		}
		if t.spec == nil {
			if err := s.readSpecs(t.Index); err != nil {
				return err
			}
			continue // other events may have come while they were read
		}
		s.start(t)
	}
	return nil
}

// pageSpecs is how many specs are read at once.
const pageSpecs = 32

func (s *sweeping) readSpecs(from int) error {
	r, err := steps.SweepTrials.Do(s.onHost(s.root, 0), fmt.Sprintf("specs of trials from %d on", from),
		activities.SweepTrialsInput{Sweep: s.Written, From: from, Count: pageSpecs, Specs: true})
	if err != nil {
		return err
	}
	for i, t := range r.Trials {
		if own := s.trials[from+i]; own.State == sweep.Pending {
			own.spec = t.Spec
		}
	}
	return nil
}

// start starts a trial's workflow.
func (s *sweeping) start(t *trial) {
	now := workflow.Now(s.root)
	of := TrialOf{
		Sweep: s.id, Trial: t.of.Label, Metrics: s.definition.Metrics, Rungs: s.rungs,
		Awaited: t.of.Shared != "" && !s.made[t.of.Shared],
	}
	t.State, t.Started, t.contact, t.lastReport = sweep.Running, now.Unix(), starting, now
	s.open = append(s.open, t)
	s.busy++
	options := workflow.ChildWorkflowOptions{
		WorkflowID: sweep.ID(s.id, t.of.Label),
		// A sweep that continues as new would otherwise end its children.
		ParentClosePolicy:     enums.PARENT_CLOSE_POLICY_ABANDON,
		WorkflowIDReusePolicy: enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		Memo:                  map[string]any{trialMemo: of},
		StaticSummary:         fmt.Sprintf("trial %s of sweep %s", t.of.Label, s.id),
	}
	if s.Attributes {
		options.TypedSearchAttributes = temporal.NewSearchAttributes(attributeSweep.ValueSet(s.id))
	}
	t.child = workflow.ExecuteChildWorkflow(workflow.WithChildOptions(s.root, options), "Train", t.spec, (*Carry)(nil))
	t.spec = nil
	s.children = append(s.children, t)
}

// stirs reports whether a trial's child has started or ended and the sweep has not noted it.
func (t *trial) stirs() bool {
	switch t.contact {
	case starting:
		return t.child.GetChildWorkflowExecution().IsReady()
	case byFuture:
		return t.child != nil && t.child.IsReady()
	}
	return false
}

// followChildren notes that trials' children have started or ended. One coroutine follows
// all: the SDK resumes every blocked coroutine in each workflow task, and hundreds of them
// would take most of its time.
func (s *sweeping) followChildren(ctx workflow.Context) {
	for {
		_ = workflow.Await(ctx, func() bool { return slices.ContainsFunc(s.children, (*trial).stirs) })
		for _, t := range firstOf(s.children, len(s.children), (*trial).stirs) {
			if t.contact == starting {
				s.startedChild(ctx, t)
			}
			if t.contact == byFuture && t.child.IsReady() {
				s.endedChild(ctx, t)
			}
		}
		s.children = slices.DeleteFunc(s.children, func(t *trial) bool { return t.child == nil })
	}
}

// startedChild notes that a trial's workflow has started, or could not be.
func (s *sweeping) startedChild(ctx workflow.Context, t *trial) {
	err := t.child.GetChildWorkflowExecution().Get(ctx, nil)
	s.busy--
	s.changed++
	var already *temporal.ChildWorkflowExecutionAlreadyStartedError
	switch {
	case errors.As(err, &already):
		t.contact, t.child = byServer, nil // perhaps an earlier sweep of this id started it
	case err != nil:
		t.contact, t.child = byReports, nil
		s.ended(t, sweep.Failed, shortReason(err))
	default:
		t.contact = byFuture
	}
}

// endedChild notes how a trial's workflow has ended.
func (s *sweeping) endedChild(ctx workflow.Context, t *trial) {
	err := t.child.Get(ctx, nil)
	t.child = nil
	if err != nil {
		s.ended(t, endOf(ctx, err), shortReason(err))
		return
	}
	s.ended(t, sweep.Done, "")
}

// listen receives the trials' reports, and has the server asked about trials that report
// nothing for long.
func (s *sweeping) listen() {
	workflow.Go(s.root, func(ctx workflow.Context) {
		reports := workflow.GetSignalChannel(ctx, TrialSignal)
		for {
			var r TrialReport
			reports.Receive(ctx, &r)
			s.receive(r)
		}
	})
	workflow.Go(s.root, s.followChildren)
	adopted := func() bool {
		return slices.ContainsFunc(s.open, func(t *trial) bool { return t.contact == byReports || t.contact == byServer })
	}
	workflow.Go(s.root, func(ctx workflow.Context) {
		for {
			_ = workflow.Await(ctx, adopted)
			_ = workflow.Sleep(ctx, quiet)
			for _, t := range s.open {
				if t.contact == byReports && workflow.Now(ctx).Sub(t.lastReport) >= quiet {
					t.contact = byServer
				}
			}
			s.changed++
		}
	})
}

// receive applies a trial's report. A report that has been applied before changes nothing.
func (s *sweeping) receive(r TrialReport) {
	t := s.find(r.Trial)
	if t == nil || t.State.Final() || t.State == sweep.Pending {
		return
	}
	s.changed++
	s.reports++
	t.lastReport = workflow.Now(s.root)
	t.reached()
	for _, c := range r.Committed {
		s.commit(t, c)
	}
	if r.Begun || len(r.Committed) > 0 {
		t.Begun = true
		s.made[t.of.Shared] = true
	}
	s.Costs = activities.AddCosts(s.Costs, r.Costs...)
	t.LostDevices, t.Recomputed, t.Waiting = r.LostDevices, r.Recomputed, r.Waiting
	t.State, t.Reason = sweep.Running, r.Paused
	switch {
	case r.Paused != "":
		t.State = sweep.Paused
	case t.Waiting != "":
		t.State = sweep.Waiting
	}
	if r.Ended != nil {
		s.ended(t, r.Ended.State, r.Ended.Reason)
	}
}

// commit applies a committed iteration's metrics.
func (s *sweeping) commit(t *trial, c TrialIteration) {
	if t.Values == nil {
		t.Values = s.definition.Measured()
	}
	s.follow(t, c)
	t.Branch, t.Iterations = c.Branch, c.Version
	for i, name := range s.definition.Metrics {
		if v, ok := c.Metrics[name]; ok {
			t.Values[i] = t.Values[i].Add(float64(v), c.Version-1, s.definition.GoalOf(i))
		}
	}
}

// ended records a trial's end; only the first call for a trial does.
func (s *sweeping) ended(t *trial, state sweep.State, reason string) {
	if t.State.Final() {
		return
	}
	t.Reason = ""
	if state == sweep.Failed {
		t.Reason = shortText(reason)
	}
	t.State, t.Ended, t.Waiting = state, workflow.Now(s.root).Unix(), ""
	if t.Final != "" {
		t.State = t.Final
	}
	s.open = slices.DeleteFunc(s.open, func(o *trial) bool { return o == t })
	s.changed++
	s.newPoints = true
	if t.State == sweep.Failed && s.definition.OnFailure == sweep.Stop && s.Closing == "" {
		s.Broken = t.of.Label
		s.close("trial "+t.of.Label+" failed", true)
	}
}

// close lets no further trials begin, and cancels the open ones if requested.
func (s *sweeping) close(why string, cancel bool) {
	if s.Closing == "" {
		s.Closing = why
	}
	for _, t := range s.trials {
		if t.State == sweep.Pending {
			t.State, t.Summarized = sweep.Cancelled, true
		}
	}
	if cancel {
		for _, t := range slices.Clone(s.open) {
			s.cancel(t)
		}
	}
	s.changed++
}

// cancel asks a trial's workflow to end at its last committed iteration.
func (s *sweeping) cancel(t *trial) {
	if t.Asked {
		return
	}
	t.Asked = true
	s.busy++
	workflow.Go(s.root, func(ctx workflow.Context) {
		defer func() { s.busy--; s.changed++ }()
		_ = workflow.Await(ctx, func() bool { return t.contact != starting })
		if t.State.Final() {
			return
		}
		err := workflow.RequestCancelExternalWorkflow(ctx, sweep.ID(s.id, t.of.Label), "").Get(ctx, nil)
		if err != nil && t.contact != byFuture && !t.State.Final() {
			t.contact = byServer // it has ended without a report of how
		}
	})
}

// decide stops the trials that the rule stops.
func (s *sweeping) decide() {
	if s.definition.Stopping == nil || !s.newPoints {
		return
	}
	s.newPoints = false
	if s.judge == nil {
		s.judge = s.definition.Stopping.NewJudge(s.rungs, s.definition.Goal)
	}
	for _, d := range s.judge.Decide(len(s.trials), func(i int) sweep.Progress {
		t := s.trials[i]
		return sweep.Progress{Points: t.Points, Ended: t.State.Final() && t.Summarized}
	}) {
		t := s.trials[d.Trial]
		if t.Stop != 0 {
			continue
		}
		t.Stop = d.Iterations
		switch {
		case t.State == sweep.Dropped, t.Final == sweep.Dropped: // a person has decided
		case !t.State.Final():
			t.Final = sweep.Stopped
			s.cancel(t)
		default:
			// It had passed the rung before the trials that precede it: what followed does not count.
			t.State, t.Summarized = sweep.Stopped, false
			s.judge = nil // a trial that had ended has not
		}
	}
}

// pageSummaries is how many trials are summarized at once.
const pageSummaries = 20

// unsummarized reports whether a trial has ended and its iterations are not read yet.
func (t *trial) unsummarized() bool { return t.State.Final() && !t.Summarized }

// summarize reads what ended trials left in the store: the table shows what the store has.
func (s *sweeping) summarize(page []*trial) error {
	summary := fmt.Sprintf("what %d trials left", len(page))
	if len(page) == 1 {
		summary = "what 1 trial left"
	}
	outcomes, err := s.outcomes(page, summary, func(t *trial) int { return t.Stop })
	if err != nil {
		return err
	}
	for i, o := range outcomes {
		t := page[i]
		t.Summarized = true
		if o.Problem != "" {
			t.Reason = shortText(o.Problem)
			o.Points = t.Points // decisions were made by them
		}
		if !sweep.Continues(t.Points, o.Points) {
			s.judge = nil
		}
		t.Branch, t.Iterations, t.Values, t.Points, t.Curve, t.Whole = o.Branch, o.Iterations, o.Values, o.Points, sweep.Curve{}, false
	}
	s.changed++
	s.newPoints = true
	return nil
}

// outcomes reads what trials have in the store, each until the iteration given; 0 reads
// all of them.
func (s *sweeping) outcomes(page []*trial, about string, until func(*trial) int) ([]activities.Outcome, error) {
	in := activities.SummarizeInput{Definition: s.definition}
	in.Definition.Base = nil // not needed to read
	for _, t := range page {
		in.Trials = append(in.Trials, activities.SummarizeTrial{Run: sweep.ID(s.id, t.of.Label), Until: until(t)})
	}
	r, err := steps.Summarize.Do(s.onHost(s.root, 0), about, in)
	return r.Outcomes, err
}

// pageLooks is how many trials the server is asked about at once.
const pageLooks = 50

// lookUp asks the server for the states of trials.
func (s *sweeping) lookUp(page []*trial) error {
	in := activities.LookUpInput{}
	for _, t := range page {
		in.IDs = append(in.IDs, sweep.ID(s.id, t.of.Label))
	}
	r, err := steps.LookUp.Do(s.onHost(s.root, 0), fmt.Sprintf("how %d trials stand", len(page)), in)
	if err != nil {
		return err
	}
	for i, f := range r.Found {
		t := page[i]
		t.reached()
		t.lastReport = workflow.Now(s.root)
		switch {
		case f.State == "":
			s.ended(t, sweep.Failed, "the server knows no such workflow")
		case f.State != sweep.Running:
			s.ended(t, f.State, f.Reason)
		case f.Sweep != s.id:
			s.ended(t, sweep.Failed, "a workflow that is no trial of this sweep has its id")
		}
	}
	return nil
}
