package workflows

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/store/canon"
)

// sent is a report, and when it was sent after the trial's start.
type sent struct {
	TrialReport
	at time.Duration
}

// versions are the versions that the report has as committed.
func (s sent) versions() []int {
	var out []int
	for _, c := range s.Committed {
		out = append(out, c.Version)
	}
	return out
}

// reportsOf are the reports of a trial that does what play says.
func reportsOf(t *testing.T, of TrialOf, play func(ctx workflow.Context, t *train)) []sent {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestWorkflowEnvironment()
	env.SetTestTimeout(testTimeout)
	var out []sent
	start := env.Now()
	sending := false
	env.OnSignalExternalWorkflow(mock.Anything, testSweep, "", TrialSignal, mock.Anything).Return(func(_, _, _, _ string, arg any) error {
		require.False(t, sending, "one at a time")
		sending = true
		defer func() { sending = false }()
		out = append(out, sent{TrialReport: arg.(TrialReport), at: env.Now().Sub(start)})
		return nil
	})
	env.ExecuteWorkflow(func(ctx workflow.Context) error {
		start = workflow.Now(ctx)
		of.Sweep, of.Trial, of.Metrics = testSweep, "a", []string{"success/mean"}
		run := &train{sweep: reporterOf(of)}
		play(ctx, run)
		run.sweep.ended(ctx, run, nil)
		return nil
	})
	require.NoError(t, env.GetWorkflowError())
	return out
}

// commits has a trial commit so many iterations, one each so often.
func commits(iterations int, each time.Duration) func(workflow.Context, *train) {
	return func(ctx workflow.Context, t *train) {
		t.sweep.begun(ctx, t)
		for range iterations {
			_ = workflow.Sleep(ctx, each)
			t.Next++
			t.Metrics = activities.Metrics{"success/mean": canon.Float(t.Next)}
			t.sweep.committed(ctx, t, nil)
		}
	}
}

// A trial of one second sends two reports: the beginning is told with the first commit.
func TestShortTrialSendsTwoReports(t *testing.T) {
	reports := reportsOf(t, TrialOf{}, commits(4, 250*time.Millisecond))
	require.Len(t, reports, 2)
	require.True(t, reports[0].Begun)
	require.Equal(t, []int{1}, reports[0].versions())
	require.Equal(t, 250*time.Millisecond, reports[0].at)
	require.False(t, reports[1].Begun)
	require.Equal(t, []int{2, 3, 4}, reports[1].versions())
	require.NotNil(t, reports[1].Ended)
	require.Equal(t, time.Second, reports[1].at, "the end does not wait")
}

// A trial of an hour sends at most twelve reports a minute, and every committed value
// arrives, in order.
func TestReportsAreCoalesced(t *testing.T) {
	const iterations = 5143
	reports := reportsOf(t, TrialOf{}, commits(iterations, 700*time.Millisecond))
	version, minutes := 0, map[int]int{}
	for i, r := range reports {
		for _, c := range r.Committed {
			version++
			require.Equal(t, version, c.Version)
			require.Equal(t, activities.Metrics{"success/mean": canon.Float(version)}, c.Metrics)
		}
		minutes[int(r.at/time.Minute)]++
		if i > 0 && r.Ended == nil {
			require.GreaterOrEqual(t, r.at-reports[i-1].at, reportsApart)
		}
	}
	require.Equal(t, iterations, version)
	for minute, n := range minutes {
		require.LessOrEqual(t, n, 12, "minute %d", minute)
	}
	require.Greater(t, len(reports), 600, "and not much less often")
}

// A commit at a rung is reported at once, with those before it.
func TestRungsAreReportedAtOnce(t *testing.T) {
	reports := reportsOf(t, TrialOf{Rungs: []int{3, 5}}, commits(6, time.Second))
	require.Len(t, reports, 4)
	for i, want := range []struct {
		at       time.Duration
		versions []int
	}{{time.Second, []int{1}}, {3 * time.Second, []int{2, 3}}, {5 * time.Second, []int{4, 5}}, {6 * time.Second, []int{6}}} {
		require.Equal(t, want.at, reports[i].at)
		require.Equal(t, want.versions, reports[i].versions())
	}

	f := newField(t)
	f.sweep(judgedEarly, nil)
	f.succeeded()
	for _, of := range f.memos {
		require.Equal(t, []int{3}, of.Rungs, "the sweep tells its trials")
	}
}

// A version 0 that other trials wait for is reported at once; a change of state waits like
// a commit.
func TestAwaitedTrialReportsItsBeginning(t *testing.T) {
	reports := reportsOf(t, TrialOf{Awaited: true}, func(ctx workflow.Context, t *train) {
		commits(2, time.Minute)(ctx, t)
		_ = workflow.Sleep(ctx, time.Second)
		t.wait.Wanted = "f00df00df00d"
		t.sweep.waits(ctx, t)
		_ = workflow.Sleep(ctx, time.Second)
		t.wait.Wanted = "f00e"
		t.sweep.waits(ctx, t)
		_ = workflow.Sleep(ctx, time.Minute)
	})
	require.Len(t, reports, 5)
	require.True(t, reports[0].Begun)
	require.Zero(t, reports[0].at)
	require.False(t, reports[1].Begun)
	require.Equal(t, time.Minute, reports[1].at)
	require.Equal(t, []int{1}, reports[1].versions())
	require.Equal(t, 2*time.Minute, reports[2].at)
	require.Equal(t, 2*time.Minute+reportsApart, reports[3].at)
	require.Equal(t, "f00e", reports[3].Waiting, "how it is when the report is sent")

	f := newField(t)
	f.sweep(grid, nil)
	f.succeeded()
	for label, of := range f.memos {
		require.Equal(t, label == "update.epochs=1,seed=1", of.Awaited, label)
	}
}
