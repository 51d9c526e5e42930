package workflows

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"github.com/reprise-rl/reprise/activities"
)

// A run that pauses by itself is found by its phase, until it goes on.
func TestPausedByItselfIsFound(t *testing.T) {
	s := &stage{plan: testPlan(), base: true, attributes: true}
	s.errors = map[string][]error{"Score": {outOfMemory("no room"), outOfMemory("no room")}}
	p := newPlay(t, s)
	var phases []string
	p.OnUpsertTypedSearchAttributes(mock.Anything).Run(func(args mock.Arguments) {
		a := args.Get(0).(temporal.SearchAttributes)
		phase, _ := a.GetKeyword(attributePhase)
		phases = append(phases, phase)
	}).Return(nil)
	p.RegisterDelayedCallback(func() {
		require.Equal(t, []string{"paused"}, phases)
		p.send("resume")
	}, time.Hour)
	p.train(nil)
	p.result()
	require.Equal(t, []string{"paused", "training", "training", "training", "done"}, phases)
}

func outOfMemory(text string) error {
	return temporal.NewNonRetryableApplicationError(text, activities.KindOutOfMemory, nil)
}

// What a step says of its failure is carried, so it is cut; what to do depends on it.
func TestFailureTexts(t *testing.T) {
	r := &train{plan: activities.Plan{StepFailures: 3}}
	long := strings.Repeat("é", 2000)
	of := r.count(&failure{step: "a", kind: activities.KindOutOfMemory, text: long})
	require.Equal(t, Failing{Step: "a", Count: 1, OutOfMemory: 1, Kind: activities.KindOutOfMemory, Error: strings.Repeat("é", 1000) + "…"}, of)
	of = r.count(&failure{step: "a", kind: kindTimedOut, text: "slow"})
	require.Equal(t, Failing{Step: "a", Count: 2, OutOfMemory: 1, Kind: kindTimedOut, Error: "slow"}, of)
	require.Equal(t, "a failed 2 times in a row; the last error: slow", of.Text())
	require.Contains(t, remedyOf(of.Kind), "limits.activity_seconds")
	r.stepEnded("b")
	require.Len(t, r.Failures, 1)
	r.stepEnded("a")
	require.Empty(t, r.Failures)

	r.Run.ID, r.Paused, r.Stuck = "r-1", true, &of
	require.Contains(t, r.details(), "Last error (TimedOut): slow")
	require.Contains(t, r.details(), "temporal workflow update execute -w r-1 --name resume")
	r.resume()
	require.NotContains(t, r.details(), "slow")
}

// A step that is cut off at its time limit is told to the run: the server does not try it
// again.
func TestStepTimesOutOnce(t *testing.T) {
	s := &stage{plan: testPlan(), base: true, errors: map[string][]error{"Score": {temporal.NewTimeoutError(enums.TIMEOUT_TYPE_SCHEDULE_TO_CLOSE, nil)}}}
	p := newPlay(t, s)
	p.train(nil)
	require.Equal(t, 1, p.result().LostDevices)
	require.Equal(t, 2, p.opened)
	require.Equal(t, manifests(undisturbed(t, s)), manifests(s.commits))
}

// A step that runs too long in a row gets twice the time each time, up to a bound. A worker that lives is no lost device, but the step
// counts: in the end the run pauses.
func TestSlowStepGetsMoreTime(t *testing.T) {
	s := &stage{plan: testPlan(), base: true, errors: map[string][]error{}}
	for range 6 {
		s.errors["Score"] = append(s.errors["Score"], temporal.NewTimeoutError(enums.TIMEOUT_TYPE_SCHEDULE_TO_CLOSE, nil))
	}
	s.plan.StepFailures = 6
	p := newPlay(t, s)
	for n := 2; n <= 8; n++ {
		p.again[n] = true
	}
	var limits []time.Duration
	p.tell = func(info *activity.Info, _ converter.EncodedValues) {
		if info.ActivityType.Name == "Score" {
			limits = append(limits, info.Deadline.Sub(info.StartedTime).Round(time.Second))
		}
	}
	var paused Status
	p.RegisterDelayedCallback(func() {
		paused = p.status()
		p.send("resume")
	}, time.Hour)
	p.train(nil)
	require.Zero(t, p.result().LostDevices)
	require.Zero(t, paused.SilentDevices)
	require.NotNil(t, paused.PausedBy)
	require.Equal(t, 6, paused.PausedBy.Count)
	base := limits[0]
	require.Equal(t, []time.Duration{base, 2 * base, 4 * base, 8 * base, 16 * base, 16 * base, base}, limits[:7])
	require.Contains(t, paused.PausedBy.Error, fmt.Sprintf("time limit of %s, which follows from limits.activity_seconds", 16*base))
	for _, c := range s.commits {
		require.Zero(t, c.Lost)
	}
}
