// Package tracing tells an OpenTelemetry collector what a worker does: a trace for each iteration of a run, and one for each
// evaluation and sweep.
//
// Spans of activities are those of Temporal's own interceptor, which sends an activity's context in its headers. The SDK would
// put all of a workflow into one trace, which for a run of days no tool can show. So the workflow's activities get the
// iteration to which they belong as their parent. Its ids follow from the execution and the iteration, so that every worker that
// decides for the run, and each replay, has the same ones. Nothing of it changes what a workflow decides: a header is no
// command.
package tracing

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
	temporaltracing "go.temporal.io/sdk/contrib/opentelemetry"
	"go.temporal.io/sdk/interceptor"
	"go.uber.org/zap"

	"github.com/reprise-rl/reprise/infra/build"
)

// flushTime is how long a worker that stops waits until the collector has its spans.
const flushTime = 5 * time.Second

// scope names what makes the spans.
const scope = "github.com/reprise-rl/reprise"

// Tracing sends a worker's spans.
type Tracing struct {
	provider *trace.TracerProvider
}

// On says whether the environment names a collector: OpenTelemetry's own variables do.
func On(getenv func(string) string) bool {
	if strings.EqualFold(getenv("OTEL_SDK_DISABLED"), "true") || getenv("OTEL_TRACES_EXPORTER") == "none" {
		return false
	}
	return cmp.Or(getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"), getenv("OTEL_EXPORTER_OTLP_ENDPOINT")) != ""
}

// Open sends spans to the collector that the environment names; nil if it names none.
func Open(ctx context.Context, logger *zap.Logger) (*Tracing, error) {
	if !On(os.Getenv) {
		return nil, nil
	}
	exporter, err := export(ctx)
	if err != nil {
		return nil, fmt.Errorf("open OpenTelemetry's exporter: %w", err)
	}
	described, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", "reprise"), attribute.String("service.version", build.Read().String())),
		resource.WithProcessPID(), resource.WithHost(), resource.WithFromEnv()) // the environment's attributes win
	if err != nil {
		return nil, fmt.Errorf("describe this process to OpenTelemetry: %w", err)
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { logger.Warn("spans were not sent", zap.Error(err)) }))
	return newTracing(trace.WithBatcher(exporter), trace.WithResource(described)), nil
}

// export is the exporter of the protocol that the environment names.
func export(ctx context.Context) (trace.SpanExporter, error) {
	protocol := cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"), os.Getenv("OTEL_EXPORTER_OTLP_PROTOCOL"), "http/protobuf")
	switch protocol {
	case "http/protobuf":
		return otlptracehttp.New(ctx)
	case "grpc":
		return otlptracegrpc.New(ctx)
	}
	return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL is %q: http/protobuf or grpc", protocol)
}

func newTracing(options ...trace.TracerProviderOption) *Tracing {
	return &Tracing{provider: trace.NewTracerProvider(append(options, trace.WithIDGenerator(ids{}))...)}
}

// Interceptors make the spans of a worker.
func (t *Tracing) Interceptors() ([]interceptor.WorkerInterceptor, error) {
	tracer := t.provider.Tracer(scope)
	theirs, err := temporaltracing.NewTracer(temporaltracing.TracerOptions{
		Tracer: tracer, SpanContextKey: spanKey{}, DisableQueryTracing: true, AllowInvalidParentSpans: true,
		DisableUpdateTracing: true, // their spans would be sent again by each replay
		SpanStarter:          startSpan,
	})
	if err != nil {
		return nil, fmt.Errorf("make Temporal's tracer: %w", err)
	}
	// A workflow asks the last interceptor first: so activities have their parent before Temporal's makes their spans.
	return []interceptor.WorkerInterceptor{interceptor.NewTracingInterceptor(theirs), &parents{tracer: tracer, theirs: theirs}}, nil
}

// Close sends what was not sent.
func (t *Tracing) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), flushTime)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil {
		return fmt.Errorf("send the last spans: %w", err)
	}
	return nil
}
