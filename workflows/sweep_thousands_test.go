package workflows

import (
	"encoding/json"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/reprise-rl/reprise/workflows/sweep"
)

// thousands is a sweep of so many settings, ten seeds each.
func thousands(settings int) string {
	var values []string
	for i := range settings {
		values = append(values, fmt.Sprint(0.5+float64(i)/1000))
	}
	return fmt.Sprintf(`{"base": BASE, "grid": {"rollout.temperature": [%s]}, "seeds": 10, "parallel": 500, "metrics": ["success/mean"]}`, strings.Join(values, ","))
}

// processorTime is what this process has used.
func processorTime(t *testing.T) time.Duration {
	var u syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// A sweep of 5,000 trials, 500 at once, whose history is about as long as the server
// permits, is replayed in at most five seconds of processor time. It takes 1.6 s; it took
// 57 s while each report computed every statistic and each trial had a coroutine.
func TestSweepOfThousandsIsReplayed(t *testing.T) {
	h := writeSwept(newField(t), thousands(500), sweep.MaxParallel, 2)
	require.Len(t, h.trials, 5000)
	var result *SweepResult
	before := processorTime(t)
	err := h.replay(func(ctx workflow.Context, input json.RawMessage, carry *SweepCarry) (_ *SweepResult, err error) {
		result, err = (&Workflows{}).Sweep(ctx, input, carry)
		return result, err
	})
	took := processorTime(t) - before
	t.Logf("%d events: %v of processor time", len(h.Events), took)
	require.NoError(t, err)
	require.Less(t, took, 5*time.Second)
	require.Equal(t, SweepCounts{Trials: 5000, Done: 5000}, result.Counts)
}

// The details of a sweep with many open trials are written at most once a second, those of
// a sweep with few at each change.
func TestSweepDetailsAreWrittenOnceASecond(t *testing.T) {
	for open, want := range map[int]int{maxShown: 10, maxShown + 1: 3} {
		var suite testsuite.WorkflowTestSuite
		env := suite.NewTestWorkflowEnvironment()
		env.ExecuteWorkflow(func(ctx workflow.Context) error {
			s := &sweeping{root: ctx}
			for range open {
				s.open = append(s.open, &trial{})
			}
			written := 0
			for range 10 {
				before := s.shown
				if s.show(ctx, "running trials"); s.shown != before {
					written++
				}
				if err := workflow.Sleep(ctx, 250*time.Millisecond); err != nil {
					return err
				}
			}
			require.Equal(t, want, written)
			s.show(ctx, "done")
			require.Equal(t, "done", s.phase, "another phase is shown at once")
			return nil
		})
		require.NoError(t, env.GetWorkflowError())
	}
}
