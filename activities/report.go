package activities

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/reprise-rl/reprise/infra/store"
)

// ReportInput asks for a run's page.
type ReportInput struct {
	Run string `json:"run"`
}

// ReportSweepInput asks for a sweep's page.
type ReportSweepInput struct {
	Sweep string `json:"sweep"`
}

// ReportResult says where the page is.
type ReportResult struct {
	Location  string    `json:"location"`
	Files     int       `json:"files"`
	Telemetry Telemetry `json:"telemetry"`
}

// ErrNoReport says that the worker was built without reports.
var ErrNoReport = errors.New("this worker writes no reports")

// ReportWriter makes the page of a run, or of a sweep, and hands its files to sink:
// names are relative and '/'-separated, index.html comes last.
type ReportWriter func(ctx context.Context, s store.Store, id string, sink func(name string, body []byte) error) error

// Report writes a run's page for people beside its artifacts, in place of the one
// before. It shows what is there: it has times in it, and is no part of the chain.
func (h *Host) Report(ctx context.Context, in ReportInput) (_ ReportResult, err error) {
	defer edge(ctx, &err, "report of run %s", in.Run)
	return h.WriteReport.into(ctx, h.Store, in.Run, store.ReportDir(in.Run))
}

// ReportSweep writes a sweep's page for people beside its table, in place of the one
// before. It shows what is there, and is no artifact either.
func (s *Sweeps) ReportSweep(ctx context.Context, in ReportSweepInput) (_ ReportResult, err error) {
	defer edge(ctx, &err, "report of sweep %s", in.Sweep)
	return s.WriteReport.into(ctx, s.Store, in.Sweep, store.SweepReportDir(in.Sweep))
}

// into writes a page below a folder of the store.
func (write ReportWriter) into(ctx context.Context, s store.Store, id, dir string) (ReportResult, error) {
	defer heartbeat(ctx)()
	start := time.Now()
	if write == nil {
		return ReportResult{}, ErrNoReport
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
	return ReportResult{
		Location: s.Location(dir + "/index.html"), Files: files,
		Telemetry: Telemetry{Seconds: time.Since(start).Seconds()},
	}, err
}
