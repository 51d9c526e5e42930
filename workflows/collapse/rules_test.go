package collapse

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/store/canon"
)

// figures are steps that give one metric a value an iteration.
func figures(name string, values ...float64) []step {
	steps := make([]step, len(values))
	for i, v := range values {
		steps[i] = step{iteration: i, metrics: Metrics{name: canon.Float(v)}}
	}
	return steps
}

// Worked by hand: each rule's level, threshold, iteration and onset.
func TestEvents(t *testing.T) {
	nan := math.NaN()
	cases := []struct {
		name  string
		steps []step
		want  []Event
	}{
		{
			// Level (0.4+0.6+0.5+0.5+0.5)/5. Half of the way to 0.1 is 0.3: iteration 6
			// is the last good one, so that version 6 is the last good one, and iteration
			// 6 the onset.
			name:  RewardStd,
			steps: figures(MetricRewardStd, 0.4, 0.6, 0.5, 0.5, 0.5, 0.5, 0.45, 0.2, 0.09, 0.08, 0.07, 0.06, 0.05, 0.04),
			want: []Event{{
				Detector: RewardStd, Iteration: 12, Onset: 6, Severity: Early,
				Evidence: []Evidence{{MetricRewardStd, 0.05}, {"level", 0.5}, {"threshold", 0.1}},
				Text:     "the in-group reward deviation is 0.05, below 0.2 times its early level 0.5 for 5 iterations in a row, since iteration 8",
			}},
		},
		{
			// It comes back at iteration 9, and then is gone again.
			name:  "a value that does not depart begins a new row",
			steps: figures(MetricRewardStd, 0.5, 0.5, 0.5, 0.5, 0.5, 0, 0, 0, 0, 0.5, 0, 0, 0, 0, 0),
			want: []Event{{
				Detector: RewardStd, Iteration: 14, Onset: 9, Severity: Early,
				Evidence: []Evidence{{MetricRewardStd, 0}, {"level", 0.5}, {"threshold", 0.1}},
				Text:     "the in-group reward deviation is 0, below 0.2 times its early level 0.5 for 5 iterations in a row, since iteration 10",
			}},
		},
		{
			// 0.25 is between: bad since iteration 5, but the cliff begins at 12 and the
			// rule looks 5 back.
			name:  "a slow drift is no collapse",
			steps: figures(MetricRewardStd, 0.5, 0.5, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0, 0, 0, 0, 0),
			want: []Event{{
				Detector: RewardStd, Iteration: 16, Onset: 7, Severity: Early,
				Evidence: []Evidence{{MetricRewardStd, 0}, {"level", 0.5}, {"threshold", 0.1}},
				Text:     "the in-group reward deviation is 0, below 0.2 times its early level 0.5 for 5 iterations in a row, since iteration 12",
			}},
		},
		{
			// The spike at 5 is alone. The average after it is still 1; 6 and 9 are above 5.
			// The update of iteration 8 did the harm.
			name:  GradNorm,
			steps: figures(MetricGradNorm, 1, 1, 1, 1, 1, 12, 1, 1, 6, 9, 20),
			want: []Event{{
				Detector: GradNorm, Iteration: 9, Onset: 8, Severity: Late,
				Evidence: []Evidence{{MetricGradNorm, 9}, {"level", 1}, {"threshold", 5}},
				Text:     "the gradient norm is 9, above 5 times its average 1 for 2 iterations in a row, since iteration 8",
			}},
		},
		{
			// Next to nothing may multiply: 0.3 is below 5 times the floor of 0.1.
			name:  "floor of a rise",
			steps: figures(MetricGradNorm, 0.01, 0.01, 0.01, 0.01, 0.01, 0.3, 0.4, 0.3),
		},
		{
			// From next to nothing there is no fall.
			name:  "floor of a fall",
			steps: figures(MetricEntropy, 0.04, 0.04, 0.04, 0.04, 0.04, 0.001, 0.001, 0.001, 0.001),
		},
		{
			name:  EntropyFall,
			steps: figures(MetricEntropy, 0.9, 0.9, 0.9, 0.9, 0.9, 0.2, 0.2, 0.2),
			want: []Event{{
				Detector: EntropyFall, Iteration: 7, Onset: 4, Severity: Early,
				Evidence: []Evidence{{MetricEntropy, 0.2}, {"level", 0.9}, {"threshold", 0.3}},
				Text:     "the entropy is 0.2, below 0.3333 times its average 0.9 for 3 iterations in a row, since iteration 5",
			}},
		},
		{
			name:  EntropyRise,
			steps: figures(MetricEntropy, 0.5, 0.5, 0.5, 0.5, 0.5, 1.2, 1.3, 1.4),
			want: []Event{{
				Detector: EntropyRise, Iteration: 7, Onset: 4, Severity: Early,
				Evidence: []Evidence{{MetricEntropy, 1.4}, {"level", 0.5}, {"threshold", 1}},
				Text:     "the entropy is 1.4, above 2 times its lowest level 0.5 for 3 iterations in a row, since iteration 5",
			}},
		},
		{
			// Dissimilarity 0.5, then 0.125: half of the way to 0.125 is 0.3125.
			name:  Similarity,
			steps: figures(MetricSimilarity, 0.5, 0.5, 0.5, 0.5, 0.5, 0.9, 0.9, 0.9, 0.9, 0.9),
			want: []Event{{
				Detector: Similarity, Iteration: 9, Onset: 4, Severity: Early,
				Evidence: []Evidence{{MetricSimilarity, 0.9}, {"level", 0.5}, {"threshold", 0.125}},
				Text:     "the dissimilarity inside groups is 0.1, below 0.25 times its early level 0.5 for 5 iterations in a row, since iteration 5",
			}},
		},
		{
			// Missing figures and figures that are not finite leave a row as it is.
			name: "gaps", steps: func() []step {
				steps := figures(MetricRewardStd, 0.5, 0.5, 0.5, 0.5, 0.5, 0, 0, 0, 0, 0, 0)
				steps[7].metrics = Metrics{}
				return steps
			}(),
			want: []Event{{
				Detector: RewardStd, Iteration: 10, Onset: 4, Severity: Early,
				Evidence: []Evidence{{MetricRewardStd, 0}, {"level", 0.5}, {"threshold", 0.1}},
				Text:     "the in-group reward deviation is 0, below 0.2 times its early level 0.5 for 5 iterations in a row, since iteration 5",
			}},
		},
		{
			name:  EmptySelection,
			steps: figures(MetricSelected, 32, 32, 0, 0, 0, 0, 0, 0),
			want: []Event{{
				Detector: EmptySelection, Iteration: 6, Onset: 1, Severity: Late,
				Evidence: []Evidence{{MetricSelected, 0}, {"threshold", 1}},
				Text:     "the number of selected rows is 0, below 1 for 5 iterations in a row, since iteration 2",
			}},
		},
		{
			// At once, of the update, and once: until it is finite again.
			name:  NonFinite,
			steps: figures(MetricGradNorm, 1, nan, nan, 1, nan),
			want: []Event{
				{Detector: NonFinite, Iteration: 1, Onset: 1, Severity: Late, Evidence: []Evidence{{MetricGradNorm, canon.Float(nan)}}, Text: "not finite: actor/grad_norm"},
				{Detector: NonFinite, Iteration: 4, Onset: 4, Severity: Late, Evidence: []Evidence{{MetricGradNorm, canon.Float(nan)}}, Text: "not finite: actor/grad_norm"},
			},
		},
		{
			// At once, with the token. The rollout was the version's before the update.
			name: NotExact,
			steps: []step{{0, Metrics{MetricDiffering: 0}, nil}, {1, Metrics{MetricDiffering: 3, MetricDifferingRow: 4, MetricDifferingToken: 17,
				MetricSamplerLogProb: -1.25, MetricTrainerLogProb: -1.5}, nil}},
			want: []Event{{Detector: NotExact, Iteration: 1, Onset: 0, Severity: Early,
				Evidence: []Evidence{{MetricDiffering, 3}, {MetricDifferingRow, 4}, {MetricDifferingToken, 17}, {MetricSamplerLogProb, -1.25}, {MetricTrainerLogProb, -1.5}},
				Text:     "the log-probs of 3 tokens of a micro-batch are not the sampler's; the first is that of row 4, token 17: -1.25 by the sampler, -1.5 by the trainer"}},
		},
		{
			// Measured before the update: the policy came with it.
			name:  "an entropy that is not finite",
			steps: figures(MetricEntropy, 1, 1, nan),
			want: []Event{{Detector: NonFinite, Iteration: 2, Onset: 1, Severity: Late,
				Evidence: []Evidence{{MetricEntropy, canon.Float(nan)}}, Text: "not finite: actor/entropy"}},
		},
		{
			name:  "a step left out",
			steps: figures(MetricSkipped, 0, 1),
			want: []Event{{Detector: NonFinite, Iteration: 1, Onset: 1, Severity: Late,
				Evidence: []Evidence{{MetricSkipped, 1}}, Text: "not finite: actor/skipped"}},
		},
		{
			name:  "a step of the critic that was left out",
			steps: figures(MetricCriticSkipped, 0, 2),
			want: []Event{{Detector: NonFinite, Iteration: 1, Onset: 1, Severity: Late,
				Evidence: []Evidence{{MetricCriticSkipped, 2}}, Text: "not finite: critic/skipped"}},
		},
		{
			name: "from the beginning", steps: figures("actor/loss", nan),
			want: []Event{{Detector: NonFinite, Iteration: 0, Onset: 0, Severity: Late,
				Evidence: []Evidence{{"actor/loss", canon.Float(nan)}}, Text: "not finite: actor/loss"}},
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, events := defaults(t).all(c.steps)
			require.Len(t, events, len(c.want))
			for i, want := range c.want {
				got := events[i]
				require.Len(t, got.Evidence, len(want.Evidence))
				for j, e := range want.Evidence {
					require.Equal(t, e.Name, got.Evidence[j].Name)
					if !math.IsNaN(float64(e.Value)) {
						require.InDelta(t, float64(e.Value), float64(got.Evidence[j].Value), 1e-12)
					}
				}
				want.Evidence, got.Evidence = nil, nil
				require.Equal(t, want, got)
			}
		})
	}
}

