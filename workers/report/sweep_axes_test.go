package report

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/workflows/sweep"
)

func TestAxes(t *testing.T) {
	fields := []fieldPage{
		{Path: "credit.algorithm", Values: []string{"grpo", "gae", "grpo", "gae"}},
		{Path: "critic.learning_rate", Values: []string{"", "0.001", "", "0.001"}},
		{Path: "update.learning_rate", Values: []string{"0.1", "0.1", "0.2", "0.2"}},
	}
	require.Equal(t, []axisPage{
		{Paths: []string{"credit.algorithm", "critic.learning_rate"}, Name: "algorithm / critic.learning_rate", Values: []string{"grpo / —", "gae / 0.001"}, Of: []int{0, 1, 0, 1}},
		{Paths: []string{"update.learning_rate"}, Name: "update.learning_rate", Values: []string{"0.1", "0.2"}, Of: []int{0, 0, 1, 1}},
	}, axesOf(fields), "fields that change together are one axis")
}

func TestShortNames(t *testing.T) {
	paths := map[string]string{"update.learning_rate": "learning_rate", "credit.algorithm": "algorithm", "rollout.prompt_tokens": "prompt_tokens", "update.kl_in": "kl_in"}
	for label, want := range map[string]string{
		"update.learning_rate=0.001,credit.algorithm=grpo": "learning_rate 0.001 · grpo",
		"rollout.prompt_tokens=[80,90],update.kl_in=none":  "prompt_tokens [80,90] · kl_in none",
		"clip-higher":                                       "clip-higher",
		"clip-higher,update.learning_rate=1e-4":             "clip-higher · learning_rate 1e-4",
		"snapshot.every=10,credit.algorithm=grpo":           "grpo", // the same in all settings
		"snapshot.list=[1,2],credit.algorithm=reinforce_pp": "reinforce_pp",
		"": "",
		"update.learning_rate=#0a1b2c3d,credit.algorithm=true": "learning_rate #0a1b2c3d · algorithm true",
	} {
		require.Equal(t, want, shortName(label, paths), label)
	}
	fields := []fieldPage{{Path: "a.x", Values: []string{"1", "2"}}}
	require.Equal(t, []string{"x 1", "x 2"}, Sweep{}.shortNames([]string{"a.x=1", "a.x=2"}, fields))
	require.Equal(t, []string{"the base", "x 2"}, Sweep{}.shortNames([]string{"", "a.x=2"}, fields))
	require.Equal(t, []string{"b.y=1", "b.y=2"}, Sweep{}.shortNames([]string{"b.y=1", "b.y=2"}, fields), "short ones would be the same")
	long := "grid/update.learning_rate=0.001,selection.keep=0.25,seed=1"
	require.Equal(t, []string{"run-1", "grid/update.learning…on.keep=0.25,seed=1"}, Sweep{Comparison: true}.shortNames([]string{"run-1", long}, fields))
}

func TestSettingOfIDs(t *testing.T) {
	for name, want := range map[string]string{
		"ppo-seed1": "ppo", "ppo-s1": "ppo", "base": "base", "losses-": "losses", "run-": "run", "sw/update.x=1,seed=": "sw/update.x=1", "12": "", "seed": "seed",
	} {
		require.Equal(t, want, trimSeed(name), name)
	}
	require.Equal(t, "ab", commonPrefix("abc", "abd"))
	require.Equal(t, "", commonPrefix("", "abd"))
}

// reached is a run that ends with a success.
func reached(success float64) *Run {
	m := &store.Manifest{Metrics: activities.Metrics{"success/mean": canon.Float(success)}}
	return &Run{Branches: []Branch{{Iterations: []Iteration{{Link: store.Link{Manifest: m}}}}}}
}

// grid is a sweep of two axes of two values and as many seeds as there are successes of a
// setting; NaN is a trial that has not begun.
func grid(successes [4][]float64) (s Sweep, axes []axisPage, of [][]int) {
	s = Sweep{Metrics: []string{"success/mean"}, Goal: sweep.Maximize}
	for k, seeds := range successes {
		of = append(of, nil)
		for seed, v := range seeds {
			trial := Trial{Setting: string(rune('a' + k)), Seed: uint64(seed)}
			if !math.IsNaN(v) {
				trial.Run = reached(v)
			}
			of[k] = append(of[k], len(s.Trials))
			s.Trials = append(s.Trials, trial)
		}
	}
	return s, []axisPage{{Values: []string{"1", "2"}, Of: []int{0, 0, 1, 1}}, {Values: []string{"x", "y"}, Of: []int{0, 1, 0, 1}}}, of
}

