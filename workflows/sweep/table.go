package sweep

import (
	"fmt"
	"math"
	"strings"

	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/model/statistics"
)

// State is the state of a trial.
type State string

// The states of a trial. From Done on they are final.
const (
	Pending    State = "pending"    // it has not begun
	Running    State = "running"    // its workflow is open
	Waiting    State = "waiting"    // open, and waits for a device
	Paused     State = "paused"     // open, and waits to be resumed
	Done       State = "done"       // it did all its iterations
	Stopped    State = "stopped"    // a rule stopped it early
	Failed     State = "failed"     // its workflow failed
	Dropped    State = "dropped"    // a person took it out
	Cancelled  State = "cancelled"  // it was cancelled, or the sweep before it began
	Terminated State = "terminated" // a person terminated it
)

// Final says whether nothing more comes of a trial.
func (s State) Final() bool { return s != Pending && !s.Open() }

// Open says whether a trial's workflow is open.
func (s State) Open() bool { return s == Running || s == Waiting || s == Paused }

// Value is what a trial's iterations say of one metric.
type Value struct {
	// Last is the newest value, Best the best by the sweep's goal; NaN if it was
	// never measured.
	Last canon.Float `json:"last"`
	Best canon.Float `json:"best"`
	// At is the iteration of the best, counted from 0; -1 if there is none.
	At int `json:"at"`
}

// NoValue is a metric that was never measured.
func NoValue() Value {
	return Value{Last: canon.Float(math.NaN()), Best: canon.Float(math.NaN()), At: -1}
}

// Add is the value with another iteration's value; NaN leaves it as it is.
func (v Value) Add(x float64, iteration int, goal string) Value {
	if math.IsNaN(x) {
		return v
	}
	if v.At < 0 || better(x, float64(v.Best), goal) {
		v.Best, v.At = canon.Float(x), iteration
	}
	v.Last = canon.Float(x)
	return v
}

// Measured are the values of the table's metrics, in the definition's order. The goal
// applies to the first; of the others the greatest value is the best.
func (d Definition) Measured() []Value {
	out := make([]Value, len(d.Metrics))
	for i := range out {
		out[i] = NoValue()
	}
	return out
}

// GoalOf is the goal of the table's metric number i.
func (d Definition) GoalOf(i int) string {
	if i == 0 {
		return d.Goal
	}
	return Maximize
}

// Row is a trial in the table: what its artifacts say, and nothing that differs
// between two sweeps of the same definition.
type Row struct {
	Trial   string `json:"trial"`
	Setting string `json:"setting"`
	Seed    uint64 `json:"seed"`
	State   State  `json:"state"`
	// Iterations were committed and count; Of is the spec's number.
	Iterations int `json:"iterations"`
	Of         int `json:"of"`
	// Manifest is the digest of the last of them, Policy the state fingerprint it
	// left; empty without any.
	Manifest string `json:"manifest,omitempty"`
	Policy   string `json:"policy,omitempty"`
	// Metrics are the measured ones by name.
	Metrics map[string]Value `json:"metrics,omitempty"`
}

// Statistic is the mean of a metric's last values over the seeds of a setting that
// did all their iterations, with the 95 % interval of Student's distribution. Low
// and High are NaN of fewer than two.
type Statistic struct {
	N         int         `json:"n"`
	Mean      canon.Float `json:"mean"`
	Deviation canon.Float `json:"deviation"`
	Low       canon.Float `json:"low"`
	High      canon.Float `json:"high"`
}

// SettingRow is a setting in the table.
type SettingRow struct {
	Setting string `json:"setting"`
	// Trials are the setting's, Done those that did all their iterations.
	Trials int `json:"trials"`
	Done   int `json:"done"`
	// Metrics are statistics by name.
	Metrics map[string]Statistic `json:"metrics,omitempty"`
}

// DecisionRow is an early stop in the table.
type DecisionRow struct {
	Trial string `json:"trial"`
	Decision
	// Text says it in words.
	Text string `json:"text"`
}

// Table is what a sweep ends with.
type Table struct {
	Sweep string `json:"sweep"`
	// Definition is the digest of the sweep's definition.
	Definition string        `json:"definition"`
	Metrics    []string      `json:"metrics"`
	Goal       string        `json:"goal"`
	Rows       []Row         `json:"trials"`
	Settings   []SettingRow  `json:"settings"`
	Decisions  []DecisionRow `json:"decisions,omitempty"`
}

// Named are values by the definition's names, without those never measured.
func (d Definition) Named(values []Value) map[string]Value {
	out := map[string]Value{}
	for i, name := range d.Metrics {
		if i < len(values) && values[i].At >= 0 {
			out[name] = values[i]
		}
	}
	return out
}

// Settings are the settings of rows, in the order in which they first come.
func (d Definition) Settings(rows []Row) []SettingRow {
	t := d.NewTally()
	for i, r := range rows {
		values := d.Measured()
		for m, name := range d.Metrics {
			if v, ok := r.Metrics[name]; ok {
				values[m] = v
			}
		}
		t.Set(i, r.Setting, r.State, values)
	}
	return t.Settings()
}

func statistic(values []float64) Statistic {
	e := statistics.Mean(values, 0.95)
	return Statistic{N: e.N, Mean: canon.Float(e.Mean), Deviation: canon.Float(e.Deviation), Low: canon.Float(e.Low),
		High: canon.Float(e.High)}
}

// NewTable is the table of a sweep's rows and decisions.
func NewTable(sweep, definition string, d Definition, rows []Row, decisions []Decision) Table {
	t := Table{Sweep: sweep, Definition: definition, Metrics: d.Metrics, Goal: d.Goal, Rows: rows, Settings: d.Settings(rows)}
	for _, decided := range decisions {
		t.Decisions = append(t.Decisions, DecisionRow{Trial: rows[decided.Trial].Trial, Decision: decided,
			Text: decided.Text(d.Stopping, d.Metrics[0])})
	}
	return t
}

// JSON is the table's canonical form: equal tables have equal bytes.
func (t Table) JSON() ([]byte, error) {
	b, err := canon.Marshal(t)
	if err != nil {
		return nil, fmt.Errorf("encode the table of sweep %s: %w", t.Sweep, err)
	}
	return b, nil
}

// Share says whether the values of a metric are shares, from 0 to 1.
func Share(metric string) bool {
	name := strings.TrimPrefix(metric, EvaluationPrefix)
	return strings.HasPrefix(name, "success/") || strings.HasPrefix(name, "pass@") || name == "valid/mean"
}

// Possible is an interval as far as the values of a metric can be: Student's interval of a
// few shares may reach beyond 0 and 1.
func Possible(metric string, low, high float64) (possibleLow, possibleHigh float64) {
	if !Share(metric) {
		return low, high
	}
	return max(low, 0), min(high, 1)
}
