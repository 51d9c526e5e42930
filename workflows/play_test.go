package workflows

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
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
	"go.temporal.io/sdk/workflow"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/steps"
)

// play is a stage in Temporal's test environment, with sessions.
type play struct {
	*testsuite.TestWorkflowEnvironment
	t *testing.T
	s *stage
	w Workflows
	// absent is how many tries for a session find no device.
	absent int
	// lost ends the nth session, from 1, by silence when its channel is closed.
	lost map[int]chan struct{}
	// ends are how the workers end sessions after an error that says so.
	ends     map[int]chan activities.HoldResult
	released map[string]chan struct{} // leases that are given back
	again    map[int]bool             // sessions that the worker of the one before serves
	worker   int                      // which serves the session that was opened last
	// creation is the answer to each try for a session.
	creation *testsuite.MockCallWrapper
	// hooks run before the nth execution of an activity.
	hooks map[string]func()
	// tell is called for each activity that begins, before its hook.
	tell func(info *activity.Info, args converter.EncodedValues)
	// told is called for each that has ended.
	told func(info *activity.Info, err error)

	mu      sync.Mutex
	opened  int // sessions
	tried   []string
	closed  int
	started map[string]int
	ended   map[string]int
	slow    map[int]bool // commits, from 1, that begin after the samples beside them have ended
	gone    int          // sessions that are lost
	refused map[int]int  // commits of an iteration that are made again, and samples
	beside  map[int]int  // that began beside them
	// committing is the iteration of the commit that began last.
	committing int
	samples    map[string]int // the iteration of a Generate, by the activity's id
	sampled    map[int]bool   // iterations with a Generate that has ended
	waiting    []*held
	gates      map[string]chan struct{} // of activities that were held, by their id
	order      []string                 // activities as they were started, but the session's own
}

func newPlay(t *testing.T, s *stage) *play {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	p := &play{
		TestWorkflowEnvironment: suite.NewTestWorkflowEnvironment(), t: t, s: s, w: Workflows{SessionHeartbeat: 5 * time.Second},
		lost: map[int]chan struct{}{}, ends: map[int]chan activities.HoldResult{}, released: map[string]chan struct{}{}, again: map[int]bool{}, hooks: map[string]func(){}, started: map[string]int{},
		ended: map[string]int{}, slow: map[int]bool{}, samples: map[string]int{}, refused: map[int]int{}, beside: map[int]int{}, sampled: map[int]bool{}, gates: map[string]chan struct{}{},
	}
	s.counts, s.over, s.gate = map[string]int{}, make(chan struct{}), p.gate
	t.Cleanup(func() { close(s.over) })
	p.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: testRun, TaskQueue: activities.WorkflowQueue})
	p.SetTestTimeout(testTimeout)
	p.RegisterActivity(s)
	p.RegisterWorkflowWithOptions(p.w.Train, workflow.RegisterOptions{Name: "Train"})
	p.creation = p.OnActivity("Acquire", mock.Anything, mock.Anything).Return(p.acquire)
	p.OnActivity("Hold", mock.Anything, mock.Anything).Return(p.hold)
	p.OnActivity("Release", mock.Anything, mock.Anything).Return(func(_ context.Context, in activities.HoldInput) error {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.closed++
		close(p.released[in.Lease])
		return nil
	})
	p.SetOnActivityStartedListener(func(info *activity.Info, _ context.Context, args converter.EncodedValues) {
		begin := func() { p.begins(info, args) }
		if turn := p.turn(info, args); turn != nil && !turn() {
			p.holds(info, turn, begin)
			return
		}
		begin()
	})
	p.SetOnActivityCanceledListener(p.drops)
	p.SetOnActivityCompletedListener(func(info *activity.Info, _ converter.EncodedValue, err error) {
		if info.ActivityType.Name == "Commit" && (corrected(err) != nil || err != nil && strings.Contains(err.Error(), "Artifact")) {
			p.refused[p.committing]++
		}
		if err == nil {
			p.ended[info.ActivityType.Name]++
			if iteration, ok := p.samples[info.ActivityID]; ok {
				p.sampled[iteration] = true
			}
		}
		if p.told != nil {
			p.told(info, err)
		}
		p.workerEnds(err)
		p.RegisterDelayedCallback(p.next, 0) // the workflow takes the end first
	})
	return p
}

// begins notes that an activity begins.
func (p *play) begins(info *activity.Info, args converter.EncodedValues) {
	name := info.ActivityType.Name
	p.started[name]++
	if !steps.Holds(name) {
		p.order = append(p.order, name)
	}
	if name == "Commit" {
		var in activities.CommitInput
		require.NoError(p.t, args.Get(&in))
		p.committing = in.Iteration
	}
	if p.tell != nil {
		p.tell(info, args)
	}
	if hook := p.hooks[fmt.Sprintf("%s %d", name, p.started[name])]; hook != nil {
		hook()
	}
}

// acquire is a device worker that gives a lease, or its absence.
func (p *play) acquire(ctx context.Context, _ activities.AcquireInput) (l activities.Lease, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tried = append(p.tried, activity.GetInfo(ctx).TaskQueue)
	if len(p.tried) <= p.absent {
		return l, temporal.NewTimeoutError(enums.TIMEOUT_TYPE_SCHEDULE_TO_START, nil)
	}
	p.opened++
	n := p.opened
	if !p.again[n] {
		p.worker = n
	}
	l = activities.Lease{ID: strconv.Itoa(n), Queue: fmt.Sprintf("session-%d", p.worker), Worker: strconv.Itoa(p.worker), Holder: fmt.Sprintf("holder-%d", n)}
	p.released[l.ID], p.ends[n] = make(chan struct{}), make(chan activities.HoldResult, 1)
	return l, nil
}

// workerEnds has the worker end its session, if an error of a step says that it will.
func (p *play) workerEnds(err error) {
	var app *temporal.ApplicationError
	if !errors.As(err, &app) || p.opened == 0 || p.lost[p.opened] != nil {
		return
	}
	switch app.Type() {
	case activities.KindDraining:
		p.ends[p.opened] <- activities.HoldResult{End: activities.LeaseDrained}
	case activities.KindOutOfMemory, activities.KindDeviceFailed:
		p.ends[p.opened] <- activities.HoldResult{End: activities.LeaseLost, Reason: "it ended", ExitCode: 81}
	}
}

// hold is the worker's parent: the lease lasts until it is lost or given back.
func (p *play) hold(_ context.Context, in activities.HoldInput) (activities.HoldResult, error) {
	n, err := strconv.Atoi(in.Lease)
	if err != nil {
		return activities.HoldResult{}, err
	}
	p.mu.Lock()
	released, ends := p.released[in.Lease], p.ends[n]
	p.mu.Unlock()
	select {
	case <-p.lost[n]:
		return activities.HoldResult{}, temporal.NewHeartbeatTimeoutError()
	case end := <-ends:
		return end, nil
	case <-released:
		return activities.HoldResult{End: activities.LeaseGivenBack}, nil
	case <-p.s.over:
		return activities.HoldResult{}, nil
	}
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

// result is the run's result; the run must have succeeded.
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

// manifests are commits without telemetry.
func manifests(commits []activities.CommitInput) []activities.CommitInput {
	out := slices.Clone(commits)
	for i := range out {
		out[i].Timings, out[i].Lost, out[i].Costs, out[i].LostSessions = nil, 0, nil, nil
	}
	return out
}

func kind(t *testing.T, err error) string {
	var app *temporal.ApplicationError
	require.ErrorAs(t, err, &app)
	return app.Type()
}
