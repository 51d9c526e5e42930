package workers

import (
	"context"
	"fmt"

	"go.uber.org/zap"

	"github.com/reprise-rl/reprise/workers/tracing"
)

// trace sends the workers' spans until stop is called, if the environment names a collector.
func (p *process) trace(ctx context.Context) (stop func(), err error) {
	t, err := tracing.Open(ctx, p.Logger)
	if err != nil {
		return nil, fmt.Errorf("worker: %w", err)
	}
	if t == nil {
		return func() {}, nil
	}
	if p.traced, err = t.Interceptors(); err != nil {
		return nil, fmt.Errorf("worker: %w", err)
	}
	p.Logger.Info("traces are sent to the collector that OTEL_EXPORTER_OTLP_ENDPOINT names")
	return func() {
		if err := t.Close(); err != nil {
			p.Logger.Warn("traces are incomplete", zap.Error(err))
		}
	}, nil
}
