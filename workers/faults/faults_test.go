package faults

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		text string
		want Fault
		bad  string
	}{
		{text: "Update/written/2", want: Fault{Kind: "Update", Phase: "written", Nth: 2}},
		{text: "Commit/delay:20/1", want: Fault{Kind: "Commit", Phase: "delay", After: 20 * time.Millisecond, Nth: 1}},
		{text: "Update/stall:1500/1", want: Fault{Kind: "Update", Phase: "stall", After: 1500 * time.Millisecond, Nth: 1}},
		{text: "Update/oom/1", want: Fault{Kind: "Update", Phase: OutOfMemory, Nth: 1}},
		{text: "one!Generate@2/stuck/3", want: Fault{Kind: "one!Generate@2", Phase: Stuck, Nth: 3}},
		{text: "Resolve/panic/1", want: Fault{Kind: "Resolve", Phase: Panic, Nth: 1}},
		{text: "Step/decided/1", want: Fault{Kind: "Step", Phase: "decided", Nth: 1}},
		{text: "Generate@2/inside/1", want: Fault{Kind: "Generate@2", Phase: "inside", Nth: 1}},
		{text: "Step@slippery:2/inside/3", want: Fault{Kind: "Step@slippery:2", Phase: "inside", Nth: 3}},
		{text: "Update#0/inside/1", want: Fault{Kind: "Update#0", Phase: "inside", Nth: 1}},
		{text: "one!Update#0/inside/1", want: Fault{Kind: "one!Update#0", Phase: "inside", Nth: 1}},
		{text: "!Update/inside/1", bad: "is not RUN!KIND"},
		{text: "one!/inside/1", bad: "is not RUN!KIND"},
		{text: "Update#x/inside/1", bad: "is not KIND#ITERATION"},
		{text: "#1/inside/1", bad: "is not KIND#ITERATION"},
		{text: "Generate@/inside/1", bad: "is not KIND@TURN"},
		{text: "@2/inside/1", bad: "is not KIND@TURN"},
		{text: "Update", bad: "not KIND/PHASE/N"},
		{text: "/begin/1", bad: "not KIND/PHASE/N"},
		{text: "Update/begin/0", bad: "no occurrence"},
		{text: "Update/end/1", bad: "is none of decided, begin, inside, written"},
		{text: "Update/delay/1", bad: "is none of"},
		{text: "Update/delay:x/1", bad: "no milliseconds"},
		{text: "Update/begin:3/1", bad: "is none of"},
	} {
		f, err := Parse(c.text)
		if c.bad != "" {
			require.ErrorContains(t, err, c.bad, c.text)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, c.want, f)
		require.Equal(t, c.text, f.String())
	}
}

func TestOffByDefault(t *testing.T) {
	p, err := FromEnvironment(func(string) string { return "" })
	require.NoError(t, err)
	require.Nil(t, p)

	for name, value := range map[string]string{Env: "nonsense", EnvDiverge: "Update/1", EnvBuild: "newer"} {
		_, err = FromEnvironment(func(asked string) string {
			if asked == name {
				return value
			}
			return ""
		})
		require.ErrorContains(t, err, name)
	}
}

func TestBuilds(t *testing.T) {
	for text, want := range map[string]model.OtherBuild{OtherPrograms: {Program: OtherProgram}, OtherNumerics: {Numerics: 1}} {
		p, err := FromEnvironment(func(name string) string {
			if name == EnvBuild {
				return text
			}
			return ""
		})
		require.NoError(t, err)
		require.Equal(t, want, p.Build())
	}
}

// TestPlaces sees where a fault strikes: the activity reads, then writes twice.
func TestPlaces(t *testing.T) {
	for _, c := range []struct {
		fault string
		calls int
		want  []string
	}{
		{"Work/begin/1", 1, []string{"strike"}},
		{"Work/inside/1", 1, []string{"entered", "read", "strike"}},
		{"Work/written/1", 1, []string{"entered", "read", "wrote", "wrote", "strike"}},
		{"Work/written/2", 1, []string{"entered", "read", "wrote", "wrote"}},
		{"Work/begin/2", 2, []string{"entered", "read", "wrote", "wrote", "strike"}},
		{"Other/begin/1", 1, []string{"entered", "read", "wrote", "wrote"}},
		// The second call fails before it writes: the third is struck in its place.
		{"Work/inside/2", 3, []string{"entered", "read", "wrote", "wrote", "entered", "failed", "entered", "read", "strike"}},
	} {
		t.Run(c.fault, func(t *testing.T) {
			var saw []string
			p, err := FromEnvironment(func(name string) string {
				if name == Env {
					return c.fault
				}
				return ""
			})
			require.NoError(t, err)
			p.out = new(bytes.Buffer)
			p.kill = func() { saw = append(saw, "strike"); panic("killed") }
			s := p.Store(store.NewMemory())
			calls := 0
			work := func(ctx context.Context) error {
				saw = append(saw, "entered")
				if calls++; calls == 2 && c.calls == 3 {
					saw = append(saw, "failed")
					return errors.New("no device")
				}
				_, _ = s.Stat(ctx, "a")
				saw = append(saw, "read")
				for _, key := range []string{"a", "b"} {
					if err := s.Put(ctx, key, nil, store.PutOptions{}); err != nil {
						return err
					}
					saw = append(saw, "wrote")
				}
				return nil
			}
			var suite testsuite.WorkflowTestSuite
			env := suite.NewTestActivityEnvironment()
			env.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{p.Interceptor()}})
			env.RegisterActivityWithOptions(work, activity.RegisterOptions{Name: "Work"})
			for range c.calls {
				_, _ = env.ExecuteActivity(work)
			}
			require.Equal(t, c.want, saw)
		})
	}
}