// The first policy's evaluation counts as iteration −1. The last good evaluation was of
// version 10, which iteration 9 made.
func TestValidation(t *testing.T) {
	for _, c := range []struct {
		name      string
		successes []float64
		iteration int
		onset     int
		target    bool
	}{
		{"after a good one", []float64{0.3, 0.2, 0, 0.009, 0, 0, 0, 0}, 59, 10, true},
		{"only the base model was good", []float64{0.3, 0, 0, 0, 0, 0}, 49, 0, false},
		{"never", []float64{0, 0, 0, 0, 0}, 39, 0, false},
		{"not five", []float64{0.3, 0, 0, 0, 0, 0.02, 0, 0, 0, 0}, 0, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := defaults(t)
			var s State
			var events, now []Event
			for i, v := range c.successes {
				s, now = d.Observe(s, i*10-1, nil, Metrics{MetricSuccess: canon.Float(v)})
				events = append(events, now...)
			}
			if c.iteration == 0 {
				require.Empty(t, events)
				return
			}
			require.Len(t, events, 1)
			require.Equal(t, Validation, events[0].Detector)
			require.Equal(t, c.iteration, events[0].Iteration)
			require.Equal(t, c.onset, events[0].Onset)
			target, ok := events[0].Target()
			require.Equal(t, c.target, ok)
			require.Equal(t, c.onset-1, target)
			require.Contains(t, events[0].Text, "below 0.01 for 5 evaluations in a row")
		})
	}
}

