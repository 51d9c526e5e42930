package bench

import (
	"context"
	"fmt"
	"runtime"
	"runtime/metrics"
	"time"

	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workers/report"
	"github.com/reprise-rl/reprise/workers/report/synthetic"
)

// ReportSpeed is the cost of the report of a large run on this machine.
type ReportSpeed struct {
	// Iterations and Trajectories are the run's; evaluations are not counted.
	Iterations   int `json:"iterations"`
	Trajectories int `json:"trajectories"`
	// StoredBytes is the size of the run's artifacts.
	StoredBytes int64 `json:"stored_bytes"`
	// Seconds is the time of report.Write, PeakBytes the growth of the heap meanwhile. The
	// run itself is in memory before.
	Seconds   float64 `json:"seconds"`
	PeakBytes int64   `json:"peak_bytes"`
	// Files and Bytes are the report's, IndexBytes its page's alone.
	Files      int   `json:"files"`
	Bytes      int64 `json:"bytes"`
	IndexBytes int64 `json:"index_bytes"`
}

// MeasureReport measures the report of a synthetic run in a memory store. keep, if set,
// receives the report's files.
func MeasureReport(ctx context.Context, shape synthetic.Shape, keep report.Sink) (ReportSpeed, error) {
	s := store.NewMemory()
	if err := synthetic.Write(ctx, s, "large", shape); err != nil {
		return ReportSpeed{}, err
	}
	var out ReportSpeed
	for o, err := range s.List(ctx, store.RunDir("large")+"/") {
		if err != nil {
			return out, err
		}
		out.StoredBytes += o.Size
	}
	runtime.GC()
	before := heap()
	stop, peak := make(chan struct{}), make(chan int64)
	go func() {
		most := before
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				peak <- max(most, heap())
				return
			case <-tick.C:
				most = max(most, heap())
			}
		}
	}()
	began := time.Now()
	summary, err := report.Write(ctx, s, "large", func(name string, body []byte) error {
		if name == "index.html" {
			out.IndexBytes = int64(len(body))
		}
		if keep != nil {
			return keep(name, body)
		}
		return nil
	})
	out.Seconds = time.Since(began).Seconds()
	close(stop)
	out.PeakBytes = <-peak - before
	if err != nil {
		return out, fmt.Errorf("measure a report: %w", err)
	}
	out.Iterations, out.Trajectories = summary.Iterations, summary.Iterations*shape.Groups*shape.Members
	out.Files, out.Bytes = summary.Files, summary.Bytes
	return out, nil
}

// heap is the size of the heap objects, live or not yet swept.
func heap() int64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64())
}
