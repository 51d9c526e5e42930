package workflows

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"github.com/reprise-rl/reprise/activities"
)

// A report is written at the end if the spec says so, and on request. If it cannot be
// written, nothing fails.
func TestReports(t *testing.T) {
	s := &stage{plan: testPlan(), base: true}
	s.plan.EvaluateEvery = 0
	p := newPlay(t, s)
	p.train(nil)
	require.NoError(t, p.GetWorkflowError())
	require.Empty(t, only(s.names(), "Report"))

	s = &stage{plan: testPlan(), base: true}
	s.plan.EvaluateEvery, s.plan.Report = 0, true
	p = newPlay(t, s)
	var asked *answer
	p.when("Credit", 2, func() { asked = p.send("report") })
	p.train(nil)
	require.NoError(t, p.GetWorkflowError())
	require.Equal(t, fields("Report Report"), only(s.names(), "Report"))
	require.NoError(t, asked.err)
	require.Equal(t, "s3://bucket/runs/bandit-1/report/index.html", asked.text)
	require.Equal(t, "Report", s.names()[len(s.names())-1])

	s = &stage{plan: testPlan(), base: true, errors: map[string][]error{"Report": {temporal.NewNonRetryableApplicationError("no disk", "x", nil)}}}
	s.plan.EvaluateEvery, s.plan.Report = 0, true
	p = newPlay(t, s)
	p.train(nil)
	require.NoError(t, p.GetWorkflowError())
	require.Contains(t, strings.Join(p.status().Warnings, " "), "no disk")
}

const reported = `{"base": BASE, "grid": {"update.epochs": [1, 2]}, "seeds": [1], "report": {"at_end": true}}`

// A sweep's page is written after its table if the document says so, even if the sweep
// was cancelled or one of its trials failed it.
func TestSweepReportAtEnd(t *testing.T) {
	f := newField(t)
	f.sweep(strings.Replace(reported, `"at_end": true`, "", 1), nil)
	require.Empty(t, f.succeeded().Report)
	require.Empty(t, f.reports)

	f = newField(t)
	f.sweep(reported, nil)
	require.Equal(t, pageOfTest, f.succeeded().Report)
	require.Equal(t, []string{"fig7: a table of 2"}, f.reports)
	require.Equal(t, "done", f.statusOf().Phase)
	require.Equal(t, pageOfTest, f.statusOf().Report)
	require.Empty(t, f.statusOf().Warnings)

	f = newField(t)
	f.RegisterDelayedCallback(f.CancelWorkflow, 2500*time.Millisecond)
	f.sweep(reported, nil)
	require.True(t, temporal.IsCanceledError(f.GetWorkflowError()))
	require.Equal(t, []string{"fig7: a table of 2"}, f.reports)
	require.Equal(t, []string{"cancelled 2", "cancelled 2"}, f.states())
	require.Equal(t, pageOfTest, f.statusOf().Report)

	f = newField(t)
	f.fail["update.epochs=1,seed=1"] = 2
	f.sweep(strings.Replace(reported, `{"base"`, `{"on_failure": "stop", "base"`, 1), nil)
	require.ErrorContains(t, f.GetWorkflowError(), "trial update.epochs=1,seed=1 failed")
	require.Equal(t, []string{"fig7: a table of 2"}, f.reports)
}

// A page that cannot be written fails no sweep, and is said.
func TestSweepReportFails(t *testing.T) {
	f := newField(t)
	f.reporting = func() error { return temporal.NewNonRetryableApplicationError("no disk\nhere", "x", nil) }
	f.sweep(reported, nil)
	require.Empty(t, f.succeeded().Report)
	s := f.statusOf()
	require.Equal(t, "done", s.Phase)
	require.NotNil(t, s.Table)
	require.Equal(t, []string{"the report was not written: no disk\nhere"}, s.Warnings)

	// One that cannot be written for now is tried again, but not for ever.
	f = newField(t)
	f.reporting = func() error { return temporal.NewApplicationError("no bucket", "x", nil) }
	f.sweep(reported, nil)
	f.succeeded()
	require.Len(t, f.reports, 3)
}