// A policy that solves its task may narrow as it likes; with success lost it may not.
func TestSolved(t *testing.T) {
	d := defaults(t)
	steps := figures(MetricRewardStd, 0.5, 0.5, 0.5, 0.5, 0.5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	for i := range steps {
		steps[i].metrics[MetricSuccess] = 0.95
	}
	_, events := d.all(steps)
	require.Empty(t, events)
	for i := 10; i < len(steps); i++ {
		steps[i].metrics[MetricSuccess] = 0.1
	}
	_, events = d.all(steps)
	require.Len(t, events, 1)
	require.Equal(t, 14, events[0].Iteration)
	require.Equal(t, 9, events[0].Onset)
	c := Defaults()
	c.Solved = 0
	never, err := New(c)
	require.NoError(t, err)
	_, events = never.all(steps)
	require.Equal(t, 9, events[0].Iteration)
}

// If the share of executable turns is known, it counts; otherwise the share of valid
// trajectories. A loss is measured by the best level.
func TestExecutable(t *testing.T) {
	steps := figures(MetricValid, 0.1, 0.1, 0.1, 0.1, 0.1, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.1, 0.1, 0.1)
	_, events := defaults(t).all(steps)
	require.Len(t, events, 1)
	require.Equal(t, 15, events[0].Iteration)
	require.Equal(t, 12, events[0].Onset)
	require.Equal(t, MetricValid, events[0].Evidence[0].Name)
	for i := range steps {
		steps[i].metrics[MetricExecutable] = 1
	}
	_, events = defaults(t).all(steps)
	require.Empty(t, events)
}

func TestOff(t *testing.T) {
	c := Defaults()
	c.RewardStd.OnDetection = Off
	d, err := New(c)
	require.NoError(t, err)
	s, events := d.all(figures(MetricRewardStd, 0.5, 0.5, 0.5, 0.5, 0.5, 0, 0, 0, 0, 0, 0))
	require.Empty(t, events)
	for _, w := range s.Watches {
		require.NotEqual(t, RewardStd, w.Rule)
	}
}

func TestRules(t *testing.T) {
	names := map[string]bool{}
	for _, r := range Rules() {
		require.False(t, names[r.Name])
		names[r.Name] = true
		require.NotEmpty(t, r.Metrics)
		require.NotEmpty(t, r.Doc)
		require.NotEmpty(t, r.Source)
		require.Contains(t, []Severity{Early, Late}, r.Severity)
		require.Equal(t, r.Name == RolloutDiff || r.Remedy != "", Defaults().action(r) == Off, r.Name)
	}
	require.Len(t, names, 17)
	Rules()[0].Name = "changed"
	require.Equal(t, RewardStd, Rules()[0].Name)
}

// The sampler may differ from the training program by as much as the spec says; it says
// nothing by default.
func TestRolloutDiff(t *testing.T) {
	steps := figures(MetricRolloutDiff, 0.01, 0.08, 0.09, 0.02, 0.06)
	state, events := defaults(t).all(steps)
	require.Empty(t, events)
	_, watched := state.watch(RolloutDiff)
	require.False(t, watched)

	config := Defaults()
	config.RolloutDiff.Above = 0.05
	d, err := New(config)
	require.NoError(t, err)
	_, events = d.all(steps)
	require.Len(t, events, 2)
	require.Equal(t, Event{
		Detector: RolloutDiff, Iteration: 1, Onset: 0, Severity: Early,
		Evidence: []Evidence{{MetricRolloutDiff, 0.08}, {"threshold", 0.05}},
		Text:     "the mean difference of the sampler's log-probs from the training program's is 0.08, above 0.05",
	}, events[0])
	require.Equal(t, 4, events[1].Iteration)
	require.Equal(t, Warn, d.Decide(events).Action)
	config.RolloutDiff.OnDetection = Stop
	require.Equal(t, Stop, Detectors{config: config}.Decide(events).Action)
}
