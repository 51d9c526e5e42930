package learn

import (
	"slices"
	"strings"
)

// Setting is what is trained, and what training promises.
type Setting struct {
	Name string `json:"name"`
	// Preset is the preset to run, Fields the fields replaced in it.
	Preset string         `json:"preset"`
	Fields map[string]any `json:"fields,omitempty"`
	// Teacher is the setting whose run of the first seed teaches; "" is none. That run is made before.
	Teacher string `json:"teacher,omitempty"`
	// From and To bound the success before and after; Rises is by how many standard
	// errors of the difference it must rise. A setting without a promise has none.
	From  *[2]float64 `json:"from,omitempty"`
	To    *[2]float64 `json:"to,omitempty"`
	Rises float64     `json:"rises,omitempty"`
	// Reaches is how far success must come on the way from random play, 0, to best play, 1. Best
	// play must be known.
	Reaches float64 `json:"reaches,omitempty"`
	// Metrics are those of an iteration that the setting is about, beside success; Ends bounds
	// the mean of the first of them over the last iterations of a run.
	Metrics []string    `json:"metrics,omitempty"`
	Ends    *[2]float64 `json:"ends,omitempty"`
	// What says the promise in words.
	What string `json:"what"`
}

// settings lists what is trained.
var settings = slices.Concat(tasks, rewards())

// tasks are the settings that are about success alone.
//
// On the bandit two parts of the algorithm bias the policy away from the higher mean
// reward, in opposite directions. Selection by the standard deviation of rewards prefers
// groups with a lucky member, and so the risky arm. GRPO's division by the group's
// standard deviation gives a group without a win, whose rewards differ by at most 0.15,
// the weight of a group with wins, and so prefers the safe arm. The promises without
// selection therefore use advantages that are not divided, whose mean is the policy
// gradient. The two settings that are biased are reported without a promise.
var tasks = []Setting{
	{Name: "p25-keep25", Preset: "bandit-demo", Fields: bandit(0.25, 0.25, true, 30), From: even, To: &[2]float64{0.90, 1}, What: "35–65 % to at least 90 %"},
	{Name: "p25-all", Preset: "bandit-demo", Fields: bandit(0.25, 1, false, 25), From: even, To: &[2]float64{0.90, 1}, What: "35–65 % to at least 90 %"},
	{Name: "p10-all", Preset: "bandit-demo", Fields: bandit(0.10, 1, false, 25), From: even, To: &[2]float64{0, 0.20}, What: "35–65 % to at most 20 %"},
	{Name: "p10-keep25", Preset: "bandit-demo", Fields: bandit(0.10, 0.25, true, 30), What: "nothing: selection favours the risk"},
	{Name: "p25-all-std", Preset: "bandit-demo", Fields: bandit(0.25, 1, true, 15), What: "nothing: dividing by the deviation favours safety"},
	{Name: "p25-lora", Preset: "bandit-demo", Fields: adapters(bandit(0.25, 0.25, true, 20)), From: even, To: &[2]float64{0.90, 1}, What: "35–65 % to at least 90 % by iteration 20, with adapters"},
	{Name: "frozenlake", Preset: "frozenlake-learn", Rises: 3, What: "rises by 3 standard errors"},
	{Name: "sokoban", Preset: "sokoban-learn", Rises: 3, What: "rises by 3 standard errors"},
	{Name: "webshop-starter", Preset: "webshop-starter", Rises: 3, Reaches: 1. / 3, What: "rises by 3 standard errors, to a third of the way from random to best play"},
	{Name: "code-starter", Preset: "code-starter", Fields: map[string]any{"iterations": 120, "evaluation": map[string]any{"instances": 256}},
		Rises: 3, What: "rises by 3 standard errors, on functions that are not trained on"},
	{Name: "code-distill", Preset: "code-starter", Teacher: "code-starter", Fields: distilled(map[string]any{
		"evaluation": map[string]any{"instances": 256},
	}), Rises: 3, What: "rises by 3 standard errors, by what the run before thinks of its programs"},
	{Name: "lookup-starter", Preset: "lookup-starter", Rises: 3, What: "rises by 3 standard errors, on people that are not trained on"},
	{Name: "lookup-starter-alone", Preset: "lookup-starter", Fields: alone, What: "nothing: the same without the tool, to compare"},
	{Name: "roles", Preset: "dr-mas", Rises: 3, What: "rises by 3 standard errors"},
	{Name: "roles-grpo", Preset: "dr-mas", Fields: map[string]any{"credit": map[string]any{"algorithm": "grpo"}}, What: "nothing: the same with GRPO, to compare"},
	{Name: "smol-bandit", Preset: "smol-bandit", Rises: 3, What: "SmolLM2-135M rises by 3 standard errors"},
	{Name: "smol-bandit-lora", Preset: "smol-bandit-lora", Rises: 3, What: "the same, with adapters"},
	{Name: "smol-distill", Preset: "smol-bandit-lora", Teacher: "smol-bandit", Fields: distilled(map[string]any{}),
		Rises: 3, What: "adapters of SmolLM2-135M rise by 3 standard errors, by what the model with all weights trained thinks of their replies"},
	{Name: "smol-frozenlake", Preset: "smol-frozenlake", Rises: 3, What: "SmolLM2-135M rises by 3 standard errors, on 32 lakes"},
}

// alone are the fields of lookup-starter without its tool: a turn has nothing but the answer.
var alone = map[string]any{
	"environment": map[string]any{"tools": nil, "tool_calls": nil, "calls_per_turn": nil, "result_tokens": nil},
	"rollout":     map[string]any{"turns": 1},
}

// distilled are fields of a run that learns from a teacher alone, on all that it samples.
func distilled(fields map[string]any) map[string]any {
	fields["credit"] = map[string]any{"algorithm": "distill"}
	fields["selection"] = map[string]any{"method": "all", "keep": 1.0, "drop_flat": false}
	return fields
}

// even is the success of a policy that has not learned which arm is better.
var even = &[2]float64{0.35, 0.65}

// Names lists the settings' names, separated by commas.
func Names() string {
	var names []string
	for _, s := range settings {
		names = append(names, s.Name)
	}
	return strings.Join(names, ", ")
}

// The suite of the bandit: 256 fixed samples at the rollout's temperature, so that
// evaluation samples as training does.
const (
	Instances   = 64
	Samples     = 4
	Temperature = 1.0
)

// bandit is the fields of a bandit whose high arm pays 1 with the given probability and
// whose low arm always pays 0.15. keep is the fraction of groups to learn from.
func bandit(probability, keep float64, byStd bool, iterations int) map[string]any {
	selection := map[string]any{"method": "top_fraction", "keep": keep}
	if keep == 1 {
		selection = map[string]any{"method": "all", "keep": 1.0}
	}
	return map[string]any{
		"iterations":  iterations,
		"environment": map[string]any{"options": map[string]any{"high_probability": probability}},
		"selection":   selection,
		"credit":      map[string]any{"normalize_by_std": byStd},
		"snapshot":    map[string]any{"every": iterations},
		"evaluation": map[string]any{
			"every": iterations, "instances": Instances, "samples": Samples, "temperature": Temperature,
		},
	}
}

// adapters are fields of a run that trains adapters of rank 8, at a rate that suits them.
func adapters(fields map[string]any) map[string]any {
	fields["policy"] = map[string]any{"lora": map[string]any{"rank": 8, "alpha": 16}}
	fields["update"] = map[string]any{"learning_rate": 3e-3}
	return fields
}
