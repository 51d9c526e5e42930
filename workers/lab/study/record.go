package study

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/workflows/collapse"
)

// Columns are the metrics that a record has of every iteration, with the names of
// manifests: shares, rewards, nats and tokens.
var Columns = []string{
	Reward, Success, Executable, Deviation, ChosenDeviation, Entropy, GradNorm, Length, Distinct, Similarity, ClipFraction, KL,
	ExplainedVariance,
}

// Names of the metrics that the study reads.
const (
	Reward            = "reward/mean"
	Success           = collapse.MetricSuccess
	Executable        = collapse.MetricExecutable
	Deviation         = collapse.MetricRewardStd
	ChosenDeviation   = "rollout/chosen_in_group_reward_std"
	Entropy           = collapse.MetricEntropy
	GradNorm          = collapse.MetricGradNorm
	Length            = "response_length/mean"
	Distinct          = collapse.MetricDistinct
	Similarity        = collapse.MetricSimilarity
	ClipFraction      = "actor/pg_clipfrac"
	KL                = "actor/ppo_kl"
	ExplainedVariance = "critic/vf_explained_var"
)

// ErrRecord is the kind of errors about a record that cannot be used.
var ErrRecord = errors.New("not a record of this study")

// maxRecord is the most bytes of a record's line, maxIterations the most iterations.
const (
	maxRecord     = 16 << 20
	maxIterations = 100_000
)

// Record holds the metrics and events of a run. It contains no times and no paths: the
// same program on a device of the same fingerprint computes the same bytes.
type Record struct {
	// Setting is its name, Seed the run's.
	Setting string `json:"setting"`
	Seed    uint64 `json:"seed"`
	// Spec is the SHA-256 of what was run, as canonical JSON; Size how large it was.
	Spec string `json:"spec"`
	Size Size   `json:"size"`
	// Fingerprint is the device's.
	Fingerprint string `json:"fingerprint"`
	// Metrics are the columns: [iterations], rounded to six digits; NaN if there
	// was none, as of an update that was not made.
	Metrics map[string][]canon.Float `json:"metrics"`
	// Events are the events of the detectors.
	Events []Event `json:"events"`
	// Evaluations are of the first version and of the last.
	Evaluations []Evaluation `json:"evaluations"`
}

// Event is an event of a detector and the action that it would cause.
type Event struct {
	Detector  string            `json:"detector"`
	Iteration int               `json:"iteration"`
	Onset     int               `json:"onset"`
	Severity  collapse.Severity `json:"severity"`
	Decision  collapse.Action   `json:"decision"`
	Text      string            `json:"text"`
}

// Evaluation is a version's success on the fixed instances at the rollout's temperature:
// the share of the high arm with its 95 % Wilson interval.
type Evaluation struct {
	Version int         `json:"version"`
	Success canon.Float `json:"success"`
	Low     canon.Float `json:"low"`
	High    canon.Float `json:"high"`
	Reward  canon.Float `json:"reward"`
}

// Name is the name of the record's run.
func (r Record) Name() string { return RunName(r.Setting, r.Seed) }

// RunName is the name of the run of a setting with a seed.
func RunName(setting string, seed uint64) string { return fmt.Sprintf("%s-s%d", setting, seed) }

// SpecDigest is the digest of a spec's canonical JSON without its description.
func SpecDigest(text []byte) (string, error) {
	var doc map[string]any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&doc); err != nil {
		return "", fmt.Errorf("digest of a spec: %w", err)
	}
	delete(doc, "description")
	b, err := json.Marshal(doc)
	if err != nil {
		return "", fmt.Errorf("digest of a spec: %w", err)
	}
	if b, err = canon.Format(b); err != nil {
		return "", fmt.Errorf("digest of a spec: %w", err)
	}
	return canon.Digest(b), nil
}

// add appends the manifest of the next iteration.
func (r *Record) add(m *store.Manifest) error {
	if r.Metrics == nil {
		r.Metrics = map[string][]canon.Float{}
	}
	for _, name := range Columns {
		value, ok := m.Metrics[name]
		if !ok {
			value = canon.Float(math.NaN())
		}
		r.Metrics[name] = append(r.Metrics[name], rounded(value))
	}
	for _, e := range m.Evaluations {
		r.Evaluations = append(r.Evaluations, evaluationOf(e))
	}
	if m.Detected == nil {
		return nil
	}
	var d activities.Detected
	if err := json.Unmarshal(m.Detected, &d); err != nil {
		return fmt.Errorf("what was detected in iteration %d: %w", m.Iteration, err)
	}
	for _, e := range d.Events {
		r.Events = append(r.Events, Event{
			Detector: e.Detector, Iteration: e.Iteration, Onset: e.Onset, Severity: e.Severity, Decision: d.Decision.Action, Text: e.Text,
		})
	}
	return nil
}

func evaluationOf(e store.EvaluationRef) Evaluation {
	of := func(name string) canon.Float { return rounded(e.Metrics[name]) }
	return Evaluation{
		Version: e.Version, Success: of("success/mean"), Low: of("success/low"), High: of("success/high"), Reward: of("reward/mean"),
	}
}

// rounded rounds to six digits, which is enough for curves.
func rounded[T ~float64](x T) T {
	v, err := strconv.ParseFloat(strconv.FormatFloat(float64(x), 'g', 6, 64), 64)
	if err != nil {
		return x
	}
	return T(v)
}

// Encode writes a record as a line of JSON.
func (r Record) Encode() ([]byte, error) {
	b, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encode record %s: %w", r.Name(), err)
	}
	return append(b, '\n'), nil
}

// DecodeRecord parses a record and validates it. Its errors are of kind ErrRecord.
func DecodeRecord(text []byte) (Record, error) {
	var r Record
	if len(text) > maxRecord {
		return r, fmt.Errorf("decode record: %d bytes, at most %d: %w", len(text), maxRecord, ErrRecord)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return r, fmt.Errorf("decode record: %w: %w", ErrRecord, err)
	}
	if d.More() {
		return r, fmt.Errorf("decode record: something follows it: %w", ErrRecord)
	}
	if _, ok := settingNamed(r.Setting); !ok {
		return r, fmt.Errorf("decode record: unknown setting %q: %w", r.Setting, ErrRecord)
	}
	if r.Size.Iterations < 1 || r.Size.Iterations > maxIterations {
		return r, fmt.Errorf("decode record %s: %d iterations, want 1 to %d: %w", r.Name(), r.Size.Iterations, maxIterations, ErrRecord)
	}
	for _, name := range Columns {
		if len(r.Metrics[name]) != r.Size.Iterations {
			return r, fmt.Errorf("decode record %s: %d values of %s, want %d: %w", r.Name(), len(r.Metrics[name]), name, r.Size.Iterations, ErrRecord)
		}
	}
	return r, nil
}

func settingNamed(name string) (Setting, bool) {
	for _, s := range Settings() {
		if s.Name() == name {
			return s, true
		}
	}
	return Setting{}, false
}

// column is a metric of all iterations.
func (r Record) column(name string) []float64 {
	out := make([]float64, len(r.Metrics[name]))
	for n, v := range r.Metrics[name] {
		out[n] = float64(v)
	}
	return out
}

// expected is the mean reward of each iteration without the chance of the payouts.
func (r Record) expected() []float64 {
	s, _ := settingNamed(r.Setting)
	high, any := r.column(Success), r.column(Executable)
	out := make([]float64, len(high))
	for n := range out {
		out[n] = s.Expected(high[n], any[n])
	}
	return out
}
