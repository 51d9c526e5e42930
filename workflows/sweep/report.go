package sweep

import (
	"encoding/json"

	"github.com/reprise-rl/reprise/workflows/spec"
)

// report reads when the sweep's page is written.
func (r *reader) report(raw json.RawMessage) spec.Report {
	const at = "report"
	var out spec.Report
	m, ok := members(raw)
	if !ok {
		r.add(at, found(raw), "an object with the key at_end", `{"at_end": true}`)
		return out
	}
	for _, m := range m {
		if m.key == "at_end" {
			out.AtEnd = r.truth(within(at, m.key), m.value)
		} else {
			r.unknown(at, m.key, []string{"at_end"})
		}
	}
	return out
}