// TestTurns sees which of a rollout's and an evaluation's activities a fault is for.
func TestTurns(t *testing.T) {
	training, slippery := activities.Rollout{}, activities.Rollout{Evaluation: &activities.EvaluationOf{Suite: "slippery"}}
	calls := []struct {
		kind  string
		input any
	}{
		{"Generate", activities.GenerateInput{Rollout: slippery, Turn: 1}},
		{"Generate", activities.GenerateInput{Rollout: slippery, Turn: 2}},
		{"Measure", activities.MeasureInput{Rollout: slippery}},
		{"Generate", activities.GenerateInput{Rollout: training, Turn: 1}},
		{"Step", activities.StepInput{Rollout: training, Turn: 1}},
		{"Generate", activities.GenerateInput{Rollout: training, Turn: 2}},
		{"Step", activities.StepInput{Rollout: training, Turn: 2}},
		{"Update", activities.UpdateInput{Policy: activities.Version{Version: 3}}},
		{"Generate", activities.GenerateInput{Rollout: training, Turn: 2}},
		{"Step", activities.StepInput{Rollout: slippery, Turn: 2}},
	}
	for _, c := range []struct {
		fault string
		want  int // the call it strikes at, -1 if at none
	}{
		{"Generate/begin/4", 5},
		{"Generate@2/begin/1", 5},
		{"Generate@2/begin/2", 8},
		{"Generate@2/begin/3", -1},
		{"Generate@slippery/begin/2", 1},
		{"Generate@slippery:2/begin/1", 1},
		{"Generate@slippery:2/begin/2", -1},
		{"Step@2/begin/1", 6},
		{"Step@slippery:2/begin/1", 9},
		{"Measure@slippery/begin/1", 2},
		{"Update@2/begin/1", -1},
		{"Update#3/begin/1", 7},
		{"Update#2/begin/1", -1},
		{"default-test-workflow-id!Update#3/begin/1", 7},
		{"other!Update#3/begin/1", -1},
		{"Generate#0/begin/3", 8},
	} {
		t.Run(c.fault, func(t *testing.T) {
			p, err := FromEnvironment(func(name string) string {
				if name == Env {
					return c.fault
				}
				return ""
			})
			require.NoError(t, err)
			p.out = new(bytes.Buffer)
			at, struck := 0, -1
			p.kill = func() { struck = at }
			var suite testsuite.WorkflowTestSuite
			env := suite.NewTestActivityEnvironment()
			env.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{p.Interceptor()}})
			generate := func(context.Context, activities.GenerateInput) error { return nil }
			step := func(context.Context, activities.StepInput) error { return nil }
			measure := func(context.Context, activities.MeasureInput) error { return nil }
			update := func(context.Context, activities.UpdateInput) error { return nil }
			of := map[string]any{"Generate": generate, "Step": step, "Measure": measure, "Update": update}
			for kind, work := range of {
				env.RegisterActivityWithOptions(work, activity.RegisterOptions{Name: kind})
			}
			for ; at < len(calls); at++ {
				_, err := env.ExecuteActivity(calls[at].kind, calls[at].input)
				require.NoError(t, err)
			}
			require.Equal(t, c.want, struck)
		})
	}
}

// TestDeviceFailures sees which executions of an activity fail: its first after it took the
// device, once; all of them where the device is poisoned.
func TestDeviceFailures(t *testing.T) {
	for _, c := range []struct {
		fault string
		// want are a self-test that differs and the failures of two executions in each of
		// three calls, and of an execution between two of them.
		want []string
	}{
		{"Update/oom/2", []string{"", "", "", OutOfMemory, "", "", "", ""}},
		{"Update/oom/1,Update/lost/1,Update/unclear/1", []string{OutOfMemory, Lost, "", Unclear, "", "", "", ""}},
		{"Update/poisoned/2", []string{"", "", "", Poisoned, Poisoned, Poisoned, Poisoned, Poisoned}},
		{"Score/oom/1", []string{"", "", "", "", "", "", "", ""}},
		{"Update/differs/2", []string{"", "", "", Differs, "", "", "", "", ""}},
	} {
		t.Run(c.fault, func(t *testing.T) {
			p, err := FromEnvironment(func(name string) string {
				if name == Env {
					return c.fault
				}
				return ""
			})
			require.NoError(t, err)
			p.out = new(bytes.Buffer)
			var got []string
			execute := func() {
				err := p.Executes("apply")
				for name, failure := range failures {
					if errors.Is(err, failure) {
						got = append(got, name)
						return
					}
				}
				require.NoError(t, err)
				got = append(got, "")
			}
			work := func(ctx context.Context) error {
				released := p.Took(ctx)
				if p.Differs(ctx) {
					got = append(got, Differs)
				}
				execute()
				execute()
				released()
				return nil
			}
			var suite testsuite.WorkflowTestSuite
			env := suite.NewTestActivityEnvironment()
			env.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{p.Interceptor()}})
			env.RegisterActivityWithOptions(work, activity.RegisterOptions{Name: "Update"})
			for i := range 3 {
				_, err := env.ExecuteActivity(work)
				require.NoError(t, err)
				if i < 2 {
					execute() // of nobody's: the compiler's look ahead, say
				}
			}
			require.Equal(t, c.want, got)
		})
	}
}
