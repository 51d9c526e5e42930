package learn

import "strings"

// lesson is a setting, and what it must teach.
type lesson struct {
	Name string `json:"name"`
	// Preset is what is run, Fields what is replaced in it.
	Preset string         `json:"preset"`
	Fields map[string]any `json:"fields,omitempty"`
	// From and To bound the success before and after; Rises is by how many standard
	// errors of the difference it has to rise. A lesson that promises nothing has none.
	From  *[2]float64 `json:"from,omitempty"`
	To    *[2]float64 `json:"to,omitempty"`
	Rises float64     `json:"rises,omitempty"`
	// What says in words what is promised.
	What string `json:"what"`
}

// lessons are: does it learn, and does it learn the right thing?
//
// Two things in the bandit pull beside the mean reward, in opposite directions.
// Selection by reward deviation keeps the groups in which somebody was lucky: it
// favours the risk. GRPO's division by the group's deviation makes a group in
// which nobody was lucky, where rewards differ by 0.15, count as much as one
// with wins: it favours safety. So where no group is left out, the promises hold
// for advantages that are not divided, whose mean is the policy gradient; the
// two settings that are pulled away are reported and promise nothing.
var lessons = []lesson{
	{Name: "p25-keep25", Preset: "bandit-demo", Fields: banditLesson(0.25, 0.25, true, 30), From: even, To: &[2]float64{0.90, 1}, What: "35–65 % to at least 90 %"},
	{Name: "p25-all", Preset: "bandit-demo", Fields: banditLesson(0.25, 1, false, 25), From: even, To: &[2]float64{0.90, 1}, What: "35–65 % to at least 90 %"},
	{Name: "p10-all", Preset: "bandit-demo", Fields: banditLesson(0.10, 1, false, 25), From: even, To: &[2]float64{0, 0.20}, What: "35–65 % to at most 20 %"},
	{Name: "p10-keep25", Preset: "bandit-demo", Fields: banditLesson(0.10, 0.25, true, 30), What: "nothing: selection favours the risk"},
	{Name: "p25-all-std", Preset: "bandit-demo", Fields: banditLesson(0.25, 1, true, 15), What: "nothing: dividing by the deviation favours safety"},
	{Name: "frozenlake", Preset: "frozenlake-learn", Rises: 3, What: "rises by 3 standard errors"},
	{Name: "sokoban", Preset: "sokoban-learn", Rises: 3, What: "rises by 3 standard errors"},
}

// even is where a policy that knows nothing of the arms begins.
var even = &[2]float64{0.35, 0.65}

// Names are the settings' names, for people.
func Names() string {
	var names []string
	for _, l := range lessons {
		names = append(names, l.Name)
	}
	return strings.Join(names, ", ")
}

// The suite that the bandit's policies are measured on: 256 fixed samples at the
// rollout's temperature, so that what is measured is the policy that is trained.
const (
	Instances   = 64
	Samples     = 4
	Temperature = 1.0
)

// banditLesson is a bandit whose high arm pays 1 with a probability; the low arm
// pays 0.15 for certain. keep is the fraction of the groups that is learned from.
func banditLesson(probability, keep float64, byStd bool, iterations int) map[string]any {
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
