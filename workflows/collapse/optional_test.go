package collapse

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/store/canon"
)

// watching has all rules, with a vocabulary.
func watching(t testing.TB, vocabulary int) Detectors {
	t.Helper()
	c := Defaults().Filled()
	c.EntropyUniform.Vocabulary = vocabulary
	d, err := New(c)
	require.NoError(t, err)
	return d
}

// only keeps the events of one detector.
func only(name string, events []Event) (out []Event) {
	for _, e := range events {
		if e.Detector == name {
			out = append(out, e)
		}
	}
	return out
}

// A config that leaves the optional rules out has the bytes that it had before them, and watches none.
func TestOptionalRulesAreOffWhereLeftOut(t *testing.T) {
	b, err := json.Marshal(Defaults())
	require.NoError(t, err)
	for _, r := range append(optionalRules, echoTrap) {
		require.NotContains(t, string(b), r.Name)
		require.Equal(t, Off, Defaults().action(r), r.Name)
		c := Defaults().With(r.Name)
		c.EntropyUniform.Vocabulary = 768
		require.Equal(t, Warn, c.action(r), r.Name)
		require.NotEmpty(t, r.Remedy, r.Name)
	}
	state, events := defaults(t).all(figures(MetricRewardStd, 0, 0, 0, 0, 0, 0, 0, 0))
	require.Empty(t, events)
	for _, w := range state.Watches {
		require.Contains(t, []string{RewardStd, NonFinite}, w.Rule)
	}
}

func TestFilled(t *testing.T) {
	c := Defaults().With(NoSignal).With(EchoTrap).With(EntropyUniform).With(Distinct)
	c.NoSignal.Iterations, c.EchoTrap.OnDetection, c.EntropyUniform.Above = 9, Off, 0.75
	require.Equal(t, Row{OnDetection: Inherit, Iterations: 9}, c.NoSignal)
	require.Equal(t, Signs{OnDetection: Off, Signs: 3, Within: 10}, c.EchoTrap)
	require.Equal(t, Uniform{OnDetection: Inherit, Above: 0.75, Iterations: 3}, c.EntropyUniform)
	require.Zero(t, c.NoFormat)
	require.Equal(t, c.EchoTrap, c.Filled().EchoTrap, "what is there stays")
	require.Equal(t, published.NoFormat, c.Filled().NoFormat)
	require.Empty(t, c.Validate())
	require.Equal(t, Off, c.action(echoTrap))
	require.Equal(t, Off, c.action(ruleOf(EntropyUniform)), "without a vocabulary there is nothing to compare with")
}

func TestValidateOptionalRules(t *testing.T) {
	c := Defaults().Filled()
	c.NoSignal.Iterations, c.NoFormat.Below, c.EntropyUniform.Above = -1, 2, 1.5
	c.EntropyUniform.Vocabulary, c.ToolCalls.Factor, c.EchoTrap.Signs, c.EchoTrap.OnDetection = -4, 1, 5, "halt"
	var paths []string
	for _, p := range c.Validate() {
		paths = append(paths, p.Path)
	}
	require.Equal(t, []string{"no_signal.iterations", "no_format.below", "entropy_uniform.above", "entropy_uniform.vocabulary",
		"tool_calls.factor", "echo_trap.on_detection", "echo_trap.signs"}, paths)
}

// A published model that earns nothing: no group's returns differ. A solved task is no such case.
func TestNoSignal(t *testing.T) {
	steps := figures(MetricRewardStd, 0.1, 0, 0, 0, 0, 0, 0)
	_, events := watching(t, 0).all(steps)
	got := only(NoSignal, events)
	require.Len(t, got, 1)
	require.Equal(t, 5, got[0].Iteration)
	require.Equal(t, "no group's returns differed for 5 iterations in a row, since iteration 1; "+ruleOf(NoSignal).Remedy, got[0].Text)
	for _, s := range steps {
		s.metrics[MetricSuccess] = 1
	}
	_, events = watching(t, 0).all(steps)
	require.Empty(t, events)
}

// The entropies of SmolLM2-135M with every reward equal and an entropy bonus of 0.001, against ln 49152 =
// 10.80; a smoothed entropy would not have shown it for four iterations more.
func TestEntropyUniform(t *testing.T) {
	_, events := watching(t, 49152).all(figures(MetricEntropy, 3.66, 4.62, 5.75, 6.72, 7.98, 8.89, 9.59, 9.93, 10.1, 10.2))
	got := only(EntropyUniform, events)
	require.Len(t, got, 1)
	require.Equal(t, 4, got[0].Iteration)
	require.Equal(t, 1, got[0].Onset, "version 1 had 4.62 nats")
	require.True(t, strings.HasPrefix(got[0].Text, "the entropy as a share of that of uniform choice is 0.7387, above 0.5 for 3 iterations in a row, since iteration 2; "), got[0].Text)
	require.Equal(t, Evidence{MetricEntropy, 7.98}, got[0].Evidence[0])
	_, events = watching(t, 49152).all(figures(MetricEntropy, 3.66, 3.58, 3.93, 4.06, 4.17, 4.42, 4.73, 4.75, 4.87, 4.56))
	require.Empty(t, only(EntropyUniform, events), "at a tenth of the rate")
}

