package workflows

import (
	"fmt"

	"go.temporal.io/sdk/workflow"

	"github.com/reprise-rl/reprise/activities"
)

// report writes the run's page for people, and says where it is.
func (t *train) report(ctx workflow.Context) (string, error) {
	var h *activities.Host
	var out activities.ReportResult
	err := t.host(ctx, t.plan.ActivitySeconds, "Report", fmt.Sprintf("report after %d iterations", t.Next), h.Report, activities.ReportInput{Run: t.Run.ID}, &out)
	return out.Location, err
}

// reportAtEnd writes the page of a run that has ended, where the spec asks for it. A
// page that cannot be written fails no run.
func (t *train) reportAtEnd(ctx workflow.Context) {
	if !t.plan.Report || t.measuring {
		return
	}
	t.show(ctx, "writing the report")
	if _, err := t.report(ctx); err != nil {
		t.Warnings = append(t.Warnings, "the report was not written: "+err.Error())
	}
}
