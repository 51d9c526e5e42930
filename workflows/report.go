package workflows

import (
	"fmt"

	"go.temporal.io/sdk/workflow"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/steps"
)

// report writes the run's page for people, and says where it is.
func (t *train) report(ctx workflow.Context) (string, error) {
	out, err := steps.Report.Do(t.onHost(ctx, t.plan.ActivitySeconds), fmt.Sprintf("report after %d iterations", t.Next), activities.ReportInput{Run: t.Run.ID})
	return out.Location, err
}

// reportAtEnd writes the page of a run that has ended, if the spec says so. A page that
// cannot be written fails no run.
func (t *train) reportAtEnd(ctx workflow.Context) {
	if !t.plan.Report || t.measuring {
		return
	}
	t.show(ctx, "writing the report")
	if _, err := t.report(ctx); err != nil {
		t.Warnings = append(t.Warnings, "the report was not written: "+err.Error())
	}
}

// report writes the sweep's page for people, and says where it is.
func (s *sweeping) report(ctx workflow.Context) (string, error) {
	// The main loop may wait for this call alone.
	defer func() { s.changed++ }()
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	out, err := steps.ReportSweep.Do(s.onHost(ctx, 0), fmt.Sprintf("report on %d trials", len(s.trials)), activities.ReportSweepInput{Sweep: s.id})
	if err != nil {
		return "", err
	}
	s.Report = out.Location
	return out.Location, nil
}

// reportAtEnd writes the page of a sweep that has ended, cancelled or not, if its
// document says so. A page that cannot be written fails no sweep.
func (s *sweeping) reportAtEnd() {
	if !s.definition.Report.AtEnd {
		return
	}
	s.show(s.root, "writing the report")
	if _, err := s.report(s.root); err != nil {
		s.warnings = append(s.warnings, "the report was not written: "+shortReason(err))
	}
}
