package workers

import (
	"context"
	"fmt"
	"sync"

	"go.temporal.io/sdk/client"
	"go.uber.org/zap"

	"github.com/reprise-rl/reprise/infra/connect"
	"github.com/reprise-rl/reprise/workers/health"
	"github.com/reprise-rl/reprise/workers/telemetry"
)

// serveMetrics answers Prometheus and probes until stop is called. It gives the process a client
// that also exports the SDK's metrics, on the connection of the previous client.
func (p *process) serveMetrics(ctx context.Context) (stop func(), err error) {
	listener, err := telemetry.Listen(ctx, p.MetricsListen)
	if err != nil {
		return nil, err
	}
	p.metrics = telemetry.New(telemetry.Options{Runs: p.MetricsRuns})
	pollers := health.NewPollers(wantedPolls)
	measured, err := client.NewClientFromExistingWithContext(ctx, p.Client, client.Options{
		Namespace: p.Namespace, Logger: connect.Logger(p.Logger), MetricsHandler: pollers.Handler(p.metrics.Temporal()),
		DataConverter: p.Codec.DataConverter(), FailureConverter: p.Codec.FailureConverter(),
	})
	if err != nil {
		_ = listener.Close() // nobody has read from it
		return nil, fmt.Errorf("measure the connection to Temporal: %w", err)
	}
	p.Client = measured
	p.health.Watch(health.Server(p.askServer), pollers.Check)
	// They are served until the workers have stopped: a drain is worth a look.
	serving, end := context.WithCancel(context.WithoutCancel(ctx))
	var ended sync.WaitGroup
	ended.Go(func() {
		if err := p.metrics.Serve(serving, listener, p.health.Handle); err != nil {
			p.Logger.Warn("metrics are no longer served", zap.Error(err))
		}
	})
	if p.Has(RoleWorkflow) {
		ended.Go(func() { p.countRuns(serving) })
	}
	p.metricsURL = telemetry.URL(listener)
	p.Logger.Info("metrics are served", zap.String("url", p.metricsURL))
	return func() {
		end()
		ended.Wait()
		measured.Close()
	}, nil
}
