package iterations

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/store"
)

// row is one manifest's: the values of the fixed columns and what was measured.
type row struct {
	fixed   []any
	numbers map[string]float64
}

// rowOf reads a manifest. parent is nil for the run's first.
func rowOf(link store.Link, parent *store.Manifest, abandoned bool) (row, error) {
	m := link.Manifest
	r := row{numbers: map[string]float64{}}
	for name, v := range m.Metrics {
		if err := r.add(name, float64(v)); err != nil {
			return row{}, err
		}
	}
	for _, e := range m.Evaluations {
		prefix, err := evaluated(m, e)
		if err != nil {
			return row{}, err
		}
		for name, v := range e.Metrics {
			if err := r.add(prefix+name, float64(v)); err != nil {
				return row{}, err
			}
		}
	}
	var parentBranch, snapshot, action, events, openedBranch, openedIteration any
	if parent != nil {
		parentBranch = int64(parent.Branch)
	}
	if m.Snapshot != nil {
		snapshot = int64(m.Snapshot.Version)
	}
	if m.Detected != nil {
		var d activities.Detected
		if err := json.Unmarshal(m.Detected, &d); err != nil {
			return row{}, fmt.Errorf("what was detected: %w: %w", store.ErrInvalid, err)
		}
		action = string(d.Decision.Action)
		if len(d.Events) > 0 {
			names := make([]string, len(d.Events))
			for i, e := range d.Events {
				names[i] = e.Detector
			}
			events = strings.Join(names, ",")
		}
	}
	if m.Opened != nil {
		var o activities.Opened
		if err := json.Unmarshal(m.Opened, &o); err != nil {
			return row{}, fmt.Errorf("why the branch was opened: %w: %w", store.ErrInvalid, err)
		}
		openedBranch, openedIteration = int64(o.Branch), int64(o.Iteration)
	}
	u := m.Update
	r.fixed = []any{
		m.Run, int64(m.Branch), int64(m.Iteration), abandoned, link.Ref.Digest, parentBranch,
		m.SettingsDigest, m.Fingerprint, m.StateBefore, m.StateAfter,
		u.Skipped, u.SkippedTotal, u.Steps, u.Rows, u.Tokens, u.MicroBatches,
		snapshot, action, events, openedBranch, openedIteration,
	}
	return r, nil
}

// add notes a number under a name that nothing else has.
func (r *row) add(name string, v float64) error {
	if name == "" {
		return fmt.Errorf("a metric without a name: %w", store.ErrInvalid)
	}
	_, taken := r.numbers[name]
	if taken || slices.ContainsFunc(fixed, func(c Column) bool { return c.Name == name }) {
		return fmt.Errorf("two values are called %q: %w", name, store.ErrInvalid)
	}
	r.numbers[name] = v
	return nil
}

// evaluated is the prefix of the names of an evaluation's metrics.
func evaluated(m *store.Manifest, e store.EvaluationRef) (string, error) {
	prefix := "evaluation/"
	switch e.Version {
	case m.Version():
	case m.Iteration:
		prefix = "evaluation_before/"
	default:
		return "", fmt.Errorf("an evaluation of version %d: %w", e.Version, store.ErrInvalid)
	}
	if e.Suite != "" {
		prefix += e.Suite + "/"
	}
	return prefix, nil
}
