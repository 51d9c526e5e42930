package host

import (
	"context"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/store"
)

// Report writes a run's page for people beside its artifacts and replaces the previous
// page. The page shows whatever exists. It has times in it and is not part of the chain.
func (h *Host) Report(ctx context.Context, in activities.ReportInput) (_ activities.ReportResult, err error) {
	defer run.Edge(ctx, &err, "report of run %s", in.Run)
	return h.WriteReport.Into(ctx, h.Store, in.Run, store.ReportDir(in.Run))
}
