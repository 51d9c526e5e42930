package study

import (
	"fmt"
	"math"
)

// The bandit's rewards: what the low arm always pays, and the high one when it
// pays (arXiv 2504.20073, appendix).
const (
	LowReward  = 0.15
	HighReward = 1.0
)

// Algorithm is a way to update.
type Algorithm struct {
	// Name is its name in settings.
	Name string
	// Preset is what is run; All keeps all groups even if the preset selects.
	Preset string
	All    bool
	// Title is its name in plots.
	Title string
}

// Algorithms lists the compared algorithms. The last is StarPO-S without its selection, to
// separate the effect of selection from the rest of StarPO-S.
var Algorithms = []Algorithm{
	{Name: "grpo", Preset: "starpo-grpo", Title: "StarPO, GRPO"},
	{Name: "ppo", Preset: "starpo-ppo", Title: "StarPO, PPO"},
	{Name: "starpo-s", Preset: "starpo-s", Title: "StarPO-S"},
	{Name: "starpo-s-all", Preset: "starpo-s", All: true, Title: "StarPO-S, all groups"},
}

// Probabilities are how often the high arm pays: more than the low arm on average,
// and less.
var Probabilities = []float64{0.25, 0.10}

// Setting is an algorithm on a task.
type Setting struct {
	Algorithm Algorithm
	// Probability is how often the high arm pays.
	Probability float64
	// Shared draws one payout for a whole group.
	Shared bool
}

// Settings lists all settings in the order of tables: probability, chance, algorithm.
func Settings() []Setting {
	var all []Setting
	for _, p := range Probabilities {
		for _, shared := range []bool{false, true} {
			for _, a := range Algorithms {
				all = append(all, Setting{Algorithm: a, Probability: p, Shared: shared})
			}
		}
	}
	return all
}

// Name is the setting's name, as in "starpo-s-p25-shared".
func (s Setting) Name() string {
	return s.Algorithm.Name + "-" + s.Task()
}

// Task is the environment's part of the name, as in "p25-shared".
func (s Setting) Task() string {
	name := fmt.Sprintf("p%02.0f", math.Round(100*s.Probability))
	if s.Shared {
		name += "-shared"
	}
	return name
}

// Size is how large the runs are. The presets have a starter of 4 layers × 128 and
// 8 groups of 16; smaller ones make a study that two cores finish.
type Size struct {
	Iterations int `json:"iterations"`
	// Layers and Width are the starter's.
	Layers int `json:"layers"`
	Width  int `json:"width"`
	// Groups of GroupSize members an iteration.
	Groups    int `json:"groups"`
	GroupSize int `json:"group_size"`
	// LearningRate is the policy's; 0 is the preset's.
	LearningRate float64 `json:"learning_rate,omitempty"`
}

// Fields are the fields replaced in the setting's preset. Detectors only warn, so that a
// collapse runs its course. The policy is evaluated on fixed instances at the start and at
// the end. Each seed has its own starter, so that the seeds are independent.
func (s Setting) Fields(size Size, seed uint64) map[string]any {
	fields := size.fields(seed)
	fields["description"] = fmt.Sprintf("reprise study: %s, seed %d", s.Name(), seed)
	fields["iterations"] = size.Iterations
	fields["environment"] = map[string]any{"options": map[string]any{
		"high_probability": s.Probability, "low_reward": LowReward, "high_reward": HighReward, "shared_chance": s.Shared,
	}}
	fields["collapse"] = map[string]any{"on_detection": "warn"}
	fields["snapshot"] = map[string]any{"every": size.Iterations}
	fields["evaluation"] = map[string]any{"every": size.Iterations, "temperature": 1.0}
	if s.Algorithm.All {
		fields["selection"] = map[string]any{"method": "all", "keep": 1.0}
	}
	return fields
}

// fields are those of a run of the size with a starter of its own.
func (size Size) fields(seed uint64) map[string]any {
	fields := map[string]any{
		"seed": seed,
		"policy": map[string]any{
			"starter":    map[string]any{"layers": size.Layers, "hidden_size": size.Width, "intermediate_size": 3 * size.Width, "seed": seed},
			"warm_start": map[string]any{"seed": seed},
		},
		"rollout": map[string]any{"groups": size.Groups, "group_size": size.GroupSize},
	}
	if size.LearningRate > 0 {
		fields["update"] = map[string]any{"learning_rate": size.LearningRate}
	}
	return fields
}

// Expected is the mean reward of a policy that chooses the high arm with a share of
// its episodes and any arm with another, in expectation over the payouts.
func (s Setting) Expected(high, any float64) float64 {
	return float64(high*s.Probability*HighReward) + float64((any-high)*LowReward)
}

// Better is the mean reward of the better arm.
func (s Setting) Better() float64 { return max(LowReward, float64(s.Probability*HighReward)) }
