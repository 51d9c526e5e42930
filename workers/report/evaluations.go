package report

import "github.com/reprise-rl/reprise/infra/store"

// suitePage is a suite's evaluations, in the order of branches and versions.
type suitePage struct {
	Name string           `json:"name"`
	Rows []evaluationPage `json:"rows"`
}

type evaluationPage struct {
	Branch  int         `json:"b"`
	Version int         `json:"v"`
	Kept    bool        `json:"kept"`
	Metrics metricsPage `json:"m"`
}

// suites are the evaluations that manifests name, by suite, in the order in which
// the suites first come.
func (r *Run) suites() []suitePage {
	var out []suitePage
	at := map[string]int{}
	for b, it := range r.all() {
		for _, e := range it.Manifest.Evaluations {
			i, ok := at[e.Suite]
			if !ok {
				i = len(out)
				at[e.Suite] = i
				out = append(out, suitePage{Name: e.Suite})
			}
			out[i].Rows = append(out[i].Rows, evaluationPage{
				Branch: b.Number, Version: e.Version, Kept: it.Manifest.Iteration <= b.Kept, Metrics: metricsPageOf(e.Metrics),
			})
		}
	}
	return out
}

// lastEvaluation is the newest one of the first suite along the line; nil without any.
func (r *Run) lastEvaluation() *store.EvaluationRef {
	var last *store.EvaluationRef
	for _, it := range r.Line() {
		for i, e := range it.Manifest.Evaluations {
			if last == nil || e.Suite == last.Suite && e.Version >= last.Version {
				last = &it.Manifest.Evaluations[i]
			}
		}
	}
	return last
}
