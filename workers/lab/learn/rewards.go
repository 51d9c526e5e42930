package learn

// rewarded are the settings whose preset pays a part of a reward, each with the module's name.
var rewarded = []struct {
	module string
	Setting
}{
	{"length", Setting{Name: "reward-length", Metrics: []string{"response_length/mean"}, Ends: &[2]float64{0, 11.5}, What: "ends at 11.5 tokens or less"}},
	{"progress", Setting{Name: "reward-progress", Metrics: []string{"reward/progress/mean"}, Ends: &[2]float64{2.25, 4}, What: "ends at 2.25 cells or more of 4"}},
	{"state", Setting{Name: "reward-state", Metrics: []string{"reward/state/mean", "thought/wrong_share"}, Ends: &[2]float64{0.6, 1}, What: "ends at 0.6 or more"}},
	{"checklist", Setting{Name: "reward-checklist", Metrics: []string{"reward/checklist/mean"}, Ends: &[2]float64{0.85, 1}, What: "ends at 0.85 or more"}},
	{"checklist", Setting{Name: "reward-gamed", Metrics: []string{"reward/checklist/mean"}, Ends: &[2]float64{0.85, 1}, To: &[2]float64{0, 0.05}, What: "ends at 0.85 or more, and success at 5 % or less"}},
	{"tools", Setting{Name: "reward-tools", Metrics: []string{"train/countdown/calculate_calls", "reward/tools/mean"}, Ends: &[2]float64{1.5, 2}, What: "ends at 1.5 calls or more of 2"}},
	{"checklist", Setting{Name: "reward-checklist-tools", Metrics: []string{"train/countdown/calculate_calls", "reward/checklist/mean"}, Ends: &[2]float64{0.9, 1}, What: "ends at 0.9 calls or more of 1"}},
}

// rewards are the settings of rewarded, and each a second time with its part measured and not
// paid: what the same run learns without it.
func rewards() []Setting {
	var out []Setting
	for _, r := range rewarded {
		paid := r.Setting
		paid.Preset = paid.Name
		unpaid := Setting{
			Name: paid.Name + "-unpaid", Preset: paid.Preset, Metrics: paid.Metrics, What: "nothing: the same without the part, to compare",
			Fields: map[string]any{"schedule": []any{map[string]any{"field": "rewards." + r.module + ".weight", "from": 0, "value": 0}}},
		}
		out = append(out, paid, unpaid)
	}
	return out
}