// A field's effect is over the cells that each of its values has: same other fields, same seed.
func TestEffects(t *testing.T) {
	s, axes, of := grid([4][]float64{{0.1, 0.2}, {0.3, 0.4}, {0.5, 0.6}, {0.7, math.NaN()}})
	effects := s.effects(axes, of)
	require.Len(t, effects, 2)
	first := effects[0].Metrics[0]
	require.Equal(t, 2, effects[0].Combinations)
	require.Equal(t, 3, first.Cells, "seed 1 of y has no run with the second value")
	require.Equal(t, 1, first.Best)
	require.InDeltaSlice(t, []float64{0.2, 0.6}, first.Means, 1e-9)
	require.InDelta(t, -0.4, float64(first.Differences[0].Mean), 1e-9, "0.1 to 0.5, 0.2 to 0.6, 0.3 to 0.7")
	require.InDelta(t, float64(first.Differences[0].Low), float64(first.Differences[0].High), 1e-9, "all pairs differ by the same")
	require.Zero(t, first.Differences[1].Mean)

	s.Goal = sweep.Minimize
	require.Equal(t, 0, s.effects(axes, of)[0].Metrics[0].Best)

	require.Nil(t, s.effects(axes[:1], of), "one field's effect is what the settings' table says")
	axes[1].Of = []int{0, 1, 1, 0} // still crossed
	require.Len(t, s.effects(axes, of), 2)
	axes[1] = axisPage{Values: []string{"x", "y", "z"}, Of: []int{0, 1, 2, 2}}
	require.Nil(t, s.effects(axes, of), "no combination has all values")
}

func TestPairs(t *testing.T) {
	a, b := bySeed{1: 0.5, 2: 0.7, 3: 0.9, 4: 1}, bySeed{1: 0.4, 2: 0.5, 3: 0.6, 9: 0}
	e := a.minus(b, "reward/mean")
	require.Equal(t, 3, e.N, "seeds that both have")
	require.InDelta(t, 0.2, float64(e.Mean), 1e-9)
	require.InDelta(t, 0.2-4.302653*0.1/math.Sqrt(3), float64(e.Low), 1e-5)
	require.Zero(t, a.minus(bySeed{}, "reward/mean").N)
	wide := bySeed{1: 0, 2: 1, 3: 0}.minus(bySeed{1: 1, 2: 0, 3: 0}, "success/mean")
	require.EqualValues(t, -1, wide.Low, "shares differ by 100 points at most")
	require.EqualValues(t, 1, wide.High)

	s, _, of := grid([4][]float64{{0.1}, {0.9}, {math.NaN()}, {0.5}})
	require.Equal(t, bySeed{0: 0.9}, s.measured(of[1], "success/mean"))
	require.Empty(t, s.measured(of[2], "success/mean"))
	require.Equal(t, []int{1, 3, 0, 2}, sweepPageOf(s).Order, "what has no value is last")
}

// Advantages are the critic's by name only.
func TestCurveNames(t *testing.T) {
	require.Equal(t, "advantages/max", otherCurve("critic/advantages/max", []string{"critic/advantages/max"}).Title)
	require.Equal(t, "critic/advantages/max", otherCurve("critic/advantages/max", []string{"critic/advantages/max", "critic/vf_loss"}).Title)
	require.Equal(t, "critic/lr", otherCurve("critic/lr", nil).Title)
}

// The fields of objects in a list are named one by one.
func TestLeaves(t *testing.T) {
	require.Equal(t, map[string]string{"a[0].b": "1", "a[1].b": "2", "c": "[1,2]", "d": "[]", "e.f": `"x"`, "g": "null"},
		leaves("", []byte(`{"a":[{"b":1},{"b":2}],"c":[1,2],"d":[],"e":{"f":"x"},"g":null}`)))
}
