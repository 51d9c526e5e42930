package workflows

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/store/canon"
)

// listed is what a run's search attributes were set to, and when after its start.
type listed struct {
	iteration int64
	phase     string
	at        time.Duration
}

// listedOf are the settings of a run of so many iterations that does what play says.
func listedOf(t *testing.T, iterations int, play func(ctx workflow.Context, t *train)) []listed {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestWorkflowEnvironment()
	env.SetTestTimeout(testTimeout)
	var out []listed
	var start time.Time
	env.OnUpsertTypedSearchAttributes(mock.Anything).Run(func(args mock.Arguments) {
		l := listed{at: env.Now().Sub(start)}
		l.iteration, _ = args.Get(0).(temporal.SearchAttributes).GetInt64(attributeIteration)
		l.phase, _ = args.Get(0).(temporal.SearchAttributes).GetKeyword(attributePhase)
		out = append(out, l)
	}).Return(nil)
	env.ExecuteWorkflow(func(ctx workflow.Context) error {
		start = workflow.Now(ctx)
		run := &train{Carry: Carry{Attributes: true}}
		run.plan.Iterations = iterations
		play(ctx, run)
		return nil
	})
	require.NoError(t, env.GetWorkflowError())
	return out
}

// commit has a run commit after a while.
func commit(ctx workflow.Context, t *train, after time.Duration) {
	_ = workflow.Sleep(ctx, after)
	t.Next++
	t.Metrics = activities.Metrics{"success/mean": canon.Float(t.Next)}
	t.attributes(ctx)
	t.show(ctx, "iteration committed")
}

// Attributes are set with the first commit, then not again within attributesApart, and at the end.
func TestAttributesAreCoalesced(t *testing.T) {
	require.Equal(t, []listed{{1, "training", 2 * time.Second}, {4, "training", 8 * time.Second}, {6, "done", 12 * time.Second}},
		listedOf(t, 6, func(ctx workflow.Context, t *train) {
			for range 6 {
				commit(ctx, t, 2*time.Second)
			}
		}))
}

// Iterations that are attributesApart are set each.
func TestLongIterationsAreListedEach(t *testing.T) {
	require.Equal(t, []listed{{1, "training", 5 * time.Second}, {2, "training", 10 * time.Second}, {3, "done", 15 * time.Second}},
		listedOf(t, 3, func(ctx workflow.Context, t *train) {
			for range 3 {
				commit(ctx, t, attributesApart)
			}
		}))
}

// What the attributes lack is set when the next step begins late enough, when the run waits, before it pauses by
// itself, and when a person has paused it; and only once.
func TestAttributesWhileARunWaits(t *testing.T) {
	first := listed{1, "training", time.Second}
	for name, of := range map[string]struct {
		play func(ctx workflow.Context, t *train)
		want []listed
	}{
		"a step": {func(ctx workflow.Context, t *train) { t.show(ctx, "update") }, nil},
		"a later step": {func(ctx workflow.Context, t *train) {
			_ = workflow.Sleep(ctx, 4*time.Second)
			t.show(ctx, "update")
			t.show(ctx, "snapshot")
		}, []listed{{2, "training", 6 * time.Second}}},
		"a device": {func(ctx workflow.Context, t *train) {
			t.show(ctx, waitingForDevice)
			t.show(ctx, waitingForDevice)
		}, []listed{{2, "training", 2 * time.Second}}},
		"memory":   {func(ctx workflow.Context, t *train) { t.show(ctx, waitingForMemory) }, []listed{{2, "training", 2 * time.Second}}},
		"programs": {func(ctx workflow.Context, t *train) { t.show(ctx, waitingForPrograms) }, []listed{{2, "training", 2 * time.Second}}},
		"a failing step": {func(ctx workflow.Context, t *train) { t.pauseBy(ctx, &Failing{}) },
			[]listed{{2, "training", 2 * time.Second}, {0, "paused", 2 * time.Second}}},
		"a person": {func(ctx workflow.Context, t *train) {
			t.Paused = true
			workflow.Go(ctx, func(ctx workflow.Context) {
				_ = workflow.Sleep(ctx, time.Hour)
				t.resume()
			})
			_ = t.rest(ctx)
		}, []listed{{2, "training", 2 * time.Second}}},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, append([]listed{first}, of.want...), listedOf(t, 9, func(ctx workflow.Context, t *train) {
				commit(ctx, t, time.Second)
				commit(ctx, t, time.Second)
				of.play(ctx, t)
			}))
		})
	}
}

// A run sets its attributes, and those of its last commit when it is done, and when it is cancelled.
func TestSearchAttributes(t *testing.T) {
	for name, of := range map[string]struct {
		cancelled bool
		want      []listed
	}{
		"done":      {false, []listed{{iteration: 1, phase: "training"}, {iteration: 3, phase: "done"}}},
		"cancelled": {true, []listed{{iteration: 1, phase: "training"}, {iteration: 2, phase: "training"}}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &stage{plan: testPlan(), base: true, attributes: true}
			p := newPlay(t, s)
			var out []listed
			p.OnUpsertTypedSearchAttributes(mock.Anything).Run(func(args mock.Arguments) {
				a := args.Get(0).(temporal.SearchAttributes)
				environment, _ := a.GetKeyword(attributeEnvironment)
				require.Equal(t, "bandit", environment)
				print, _ := a.GetKeyword(attributeFingerprint)
				require.Equal(t, testPrint, print)
				reward, _ := a.GetFloat64(attributeReward)
				require.Equal(t, 0.5, reward)
				var l listed
				l.iteration, _ = a.GetInt64(attributeIteration)
				l.phase, _ = a.GetKeyword(attributePhase)
				out = append(out, l)
			}).Return(nil)
			if of.cancelled {
				p.when("Update", 3, p.CancelWorkflow)
			}
			p.train(nil)
			require.Equal(t, of.cancelled, p.GetWorkflowError() != nil)
			require.Equal(t, of.want, out)
			if !of.cancelled {
				require.Empty(t, p.status().Warnings)
			}
		})
	}
}
