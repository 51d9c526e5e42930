package host

import "github.com/reprise-rl/reprise/activities/steps"

// Steps are the activities of a host worker.
func (h *Host) Steps() []steps.Binding {
	return []steps.Binding{
		steps.Resolve.By(h.Resolve), steps.Load.By(h.Load), steps.Find.By(h.Find), steps.ResolveEvaluation.By(h.ResolveEvaluation),
		steps.Join.By(h.Join), steps.Ask.By(h.Ask), steps.CallTools.By(h.CallTools), steps.Arrange.By(h.Arrange), steps.Step.By(h.Step),
		steps.Choose.By(h.Choose), steps.Judge.By(h.Judge),
		steps.Select.By(h.Select), steps.Credit.By(h.Credit), steps.Measure.By(h.Measure), steps.Commit.By(h.Commit),
		steps.Report.By(h.Report),
	}
}
