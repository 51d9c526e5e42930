package activities

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/workflows/sweep"
)

// TrialRecord is what a sweep keeps of a trial. Thousands of them must fit into a
// payload, so a record travels as an array without names, cut after its last value.
type TrialRecord struct {
	// Index is its place in the sweep.
	Index int
	State sweep.State
	// Started and Ended are Unix seconds; 0 if it did not.
	Started, Ended int64
	// Branch and Iterations are those of Outcome once it has been summarized; until then,
	// the last reported ones.
	Branch, Iterations int
	// Stop is how many iterations count if a rule stopped it; 0: all.
	Stop int
	// LostDevices and Recomputed are the run's.
	LostDevices, Recomputed int
	// Reason is why it failed or is paused, Final what it is to become when it ends: dropped, stopped.
	Reason string
	Final  sweep.State
	// Flags of a trial that is open, or whose outcome is not known yet.
	Begun, Asked, Summarized bool
	// Waiting is the fingerprint it waits for.
	Waiting string
	// Values are the metrics' values, Points those at the rungs. Curve belongs to an open
	// trial: it has all its iterations so far, if it is Whole.
	Values []sweep.Value
	Points []sweep.Point
	Curve  sweep.Curve
	Whole  bool
}

func (r *TrialRecord) parts() []any {
	return []any{
		&r.Index, &r.State, &r.Started, &r.Ended, &r.Branch, &r.Iterations, &r.Summarized, (*values)(&r.Values),
		&r.LostDevices, &r.Recomputed, &r.Stop, &r.Begun, (*curvePoints)(&r.Points), &r.Final, &r.Reason, &r.Asked, &r.Waiting, &r.Curve,
		&r.Whole,
	}
}

// zeroParts are the parts of an empty record as JSON, made once: records are
// encoded by the thousand within a workflow task.
var zeroParts = sync.OnceValue(func() []string {
	var empty TrialRecord
	var out []string
	for _, part := range empty.parts() {
		b, _ := json.Marshal(part) // numbers and empty lists always can be
		out = append(out, string(b))
	}
	return out
})

// MarshalJSON writes the array.
func (r TrialRecord) MarshalJSON() ([]byte, error) {
	out := []byte{'['}
	last := len(out)
	zeros := zeroParts()
	for i, part := range r.parts() {
		b, err := json.Marshal(part)
		if err != nil {
			return nil, fmt.Errorf("encode trial %d: %w", r.Index, err)
		}
		if i > 0 {
			out = append(out, ',')
		}
		if out = append(out, b...); i == 0 || string(b) != zeros[i] {
			last = len(out)
		}
	}
	return append(out[:last], ']'), nil
}

// FitRecords returns records that take at most so many bytes as JSON. It cuts reasons to
// make room: all then have the same limit. The rest of a record is bounded by
// [sweep.MaxNumbers] and stays.
func FitRecords(records []TrialRecord, bytes int) ([]TrialRecord, error) {
	b, err := json.Marshal(records)
	if err != nil || len(b) <= bytes {
		return records, err
	}
	room, failed := bytes-len(b), 0
	for _, r := range records {
		if r.Reason != "" {
			room += encoded(r.Reason)
			failed++
		}
	}
	out := slices.Clone(records)
	for i := range out {
		if out[i].Reason != "" {
			out[i].Reason = cut(out[i].Reason, max(0, room)/failed)
		}
	}
	return out, nil
}

// encoded is a text's length within a JSON string.
func encoded(text string) int {
	b, _ := json.Marshal(text) // a string always can be
	return len(b) - len(`""`)
}

// cut is a text that takes at most so many bytes within a JSON string; empty if
// that is too little to say anything.
func cut(text string, bytes int) string {
	const more, least = "…", 12
	if encoded(text) <= bytes {
		return text
	}
	if bytes < least {
		return ""
	}
	bytes -= len(more)
	for i, r := range text {
		if bytes -= encoded(string(r)); bytes < 0 {
			return text[:i] + more
		}
	}
	return text
}

// UnmarshalJSON reads it back.
func (r *TrialRecord) UnmarshalJSON(b []byte) error {
	var in []json.RawMessage
	if err := json.Unmarshal(b, &in); err != nil {
		return err
	}
	parts := r.parts()
	if len(in) > len(parts) {
		return fmt.Errorf("a trial's record of %d values", len(in))
	}
	for i, raw := range in {
		if err := json.Unmarshal(raw, parts[i]); err != nil {
			return fmt.Errorf("value %d of a trial's record: %w", i, err)
		}
	}
	return nil
}

// values travel flat: last, best, at of each.
type values []sweep.Value

func (v values) MarshalJSON() ([]byte, error) {
	flat := []any{}
	for _, x := range v {
		flat = append(flat, x.Last, x.Best, x.At)
	}
	return json.Marshal(flat)
}

func (v *values) UnmarshalJSON(b []byte) error {
	var flat []json.RawMessage
	if err := json.Unmarshal(b, &flat); err != nil {
		return err
	}
	*v = nil
	for ; len(flat) >= 3; flat = flat[3:] {
		var x sweep.Value
		for i, to := range []any{&x.Last, &x.Best, &x.At} {
			if err := json.Unmarshal(flat[i], to); err != nil {
				return err
			}
		}
		*v = append(*v, x)
	}
	return nil
}

// curvePoints travel flat: judged and against of each. All that are kept are known.
type curvePoints []sweep.Point

func (p curvePoints) MarshalJSON() ([]byte, error) {
	flat := []any{}
	for _, x := range p {
		flat = append(flat, x.Judged, x.Against)
	}
	return json.Marshal(flat)
}

func (p *curvePoints) UnmarshalJSON(b []byte) error {
	var flat []json.RawMessage
	if err := json.Unmarshal(b, &flat); err != nil {
		return err
	}
	*p = nil
	for ; len(flat) >= 2; flat = flat[2:] {
		x := sweep.Point{Known: true}
		for i, to := range []any{&x.Judged, &x.Against} {
			if err := json.Unmarshal(flat[i], to); err != nil {
				return err
			}
		}
		*p = append(*p, x)
	}
	return nil
}

// MeasuredIn is a metric of an iteration by the name that a table has for it; NaN
// if it was not measured then.
func MeasuredIn(metrics Metrics, evaluations []store.EvaluationRef, version int, name string) float64 {
	if of, ok := strings.CutPrefix(name, sweep.EvaluationPrefix); ok {
		metrics = nil
		for _, e := range evaluations {
			if e.Version == version {
				metrics = e.Metrics
				break // a version's first suite represents all its suites
			}
		}
		name = of
	}
	if v, ok := metrics[name]; ok {
		return float64(v)
	}
	return math.NaN()
}

// Reported are the metrics of an iteration that a table wants to know: those that
// were measured. version is that which the iteration made.
func Reported(names []string, metrics Metrics, evaluations []store.EvaluationRef, version int) Metrics {
	out := Metrics{}
	for _, name := range names {
		if v := MeasuredIn(metrics, evaluations, version, name); !math.IsNaN(v) {
			out[name] = canon.Float(v)
		}
	}
	return out
}
