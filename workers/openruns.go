package workers

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/reprise-rl/reprise/workers/runs"
	"github.com/reprise-rl/reprise/workers/telemetry"
)

const (
	// openEvery is how often the open runs are counted.
	openEvery = 30 * time.Second
	// openTime bounds one count.
	openTime = 20 * time.Second
)

// countRuns keeps the metrics of the open runs until ctx ends. A worker that decides does it: without one no run continues.
func (p *process) countRuns(ctx context.Context) {
	for wait := time.Second; ; wait = min(2*wait, openEvery) {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
		counted, err := p.openRuns(ctx)
		if err != nil && ctx.Err() == nil {
			p.Logger.Debug("could not count the open runs", zap.Error(err))
		}
		p.metrics.Open(counted)
	}
}

func (p *process) openRuns(ctx context.Context) (*telemetry.OpenRuns, error) {
	ctx, cancel := context.WithTimeout(ctx, openTime)
	defer cancel()
	census, err := runs.TakeCensus(ctx, p.Client)
	if err == nil {
		err = census.CountWorkers(ctx, p.Client)
	}
	if err != nil {
		return nil, err
	}
	return &telemetry.OpenRuns{
		Waiting: census.Waiting, Workers: census.Workers, Paused: census.Paused, Resting: census.Resting, Going: census.Going,
	}, nil
}