// The format is missing from the first iteration on; once it was there, its loss is another rule's.
func TestNoFormat(t *testing.T) {
	_, events := watching(t, 0).all(figures(MetricExecutable, 0, 0, 0.01, 0, 0, 0))
	got := only(NoFormat, events)
	require.Len(t, got, 1)
	require.Equal(t, 4, got[0].Iteration)
	_, possible := got[0].Target()
	require.False(t, possible, "only the first policy is before it")
	_, events = watching(t, 0).all(figures(MetricExecutable, 0, 0, 0.06, 0, 0, 0, 0, 0, 0, 0))
	require.Empty(t, only(NoFormat, events))
}

// Calls of all tools add up. They are measured by their best level, and need not be made once the task is solved.
func TestToolCalls(t *testing.T) {
	var steps []step
	for i, calls := range []canon.Float{1, 1, 1, 1, 1, 1, 0.3, 0.2, 0.1, 0.1, 0.1, 0.1} {
		steps = append(steps, step{iteration: i, metrics: Metrics{
			"train/countdown/calculate_calls": calls, "train/other/look_calls": calls / 2, "train/countdown/call_is_valid": 1,
		}})
	}
	_, events := watching(t, 0).all(steps)
	got := only(ToolCalls, events)
	require.Len(t, got, 1)
	require.Equal(t, 11, got[0].Iteration)
	require.Len(t, got[0].Evidence, 4)
	require.Equal(t, "train/countdown/calculate_calls", got[0].Evidence[0].Name)
	for _, s := range steps {
		s.metrics[MetricSuccess] = 0.95
	}
	_, events = watching(t, 0).all(steps)
	require.Empty(t, events)
}

// trapped is a run of twenty quiet iterations in which the signs that are named show one after another.
func trapped(shows map[string]int) []step {
	var steps []step
	previous := Metrics{}
	for i := range 40 {
		m := Metrics{MetricRewardStd: 0.4, MetricEntropy: 1, MetricGradNorm: 0.5, MetricReward: 0.5}
		for name, at := range shows {
			if i >= at {
				m[name] = map[string]canon.Float{MetricRewardStd: 0.001, MetricEntropy: 0.2, MetricGradNorm: 3, MetricReward: 0.1}[name]
			}
		}
		if at, ok := shows[MetricGradNorm]; ok && i > at {
			m[MetricGradNorm] = 0.5 // a spike
		}
		maps.Copy(m, Smooth(previous, m, []string{MetricRewardStd, MetricReward}, DefaultDecay))
		previous = m
		steps = append(steps, step{iteration: i, metrics: m})
	}
	return steps
}

// Three signs within ten iterations are the trap; two are not, nor are three that are far apart.
func TestEchoTrap(t *testing.T) {
	d := watching(t, 0)
	_, events := d.all(trapped(map[string]int{MetricEntropy: 20, MetricGradNorm: 24, MetricReward: 25}))
	got := only(EchoTrap, events)
	require.Len(t, got, 1, "once, though the signs stay")
	require.Equal(t, 25, got[0].Iteration)
	require.Equal(t, 19, got[0].Onset)
	require.Equal(t, "3 of the 4 signs of the echo trap within 10 iterations: the entropy left its level (iteration 25), "+
		"the gradient norm rose (iteration 24), the reward fell below its early level (iteration 25); "+echoTrap.Remedy, got[0].Text)
	for name, shows := range map[string]map[string]int{
		"two":       {MetricEntropy: 20, MetricGradNorm: 24},
		"far apart": {MetricEntropy: 30, MetricGradNorm: 15, MetricReward: 26},
		"none":      {},
	} {
		_, events = d.all(trapped(shows))
		require.Empty(t, only(EchoTrap, events), name)
	}

	// A state that was stored and read decides alike, and one that went back begins to count anew.
	steps := trapped(map[string]int{MetricEntropy: 20, MetricGradNorm: 24, MetricReward: 25})
	s, _ := d.all(steps[:25])
	_, again := d.Observe(through(t, s), 25, steps[25].metrics, nil)
	require.Len(t, only(EchoTrap, again), 1)
	_, again = d.Observe(s.Rewind(19), 25, steps[25].metrics, nil)
	require.Empty(t, only(EchoTrap, again))
}

// Runs without harm raise no alarm with the optional rules either.
func TestHealthyRunsRaiseNoAlarmOfOptionalRules(t *testing.T) {
	healthy, _ := shapes(t)
	d := watching(t, 768)
	for _, shape := range healthy {
		alarms := 0
		for seed := range uint64(50) {
			steps, previous := shape.run(seed), Metrics{}
			for _, s := range steps {
				maps.Copy(s.metrics, Smooth(previous, s.metrics, []string{MetricRewardStd, MetricReward}, DefaultDecay))
				previous = s.metrics
			}
			_, events := d.all(steps)
			for _, e := range events {
				require.Equal(t, EchoTrap, e.Detector, "%s, seed %d: %+v", shape.Name, seed, e)
				alarms++
			}
		}
		require.LessOrEqual(t, alarms, 3, shape.Name)
	}
}
