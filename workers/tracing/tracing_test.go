package tracing

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/workflows"
)

// inMemory are traces that a test keeps.
func inMemory(t *testing.T) (*Tracing, *tracetest.InMemoryExporter) {
	t.Helper()
	kept := tracetest.NewInMemoryExporter()
	return newTracing(trace.WithSyncer(kept)), kept
}

// activitiesOf registers activities that succeed, but for commits that fail so often.
func activitiesOf(env *testsuite.TestWorkflowEnvironment, failing int) {
	for kind, f := range map[string]any{
		"Resolve":  func(context.Context, activities.ResolveInput) error { return nil },
		"Generate": func(context.Context, activities.GenerateInput) error { return nil },
		"Update":   func(context.Context, activities.UpdateInput) error { return nil },
		"Commit": func(context.Context, activities.CommitInput) error {
			if failing > 0 {
				failing--
				return errors.New("away")
			}
			return nil
		},
	} {
		env.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: kind})
	}
}

// rollout is the input of a step of an iteration's rollout.
func rollout(iteration int) activities.GenerateInput {
	return activities.GenerateInput{Rollout: activities.Rollout{Iteration: iteration}}
}

// An iteration is a trace: its activities, here and where they run, are below one span that ends with its commit.
func TestOneTraceAnIteration(t *testing.T) {
	traces, kept := inMemory(t)
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	interceptors, err := traces.Interceptors()
	require.NoError(t, err)
	env.SetWorkerOptions(worker.Options{Interceptors: interceptors})
	activitiesOf(env, 1)
	env.RegisterWorkflowWithOptions(func(ctx workflow.Context) error {
		ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
		do := func(kind string, in any) error { return workflow.ExecuteActivity(ctx, kind, in).Get(ctx, nil) }
		var ahead workflow.Future
		for _, err := range []error{
			do("Resolve", activities.ResolveInput{Run: "r"}),
			do("Generate", rollout(7)),
			func() error { ahead = workflow.ExecuteActivity(ctx, "Generate", rollout(8)); return nil }(), // beside the update
			do("Update", activities.UpdateInput{}),
			do("Commit", activities.CommitInput{Iteration: 7}),
			ahead.Get(ctx, nil),
			do("Update", activities.UpdateInput{}),
			do("Commit", activities.CommitInput{Iteration: 8}),
			do("Generate", rollout(8)), // again, after a rollback
		} {
			if err != nil {
				return err
			}
		}
		return nil
	}, workflow.RegisterOptions{Name: "Train"})
	env.ExecuteWorkflow("Train")
	require.NoError(t, env.GetWorkflowError())

	roots := map[string]string{} // by trace
	for _, s := range kept.GetSpans() {
		if !s.Parent.IsValid() {
			require.NotContains(t, roots, s.SpanContext.TraceID().String())
			roots[s.SpanContext.TraceID().String()] = s.Name
		}
	}
	var names []string
	seen := map[string][]string{}
	for trace, root := range roots {
		names = append(names, root)
		for _, s := range kept.GetSpans() {
			if s.SpanContext.TraceID().String() == trace && s.Parent.IsValid() {
				seen[root] = append(seen[root], s.Name)
			}
		}
		slices.Sort(seen[root])
	}
	slices.Sort(names)
	require.Equal(t, []string{"iteration 7", "iteration 8", "iteration 8", "start"}, names)
	require.Equal(t, []string{"RunActivity:Resolve", "StartActivity:Resolve"}, seen["start"])
	require.Equal(t, []string{
		"RunActivity:Commit", "RunActivity:Commit", "RunActivity:Generate", "RunActivity:Update", // the first commit failed
		"StartActivity:Commit", "StartActivity:Generate", "StartActivity:Update",
	}, seen["iteration 7"])
	for _, s := range kept.GetSpans() {
		require.NotContains(t, s.Name, "RunWorkflow")
		if s.Name == "iteration 7" {
			require.True(t, s.EndTime.After(s.StartTime) || s.EndTime.Equal(s.StartTime))
			require.Equal(t, "reprise.iteration", string(s.Attributes[2].Key))
		}
	}
}

