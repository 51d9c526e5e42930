package collapse

import (
	"encoding/csv"
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/store/canon"
)

// curve is one metric of a shape.
type curve struct {
	Noise  float64
	Points [][2]float64
}

func (c curve) at(iteration int) float64 {
	x := float64(iteration)
	for i := 1; i < len(c.Points); i++ {
		a, b := c.Points[i-1], c.Points[i]
		if x <= b[0] {
			return a[1] + (b[1]-a[1])*(x-a[0])/(b[0]-a[0])
		}
	}
	return c.Points[len(c.Points)-1][1]
}

// shape is a run that never was; see testdata/shapes.json.
type shape struct {
	Name       string
	Iterations int
	Metrics    map[string]curve
	NotFinite  map[string]int `json:"not_finite"`
	Rules      map[string]struct{ Fires, Onset [2]int }
}

func shapes(t *testing.T) (healthy, collapses []shape) {
	t.Helper()
	content, err := os.ReadFile("testdata/shapes.json")
	require.NoError(t, err)
	var file struct{ Healthy, Collapses []shape }
	require.NoError(t, json.Unmarshal(content, &file))
	require.NotEmpty(t, file.Healthy)
	require.NotEmpty(t, file.Collapses)
	return file.Healthy, file.Collapses
}

// step is what one iteration gives the detectors.
type step struct {
	iteration           int
	metrics, evaluation Metrics
}

const (
	evaluations     = "evaluation:"
	evaluationEvery = 10
)

// run draws a shape's figures; the same seed, the same run.
func (s shape) run(seed uint64) []step {
	r := rand.New(rand.NewPCG(seed, 17))
	steps := make([]step, s.Iterations)
	names := make([]string, 0, len(s.Metrics))
	for _, rule := range rules {
		for _, name := range append([]string{evaluations + MetricSuccess, MetricSuccess}, rule.Metrics...) {
			if _, ok := s.Metrics[name]; ok && !strings.Contains("|"+strings.Join(names, "|")+"|", "|"+name+"|") {
				names = append(names, name)
			}
		}
	}
	for i := range steps {
		steps[i] = step{iteration: i, metrics: Metrics{}}
		for _, name := range names {
			c := s.Metrics[name]
			v := c.at(i) * math.Exp(c.Noise*r.NormFloat64()-c.Noise*c.Noise/2)
			if strings.HasSuffix(name, "/mean") || name == MetricDistinct || name == MetricSimilarity {
				v = min(1, v)
			}
			if from, ok := s.NotFinite[name]; ok && i >= from {
				v = math.NaN()
			}
			if evaluated, is := strings.CutPrefix(name, evaluations); !is {
				steps[i].metrics[name] = canon.Float(v)
			} else if (i+1)%evaluationEvery == 0 {
				steps[i].evaluation = Metrics{evaluated: canon.Float(v)}
			}
		}
	}
	return steps
}

func defaults(t testing.TB) Detectors {
	t.Helper()
	d, err := New(Defaults())
	require.NoError(t, err)
	return d
}

func (d Detectors) all(steps []step) (State, []Event) {
	var s State
	var events, now []Event
	for _, step := range steps {
		s, now = d.Observe(s, step.iteration, step.metrics, step.evaluation)
		events = append(events, now...)
	}
	return s, events
}

// first is the first event of each detector.
func first(events []Event) map[string]Event {
	byName := map[string]Event{}
	for _, e := range events {
		if _, ok := byName[e.Detector]; !ok {
			byName[e.Detector] = e
		}
	}
	return byName
}

func TestHealthyRunsRaiseNoAlarm(t *testing.T) {
	healthy, _ := shapes(t)
	d := defaults(t)
	for _, s := range healthy {
		t.Run(s.Name, func(t *testing.T) {
			for seed := range uint64(50) {
				_, events := d.all(s.run(seed))
				require.Empty(t, events, "seed %d", seed)
			}
		})
	}
}

// A run as it was recorded: with a spike of the gradient and a dip in everything
// at iteration 9, it is healthy.
func TestRecordedRunRaisesNoAlarm(t *testing.T) {
	content, err := os.ReadFile("testdata/bandit-demo.csv")
	require.NoError(t, err)
	reader := csv.NewReader(strings.NewReader(string(content)))
	reader.Comment = '#'
	rows, err := reader.ReadAll()
	require.NoError(t, err)
	var steps []step
	for i, row := range rows[1:] {
		s := step{iteration: i, metrics: Metrics{}}
		for c, text := range row[1:] {
			if text == "" {
				continue
			}
			v, err := strconv.ParseFloat(text, 64)
			require.NoError(t, err)
			if name, is := strings.CutPrefix(rows[0][c+1], evaluations); is {
				s.evaluation = Metrics{name: canon.Float(v)}
			} else {
				s.metrics[rows[0][c+1]] = canon.Float(v)
			}
		}
		steps = append(steps, s)
	}
	require.Len(t, steps, 40)
	_, events := defaults(t).all(steps)
	require.Empty(t, events)
}

func TestCollapsesAreDetected(t *testing.T) {
	_, collapses := shapes(t)
	d := defaults(t)
	covered := map[string]bool{}
	for _, s := range collapses {
		t.Run(s.Name, func(t *testing.T) {
			for seed := range uint64(50) {
				_, events := d.all(s.run(seed))
				got := first(events)
				for name, want := range s.Rules {
					covered[name] = true
					e, ok := got[name]
					require.True(t, ok, "seed %d: %s is silent", seed, name)
					require.True(t, want.Fires[0] <= e.Iteration && e.Iteration <= want.Fires[1], "seed %d: %s: %+v", seed, name, e)
					require.True(t, want.Onset[0] <= e.Onset && e.Onset <= want.Onset[1], "seed %d: %s: %+v", seed, name, e)
				}
				for name, e := range got {
					require.Contains(t, s.Rules, name, "seed %d: %+v", seed, e)
				}
			}
		})
	}
	for _, r := range rules {
		if d.config.action(r) == Off || r.Name == NotExact { // which is no collapse of a policy
			continue
		}
		require.True(t, covered[r.Name], "no collapse shows rule %s", r.Name)
	}
}

// The early signs come before the reward falls, the late ones after.
func TestEarlySignsComeFirst(t *testing.T) {
	_, collapses := shapes(t)
	trap := collapses[0]
	const falls = 70
	for _, e := range first(second(defaults(t).all(trap.run(1)))) {
		require.Equal(t, e.Severity == Early, e.Iteration < falls, "%+v", e)
	}
}

func second[A, B any](_ A, b B) B { return b }
