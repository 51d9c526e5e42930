package collapse

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/store/canon"
)

// through is a state as it comes out of continue-as-new.
func through(t *testing.T, s State) State {
	t.Helper()
	b, err := json.Marshal(s)
	require.NoError(t, err)
	require.Less(t, len(b), 2048)
	var after State
	require.NoError(t, json.Unmarshal(b, &after))
	return after
}

// text is JSON, in which one NaN is like another.
func text(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	require.NoError(t, err)
	return string(b)
}

// Wherever a run is interrupted, what is detected and known stays the same, bit
// for bit.
func TestResumeAnywhere(t *testing.T) {
	_, collapses := shapes(t)
	d := defaults(t)
	for _, shape := range collapses {
		steps := shape.run(7)
		wantState, want := d.all(steps)
		require.NotEmpty(t, want)
		for cut := range steps {
			var s State
			var events, now []Event
			for i, step := range steps {
				if i == cut {
					s = through(t, s)
				}
				s, now = d.Observe(s, step.iteration, step.metrics, step.evaluation)
				events = append(events, now...)
			}
			require.Equal(t, text(t, want), text(t, events), "%s, cut at %d", shape.Name, cut)
			require.Equal(t, text(t, wantState), text(t, s))
		}
		// And after every iteration.
		var s State
		var events, now []Event
		for _, step := range steps {
			s, now = d.Observe(through(t, s), step.iteration, step.metrics, step.evaluation)
			events = append(events, now...)
		}
		require.Equal(t, text(t, want), text(t, events))
	}
}

// wild are figures of all kinds, with gaps.
func wild(seed uint64, n int) []step {
	r := rand.New(rand.NewPCG(seed, 5))
	odd := []canon.Float{0, -1, 1, 1e-300, 1e300, math.MaxFloat64, canon.Float(math.NaN()), canon.Float(math.Inf(1)), canon.Float(math.Inf(-1))}
	value := func() canon.Float {
		if r.IntN(8) == 0 {
			return odd[r.IntN(len(odd))]
		}
		return canon.Float(math.Exp(3 * r.NormFloat64()))
	}
	steps := make([]step, n)
	for i := range steps {
		steps[i] = step{iteration: i, metrics: Metrics{}}
		for _, rule := range rules {
			for _, name := range rule.Metrics {
				if r.IntN(4) > 0 {
					steps[i].metrics[name] = value()
				}
			}
		}
		if r.IntN(3) == 0 {
			steps[i].evaluation = Metrics{MetricSuccess: value()}
		}
	}
	return steps
}

func TestObserveIsPure(t *testing.T) {
	for seed := range uint64(60) {
		d := defaults(t)
		var s State
		for _, step := range wild(seed, 60) {
			before := through(t, s)
			after, events := d.Observe(s, step.iteration, step.metrics, step.evaluation)
			require.Equal(t, before, through(t, s), "the state given is left as it is")
			again, eventsAgain := d.Observe(before, step.iteration, step.metrics, step.evaluation)
			require.Equal(t, through(t, after), through(t, again))
			require.Len(t, eventsAgain, len(events))
			for i, e := range events {
				require.Equal(t, e.Text, eventsAgain[i].Text)
				require.True(t, 0 <= e.Onset && e.Onset <= e.Iteration, "%+v", e)
				_, err := json.Marshal(e)
				require.NoError(t, err)
			}
			// An iteration that was observed already gives nothing new.
			for _, earlier := range []int{step.iteration, step.iteration - 1, -1} {
				same, none := d.Observe(after, earlier, step.metrics, step.evaluation)
				require.Equal(t, after, same)
				require.Empty(t, none)
			}
			s = after
		}
	}
}

// If no figure is missing, an event's target is within reach.
func TestReach(t *testing.T) {
	c := Defaults()
	require.Zero(t, c.Reach(10), "nothing is rolled back")
	c.OnDetection = RollBack
	require.Equal(t, 50, c.Reach(10))
	c.Validation.OnDetection = Warn
	require.Equal(t, 10, c.Reach(10))
	c.RewardStd.OnDetection, c.Distinct.OnDetection, c.Similarity.OnDetection = Off, Warn, Stop
	require.Equal(t, 6, c.Reach(10), "entropy, and empty selections")
	healthy, collapses := shapes(t)
	d := defaults(t)
	n := 0
	for _, shape := range append(healthy, collapses...) {
		for name, curve := range shape.Metrics {
			curve.Noise = 1.2
			shape.Metrics[name] = curve
		}
		for seed := range uint64(20) {
			_, events := d.all(shape.run(seed))
			for _, e := range events {
				one := Defaults()
				one.OnDetection = Warn
				if l := one.level(e.Detector); l != nil {
					l.OnDetection = RollBack
				}
				one.Validation.OnDetection = Warn
				if e.Detector == Validation {
					one.Validation.OnDetection = RollBack
				}
				if e.Detector == EmptySelection {
					one.EmptySelection.OnDetection = RollBack
				}
				if e.Detector == NonFinite {
					one.NonFinite.OnDetection = RollBack
				}
				if target, ok := e.Target(); ok {
					require.LessOrEqual(t, e.Iteration-target, one.Reach(evaluationEvery), "%+v", e)
					n++
				}
			}
		}
	}
	require.Greater(t, n, 500)
}

// A run that was rolled back knows its levels, and notices the same collapse again
// without a new warm-up.
func TestRewind(t *testing.T) {
	_, collapses := shapes(t)
	trap := collapses[0]
	d := defaults(t)
	steps := trap.run(3)
	var s State
	var events []Event
	at := 0
	for len(events) == 0 {
		s, events = d.Observe(s, steps[at].iteration, steps[at].metrics, steps[at].evaluation)
		at++
	}
	require.Equal(t, RewardStd, events[0].Detector)
	target, ok := events[0].Target()
	require.True(t, ok)
	levels := through(t, s)
	s = s.Rewind(target)
	require.Equal(t, target, *s.Newest)
	for i, w := range s.Watches {
		require.Equal(t, levels.Watches[i].Level, w.Level)
		require.Zero(t, w.Row)
		require.False(t, w.Fired)
		require.LessOrEqual(t, w.Good, target)
	}
	// The same again: the same event, in the same iteration.
	var again []Event
	for i := target + 1; len(again) == 0; i++ {
		s, again = d.Observe(through(t, s), i, steps[i].metrics, steps[i].evaluation)
	}
	require.Equal(t, events[0].Iteration, again[0].Iteration)
	require.Equal(t, events[0].Detector, again[0].Detector)
	require.Greater(t, again[0].Onset, target-1)
	require.NotPanics(t, func() { State{Watches: []Watch{{Rule: "of another release"}}}.Rewind(4) })
}
