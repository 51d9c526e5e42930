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

// ReportResult says where the page is.
type ReportResult struct {
	Location  string    `json:"location"`
	Files     int       `json:"files"`
	Telemetry Telemetry `json:"telemetry"`
}

// ErrNoReport says that the worker was built without reports.
var ErrNoReport = errors.New("this worker writes no reports")

// Report writes a run's page for people beside its artifacts, in place of the one
// before. It shows what is there: it has times in it, and is no part of the chain.
func (h *Host) Report(ctx context.Context, in ReportInput) (ReportResult, error) {
	out, err := h.report(ctx, in)
	return out, edge(ctx, "report of run "+in.Run, err)
}

func (h *Host) report(ctx context.Context, in ReportInput) (ReportResult, error) {
	defer heartbeat(ctx)()
	start := time.Now()
	if h.WriteReport == nil {
		return ReportResult{}, ErrNoReport
	}
	dir, files := store.ReportDir(in.Run), 0
	err := h.WriteReport(ctx, h.Store, in.Run, func(name string, body []byte) error {
		files++
		key := dir + "/" + name
		if err := h.Store.Put(ctx, key, body, store.PutOptions{}); err != nil {
			return fmt.Errorf("write %s: %w", h.Store.Location(key), err)
		}
		return nil
	})
	return ReportResult{
		Location: h.Store.Location(dir + "/index.html"), Files: files,
		Telemetry: Telemetry{Seconds: time.Since(start).Seconds()},
	}, err
}
