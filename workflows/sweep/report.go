package sweep

import (
	"github.com/reprise-rl/reprise/infra/strict"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// report reads when the sweep's page is written.
func (r *reader) report(n strict.Node) spec.Report {
	const at = "report"
	var out spec.Report
	if n.Kind() != strict.Object {
		r.add(at, found(n), "an object with the key at_end", `{"at_end": true}`)
		return out
	}
	for _, m := range n.Members() {
		if m.Key == "at_end" {
			out.AtEnd = r.truth(within(at, m.Key), m.Value)
		} else {
			r.unknown(at, m.Key, []string{"at_end"})
		}
	}
	return out
}