// Recorded histories are decided again as they were, by a worker that traces. What was sent then is not sent again.
func TestReplaySendsNothing(t *testing.T) {
	for _, scene := range []string{"whole", "killed", "continued-1", "evaluate", "returned", "lagging", "swept-0"} {
		f, err := os.Open("../../workflows/testdata/histories/" + scene + ".json.gz")
		require.NoError(t, err)
		z, err := gzip.NewReader(f)
		require.NoError(t, err)
		h, err := client.HistoryFromJSON(z, client.HistoryJSONOptions{})
		require.NoError(t, err)
		require.NoError(t, f.Close())
		traces, kept := inMemory(t)
		interceptors, err := traces.Interceptors()
		require.NoError(t, err)
		r, err := worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{DisableDeadlockDetection: true, Interceptors: interceptors})
		require.NoError(t, err)
		w := &workflows.Workflows{}
		r.RegisterWorkflowWithOptions(w.Train, workflow.RegisterOptions{Name: "Train"})
		r.RegisterWorkflowWithOptions(w.Evaluate, workflow.RegisterOptions{Name: "Evaluate"})
		r.RegisterWorkflowWithOptions(w.Sweep, workflow.RegisterOptions{Name: "Sweep"})
		id, _, _ := strings.Cut(scene, "-")
		silent := log.NewStructuredLogger(slog.New(slog.DiscardHandler))
		options := worker.ReplayWorkflowHistoryOptions{OriginalExecution: workflow.Execution{ID: id}}
		require.NoError(t, r.ReplayWorkflowHistoryWithOptions(silent, h, options), scene)
		for _, s := range kept.GetSpans() {
			t.Errorf("%s: %s was sent again", scene, s.Name)
		}
	}
}

func TestIDs(t *testing.T) {
	ctx := wanting(t.Context(), "run\x00iteration 7")
	a, b := ids{}.NewIDs(ctx)
	c, d := ids{}.NewIDs(ctx)
	require.Equal(t, a, c)
	require.Equal(t, b, d)
	other, _ := ids{}.NewIDs(wanting(t.Context(), "run\x00iteration 8"))
	require.NotEqual(t, a, other)
	random, span := ids{}.NewIDs(t.Context())
	again, _ := ids{}.NewIDs(t.Context())
	require.NotEqual(t, random, again)
	require.True(t, random.IsValid() && span.IsValid())
}

// Spans go to the collector that the standard variables name; without them there is no tracing.
func TestCollector(t *testing.T) {
	var mu sync.Mutex
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var in collector.ExportTraceServiceRequest
		if err != nil || proto.Unmarshal(body, &in) != nil || r.URL.Path != "/v1/traces" {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		for _, resource := range in.ResourceSpans {
			for _, a := range resource.Resource.Attributes {
				if a.Key == "service.name" || a.Key == "team" {
					got = append(got, a.Key+"="+a.Value.GetStringValue())
				}
			}
			for _, s := range resource.ScopeSpans[0].Spans {
				got = append(got, s.Name)
			}
		}
	}))
	defer server.Close()
	for _, name := range []string{"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_PROTOCOL"} {
		t.Setenv(name, "")
	}
	none, err := Open(t.Context(), zap.NewNop())
	require.NoError(t, err)
	require.Nil(t, none)

	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "team=rl")
	traces, err := Open(t.Context(), zap.NewNop())
	require.NoError(t, err)
	_, span := traces.provider.Tracer(scope).Start(t.Context(), "iteration 1")
	span.End()
	require.NoError(t, traces.Close())
	mu.Lock()
	defer mu.Unlock()
	slices.Sort(got)
	require.Equal(t, []string{"iteration 1", "service.name=reprise", "team=rl"}, got)

	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "carrier pigeon")
	_, err = Open(t.Context(), zap.NewNop())
	require.ErrorContains(t, err, `OTEL_EXPORTER_OTLP_PROTOCOL is "carrier pigeon": http/protobuf or grpc`)
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
	traces, err = Open(t.Context(), zap.NewNop())
	require.NoError(t, err)
	require.NotNil(t, traces)
	for variable, value := range map[string]string{"OTEL_SDK_DISABLED": "true", "OTEL_TRACES_EXPORTER": "none"} {
		t.Run(variable, func(t *testing.T) {
			t.Setenv(variable, value)
			off, err := Open(t.Context(), zap.NewNop())
			require.NoError(t, err)
			require.Nil(t, off)
		})
	}
}
