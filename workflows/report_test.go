package workflows

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"
)

// A report is written at the end where the spec asks for it, and whenever somebody
// does; one that cannot be written fails nothing.
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