// The update "report" writes the page whenever somebody asks, and answers with where
// it is; a sweep does not end before it has answered.
func TestSweepReportOnRequest(t *testing.T) {
	var answers []string
	ask := func(f *field) func() {
		return func() {
			f.UpdateWorkflow("report", "", &testsuite.TestUpdateCallback{
				OnReject: func(err error) { answers = append(answers, "refused: "+err.Error()) }, OnAccept: func() {},
				OnComplete: func(v any, err error) {
					if err != nil {
						v = err.Error()
					}
					answers = append(answers, v.(string))
				},
			})
		}
	}
	f := newField(t)
	f.RegisterDelayedCallback(ask(f), 1500*time.Millisecond)
	f.sweep(grid, nil)
	require.Equal(t, pageOfTest, f.succeeded().Report)
	require.Equal(t, []string{"fig7: a table of 0"}, f.reports)
	require.Equal(t, []string{pageOfTest}, answers)

	// It takes longer than the trials, and then it fails: the sweep ends all the same.
	for _, failed := range []bool{false, true} {
		f, answers = newField(t), nil
		var err error
		want, page := pageOfTest, pageOfTest
		if failed {
			err, want, page = temporal.NewNonRetryableApplicationError("no disk", "x", nil), "no disk", ""
		}
		f.OnActivity("ReportSweep", mock.Anything, mock.Anything).After(time.Minute).Return(activities.ReportResult{Location: page}, err)
		f.RegisterDelayedCallback(ask(f), 3500*time.Millisecond)
		f.sweep(grid, nil)
		require.Equal(t, page, f.succeeded().Report)
		require.Len(t, answers, 1)
		require.Contains(t, answers[0], want)
	}

	// Asked while the sweep is being cancelled it is written too; before the sweep is
	// resolved there is nothing to write.
	f, answers = newField(t), nil
	f.RegisterDelayedCallback(f.CancelWorkflow, 2500*time.Millisecond)
	f.RegisterDelayedCallback(ask(f), 2500*time.Millisecond)
	f.sweep(grid, nil)
	require.True(t, temporal.IsCanceledError(f.GetWorkflowError()))
	require.Equal(t, []string{pageOfTest}, answers)

	f, answers = newField(t), nil
	f.OnActivity("ResolveSweep", mock.Anything, mock.Anything).After(time.Minute).Return(activities.SweepResult{}, temporal.NewNonRetryableApplicationError("no", "x", nil))
	f.RegisterDelayedCallback(ask(f), time.Second)
	f.sweep(grid, nil)
	require.Equal(t, []string{"refused: " + errSweepNotReady.Error()}, answers)
}

// Trials that cannot be added keep no sweep from ending.
func TestSweepEndsWhenNoTrialsCouldBeAdded(t *testing.T) {
	f := newField(t)
	f.OnActivity("ExtendSweep", mock.Anything, mock.Anything).After(time.Minute).Return(activities.SweepResult{}, temporal.NewNonRetryableApplicationError("no disk", "x", nil))
	f.RegisterDelayedCallback(func() { f.order("add-trials", map[string]any{"seeds": []int{9}}, "no disk") }, 2500*time.Millisecond)
	f.sweep(grid, nil)
	f.succeeded()
	require.Zero(t, f.orders)
}

// What Resolve warns of is in the status.
func TestStatusHasTheWarningsOfTheSpec(t *testing.T) {
	s := &stage{plan: testPlan(), base: true, attributes: true, warnings: []string{"nobody asks for a tag"}}
	p := newPlay(t, s)
	p.train(nil)
	require.NoError(t, p.GetWorkflowError())
	require.Equal(t, s.warnings, p.status().Warnings)
}
