package telemetry

import "cmp"

// OpenRuns are the open runs of a namespace, as a server says it.
type OpenRuns struct {
	// Waiting and Workers are by fingerprint; "" is one that is not known.
	Waiting, Workers       map[string]int
	Paused, Resting, Going int
}

// unknown is the fingerprint of a run that has committed nothing.
const unknown = "unknown"

// Open notes how the open runs are. nil forgets it, as when the server does not say.
func (m *Metrics) Open(runs *OpenRuns) {
	m.waiting.Reset()
	m.workers.Reset()
	m.open.Reset()
	if runs == nil {
		return
	}
	waiting := 0
	for fingerprint, n := range runs.Waiting {
		m.waiting.WithLabelValues(cmp.Or(fingerprint, unknown)).Set(float64(n))
		waiting += n
	}
	for fingerprint, n := range runs.Workers {
		if fingerprint != "" {
			m.waiting.WithLabelValues(fingerprint).Add(0) // a zero where nobody waits
			m.workers.WithLabelValues(fingerprint).Set(float64(n))
		}
	}
	for state, n := range map[string]int{"waiting": waiting, "paused": runs.Paused, "resting": runs.Resting, "going": runs.Going} {
		m.open.WithLabelValues(state).Set(float64(n))
	}
}
