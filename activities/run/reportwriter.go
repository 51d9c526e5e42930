package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/store"
)

// ErrNoReport says that the worker was built without reports.
var ErrNoReport = errors.New("this worker writes no reports")

// ReportWriter makes the page of a run, or of a sweep, and hands its files to sink:
// names are relative and '/'-separated, index.html comes last.
type ReportWriter func(ctx context.Context, s store.Store, id string, sink func(name string, body []byte) error) error

// Into writes a page below a folder of the store.
func (write ReportWriter) Into(ctx context.Context, s store.Store, id, dir string) (activities.ReportResult, error) {
	defer Heartbeat(ctx)()
	start := time.Now()
	if write == nil {
		return activities.ReportResult{}, ErrNoReport
	}
	files := 0
	err := write(ctx, s, id, func(name string, body []byte) error {
		files++
		key := dir + "/" + name
		if err := s.Put(ctx, key, body, store.PutOptions{}); err != nil {
			return fmt.Errorf("write %s: %w", s.Location(key), err)
		}
		return nil
	})
	return activities.ReportResult{
		Location: s.Location(dir + "/index.html"), Files: files,
		Telemetry: activities.Telemetry{Seconds: time.Since(start).Seconds()},
	}, err
}
