package collapse

import (
	"bytes"
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/strict"
)

func TestConfigAsJSON(t *testing.T) {
	b, err := json.Marshal(Defaults())
	require.NoError(t, err)
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	var c Config
	require.NoError(t, dec.Decode(&c))
	require.Equal(t, Defaults(), c)
	require.Empty(t, c.Validate())
}

func problem(path, found, allowed, hint string) strict.Problem {
	return strict.Problem{Path: path, Found: found, Allowed: allowed, Hint: hint}
}

func TestValidate(t *testing.T) {
	nan := math.NaN()
	cases := []struct {
		change func(*Config)
		want   strict.Problem
	}{
		{func(c *Config) { c.OnDetection = "" }, problem("on_detection", `""`, "off, warn, stop, rollback", "")},
		{func(c *Config) { c.OnDetection = Inherit }, problem("on_detection", `"default"`, "off, warn, stop, rollback", "")},
		{func(c *Config) { c.WarmUp = 0 }, problem("warm_up", "0", "an integer from 1 to 1000", "")},
		{func(c *Config) { c.Decay = 1 }, problem("decay", "1", "a number from 0 to 0.999", "")},
		{func(c *Config) { c.Solved = nan }, problem("solved", "NaN", "0 (never) or a number up to 1", "")},
		{func(c *Config) { c.RewardStd.Factor = 1 }, problem("reward_std.factor", "1", "a number above 0 and below 1", "")},
		{func(c *Config) { c.GradNorm.Factor = 1 }, problem("grad_norm.factor", "1", "a number above 1 and at most 1000", "")},
		{func(c *Config) { c.EntropyRise.Factor = math.Inf(1) }, problem("entropy_rise.factor", "+Inf", "a number above 1 and at most 1000", "")},
		{func(c *Config) { c.Similarity.Floor = -1 }, problem("similarity.floor", "-1", "a number from 0 to 1000000", "")},
		{func(c *Config) { c.Executable.Iterations = 0 }, problem("executable.iterations", "0", "an integer from 1 to 1000", "")},
		{func(c *Config) { c.Distinct.OnDetection = "halt" }, problem("distinct.on_detection", `"halt"`, "default, off, warn, stop, rollback", "")},
		{func(c *Config) { c.Validation.Below = 0 }, problem("validation.below", "0", "a number above 0 and at most 1", "")},
		{func(c *Config) { c.Validation.Evaluations = 1001 }, problem("validation.evaluations", "1001", "an integer from 1 to 1000", "")},
		{func(c *Config) { c.Validation.OnDetection = "x" }, problem("validation.on_detection", `"x"`, "default, off, warn, stop, rollback", "")},
		{func(c *Config) { c.EmptySelection.Iterations = -1 }, problem("empty_selection.iterations", "-1", "an integer from 1 to 1000", "")},
		{func(c *Config) { c.NonFinite.Iterations = 0 }, problem("non_finite.iterations", "0", "an integer from 1 to 1000", "")},
		{func(c *Config) { c.RolloutDiff.Above = -1 }, problem("training_rollout_diff.above", "-1", "0 (not watched) or a number up to 1000", "")},
		{func(c *Config) { c.RolloutDiff.OnDetection = "x" }, problem("training_rollout_diff.on_detection", `"x"`, "default, off, warn, stop, rollback", "")},
		{func(c *Config) { c.Rollback.Max = 101 }, problem("rollback.max", "101", "an integer from 0 to 100", "")},
		{func(c *Config) { c.Rollback.Then = RollBack }, problem("rollback.then", `"rollback"`, "warn, stop", "")},
		{func(c *Config) { c.Rollback.LearningRateFactor = 0 }, problem("rollback.learning_rate_factor", "0", "a number above 0 and at most 10", "")},
		{func(c *Config) { c.Rollback.SelectionKeep = 1.5 }, problem("rollback.selection_keep", "1.5", "0 (as it is) or a number from 1e-06 to 1", "")},
		{func(c *Config) { c.Rollback.ClipHigh = -0.2 }, problem("rollback.clip_high", "-0.2", "0 (as it is) or a number from 1e-06 to 10", "")},
		{func(c *Config) { c.Rollback.Temperature = 0.001 }, problem("rollback.temperature", "0.001", "0 (as it is) or a number from 0.01 to 10", "")},
		{func(c *Config) { c.Rollback.EntropyCoefficient = -0.5 }, problem("rollback.entropy_coefficient", "-0.5", "-1 (as it is) or a number from 0 to 1", "")},
		{func(c *Config) { c.Rollback.KLCoefficient = 11 }, problem("rollback.kl_coefficient", "11", "-1 (as it is) or a number from 0 to 10", "")},
		{func(c *Config) { c.Rollback.Max, c.NonFinite.OnDetection = 0, RollBack }, problem("rollback.max", "0 beside a rule that rolls back", "an integer from 1 to 100",
			"set rollback.max to 1 or more, or on_detection to stop")},
	}
	for _, c := range cases {
		config := Defaults()
		c.change(&config)
		require.Equal(t, strict.Problems{c.want}, config.Validate())
		_, err := New(config)
		require.ErrorContains(t, err, c.want.Path+": found "+c.want.Found)
	}
	require.Len(t, Config{}.Validate(), 1+1+7*3+3+2+2+2, "everything at once")
}

func TestDecide(t *testing.T) {
	c := Defaults()
	c.EntropyFall.OnDetection = RollBack
	c.GradNorm.OnDetection = RollBack
	c.NonFinite.OnDetection = Stop
	d, err := New(c)
	require.NoError(t, err)
	event := func(name string, onset int) Event { return Event{Detector: name, Onset: onset} }
	for _, c := range []struct {
		events []Event
		want   Decision
	}{
		{nil, Decision{Action: Off}},
		{[]Event{event("unknown", 1)}, Decision{Action: Off}},
		{[]Event{event(RewardStd, 30)}, Decision{Action: Warn, By: []string{RewardStd}, Onset: 30}},
		{[]Event{event(RewardStd, 30), event(Distinct, 28)}, Decision{Action: Warn, By: []string{RewardStd, Distinct}, Onset: 28}},
		{[]Event{event(RewardStd, 30), event(NonFinite, 40)}, Decision{Action: Stop, By: []string{NonFinite}, Onset: 40}},
		{[]Event{event(RewardStd, 30), event(EntropyFall, 38), event(GradNorm, 35), event(NonFinite, 40)},
			Decision{Action: RollBack, By: []string{EntropyFall, GradNorm}, Onset: 35}},
	} {
		require.Equal(t, c.want, d.Decide(c.events))
	}
}

func TestKnobs(t *testing.T) {
	r := Defaults().Rollback
	require.Equal(t, []Knob{{Path: "update.learning_rate", Times: 0.5}}, r.Knobs())
	require.Equal(t, "update.learning_rate × 0.5", r.Knobs()[0].String())
	require.Empty(t, Rollback{LearningRateFactor: 1, EntropyCoefficient: -1, KLCoefficient: -1}.Knobs())
	all := Rollback{LearningRateFactor: 0.1, SelectionKeep: 0.5, ClipHigh: 0.2, Temperature: 1.2, EntropyCoefficient: 0, KLCoefficient: 0.001}.Knobs()
	var texts []string
	for _, k := range all {
		texts = append(texts, k.String())
	}
	require.Equal(t, []string{"update.learning_rate × 0.1", "selection.keep = 0.5", "update.clip_high = 0.2", "rollout.temperature = 1.2",
		"update.entropy_coefficient = 0", "update.kl_coefficient = 0.001"}, texts)
}
