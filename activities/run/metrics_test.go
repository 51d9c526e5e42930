package run

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/envs"
	_ "github.com/reprise-rl/reprise/envs/all"
	"github.com/reprise-rl/reprise/infra/store/canon"
)

// An environment's own figures are means an episode, under its label in rollouts and in
// mixtures; other environments have none.
func TestCountedMetrics(t *testing.T) {
	shop, err := envs.New("webshop", []byte(`{"catalogue":"starter"}`))
	require.NoError(t, err)
	lake, err := envs.New("frozenlake", nil)
	require.NoError(t, err)
	bought := func(label string) episode.TrajectoryRow {
		return episode.TrajectoryRow{
			Environment: label, Actions: []string{"search[hat]", "", "click[p01] || click[buy now]"}, StateKeys: []string{"a", "b cut", "c", "d cut"},
			SampledLengths: []int32{1, 1, 1}, PromptLengths: []int32{1, 1, 1}, IDs: make([]int32, 6), Rewards: []float64{0, 0, 1}, Penalties: make([]float64, 3), Executed: []int32{1, 0, 2},
		}
	}
	walked := bought("frozenlake")
	walked.Actions = []string{"Up", "Up", "Up"}
	wandered := bought("webshop")
	wandered.Actions = []string{"search[hat]", "click[back to search]", "search[cup]"}
	one := &Task{Groups: 1, Members: 2, Parts: envs.Mixture{{Label: "webshop", Environment: shop, Share: 1}}}
	rows := []episode.TrajectoryRow{bought("webshop"), wandered}
	for name, want := range map[string]float64{"searches": 1.5, "clicks": 1.5, "purchases": 0.5, "cut_pages": 1} {
		require.EqualValues(t, want, RolloutMetrics(one, rows)["train/webshop/"+name], name)
		require.EqualValues(t, want, EvaluationMetrics(one, rows)[name], name)
	}
	both := &Task{Groups: 1, Members: 2, Parts: envs.Mixture{{Label: "webshop", Environment: shop, Share: 1}, {Label: "frozenlake", Environment: lake, Share: 1}}}
	metrics := EvaluationMetrics(both, []episode.TrajectoryRow{bought("webshop"), walked})
	require.EqualValues(t, 1, metrics["webshop/purchases"])
	require.NotContains(t, metrics, "purchases")
	require.NotContains(t, metrics, "frozenlake/purchases")
	require.Contains(t, metrics, "frozenlake/num_actions")
}

// Calls of tools are means an episode, and the valid ones a share of the calls.
func TestToolMetrics(t *testing.T) {
	env, err := envs.New("countdown", []byte(`{"calculator":3}`))
	require.NoError(t, err)
	task := &Task{Groups: 1, Members: 2, Parts: envs.Mixture{{Label: "countdown", Environment: env, Share: 1}}}
	row := func(actions ...string) episode.TrajectoryRow {
		return episode.TrajectoryRow{
			Environment: "countdown", Actions: actions, StateKeys: make([]string, 4),
			SampledLengths: []int32{1, 1, 1}, PromptLengths: []int32{1, 1, 1}, IDs: make([]int32, 6), Rewards: make([]float64, 3), Penalties: make([]float64, 3), Executed: []int32{1, 1, 1},
		}
	}
	rows := []episode.TrajectoryRow{row("calculate 1+2", "calculate ?", "1+2"), row("calculate 1/0", "calculate 3", "3")}
	for name, want := range map[string]float64{"calculate_calls": 2, "call_is_valid": 0.5} {
		require.EqualValues(t, want, RolloutMetrics(task, rows)["train/countdown/"+name], name)
		require.EqualValues(t, want, EvaluationMetrics(task, rows)[name], name)
	}
	metrics := EvaluationMetrics(task, []episode.TrajectoryRow{row("1+2", "", ""), row("3", "", "")})
	require.EqualValues(t, 0, metrics["calculate_calls"])
	require.NotContains(t, metrics, "call_is_valid")
}

// A group is chosen if any of its members is, wherever it stands.
func TestChosenGroups(t *testing.T) {
	env, err := envs.New("bandit", nil)
	require.NoError(t, err)
	task := &Task{Groups: 2, Members: 2, Parts: envs.Mixture{{Label: "bandit", Environment: env, Share: 1}}}
	row := func(group int32, reward float64, selected bool) episode.TrajectoryRow {
		return episode.TrajectoryRow{
			Environment: "bandit", Group: group, Selected: selected, Actions: []string{"A"}, StateKeys: make([]string, 2),
			SampledLengths: []int32{1}, PromptLengths: []int32{1}, IDs: make([]int32, 2), Rewards: []float64{reward}, Penalties: make([]float64, 1), Executed: []int32{1},
		}
	}
	rows := []episode.TrajectoryRow{row(0, 2, true), row(0, 0, false), row(1, 8, false), row(1, 0, false)}
	require.InDelta(t, math.Sqrt2, float64(RolloutMetrics(task, rows)["rollout/chosen_in_group_reward_std"]), 1e-12)
	rows[2].Selected, rows[3].Selected = true, true
	require.InDelta(t, 5/math.Sqrt2, float64(RolloutMetrics(task, rows)["rollout/chosen_in_group_reward_std"]), 1e-12)
}

// counted is a row with figures of its own: each sum over rows is told from each other one.
func counted(row, group int32, label string, success bool, executed, effective, invalid []int32, rewards ...float64) episode.TrajectoryRow {
	r := episode.TrajectoryRow{
		Row: row, Group: group, Environment: label, Success: success, Valid: row != 1, Truncated: row == 2 || row == 5, Rewards: rewards, Penalties: make([]float64, len(rewards)),
		Executed: executed, Effective: effective, Invalid: invalid, Actions: make([]string, len(rewards)), StateKeys: make([]string, len(rewards)+1), PromptLengths: make([]int32, len(rewards)),
	}
	r.Penalties[0] = -0.5
	for k := range rewards {
		r.SampledLengths = append(r.SampledLengths, row+1)
		for n := range row + 1 {
			r.IDs, r.RolloutLogProbs = append(r.IDs, 100*row+10*int32(k)+n), append(r.RolloutLogProbs, -float32(row))
		}
	}
	return r
}

// mixedRows are three groups of two, the third of a second round. Its last row is dropped.
func mixedRows() []episode.TrajectoryRow {
	return []episode.TrajectoryRow{
		counted(0, 0, "a", true, []int32{2, 0}, []int32{1, 0}, []int32{0, 1}, 1, 3), counted(1, 0, "a", false, []int32{1}, []int32{1}, []int32{3}, 2),
		counted(2, 1, "b", false, []int32{3}, []int32{1}, []int32{1}, 0), counted(3, 1, "b", false, []int32{0}, []int32{0}, []int32{2}, 0),
		counted(4, 2, "a", true, []int32{1, 1, 2}, []int32{1, 0, 2}, []int32{0, 0, 0}, 2, 0, 8), {Row: 5, Group: 2, Environment: "a", Dropped: true},
	}
}

func figures(t *testing.T, want map[string]float64, got activities.Metrics) {
	t.Helper()
	for name, w := range want {
		require.Contains(t, got, name)
		require.InDelta(t, w, float64(got[name]), 1e-12, name)
	}
}

// The figures of a rollout are over the rows of all rounds that are left, by environment and together.
func TestRolloutMetrics(t *testing.T) {
	task := &Task{Groups: 3, Members: 2, Parts: envs.Mixture{{Label: "a"}, {Label: "b"}}}
	rows := mixedRows()
	rows[1].Selected, rows[4].Selected = true, true
	m := RolloutMetrics(task, rows)
	figures(t, map[string]float64{
		"rollout/trajectories": 5, "rollout/selected_rows": 2,
		// penalised returns: 3.5 and 1.5, −0.5 twice, 9.5 alone
		"rollout/in_group_reward_std": math.Sqrt2 / 3, "rollout/chosen_in_group_reward_std": math.Sqrt2 / 2,
		"rollout/executable_turns": 6.0 / 8, "turns/mean": 8.0 / 5,
		"reward/mean": (4 + 2 + 0 + 0 + 10) / 5.0, "reward/penalised_mean": (4+2+0+0+10)/5.0 - .5, "success/mean": 2.0 / 5, "valid/mean": 4.0 / 5, "truncated/mean": 1.0 / 5,
		"response_length/mean": (2 + 2 + 3 + 4 + 15) / 5.0,
		"train/a/success":      2.0 / 3, "train/a/reward": 16.0 / 3, "train/a/pass@2": 1, "train/a/num_actions": 7.0 / 3, "train/a/action_is_effective": 5.0 / 7, "train/a/action_is_valid": 7.0 / 11,
		"train/b/success": 0, "train/b/reward": 0, "train/b/pass@2": 0, "train/b/num_actions": 3.0 / 2, "train/b/action_is_effective": 1.0 / 3, "train/b/action_is_valid": 3.0 / 6,
		"rollout/distinct_1": 1,
	}, m)
	// Sums over the groups are those over the rows.
	require.InDelta(t, float64(m["reward/mean"])*5, float64(m["train/a/reward"])*3+float64(m["train/b/reward"])*2, 1e-12)

	// Texts are compared by what was sampled, and not by prompts.
	same := []episode.TrajectoryRow{counted(1, 0, "a", false, []int32{1}, []int32{1}, []int32{0}, 1), counted(1, 0, "a", false, []int32{1}, []int32{1}, []int32{0}, 1)}
	require.EqualValues(t, .5, RolloutMetrics(task, same)["rollout/distinct_1"])
	for i := range same {
		same[i].PromptLengths, same[i].IDs = []int32{1}, append([]int32{int32(900 + i)}, same[i].IDs...)
	}
	require.EqualValues(t, .5, RolloutMetrics(task, same)["rollout/distinct_1"])
}

// Figures are the same to the bit, however often they are computed: no order of a map is in their sums.
func TestFiguresAreTheSame(t *testing.T) {
	task := &Task{Groups: 3, Members: 2, Parts: envs.Mixture{{Label: "a"}, {Label: "b"}}}
	rows := mixedRows()
	for i := range rows[:5] {
		for k := range rows[i].Rewards {
			rows[i].Rewards[k] += 0.1 * float64(i+k)
		}
	}
	var first []byte
	for range repeats {
		b, err := canon.Marshal([]activities.Metrics{RolloutMetrics(task, rows), EvaluationMetrics(task, rows)})
		require.NoError(t, err)
		if first == nil {
			first = b
		}
		require.Equal(t, string(first), string(b))
	}
}

// The entropy is over all sampled tokens of all rows.
func TestEntropyMetrics(t *testing.T) {
	require.Equal(t, activities.Metrics{"actor/entropy": 3}, EntropyMetrics([]episode.ScoreRow{{Entropies: []float32{1, 2}}, {Entropies: []float32{6}}, {}}))
	require.Equal(t, activities.Metrics{"actor/entropy": 0}, EntropyMetrics(nil))
}

// An evaluation's figures are by instance: pass@k of as many samples as each has, at powers of two and at all.
func TestEvaluationMetrics(t *testing.T) {
	task := &Task{Groups: 3, Members: 3, Parts: envs.Mixture{{Label: "a"}, {Label: "b"}}}
	var rows []episode.TrajectoryRow
	for i, success := range []bool{true, false, false, false, false, false, true, true, false} {
		label := "a"
		if i >= 6 {
			label = "b"
		}
		r := counted(int32(i), int32(i/3), label, success, []int32{1}, []int32{1}, []int32{1}, float64(i))
		rows = append(rows, r)
	}
	rows[8] = episode.TrajectoryRow{Row: 8, Group: 2, Environment: "b", Dropped: true}
	m := EvaluationMetrics(task, rows)
	figures(t, map[string]float64{
		"trajectories": 8, "success/mean": 3.0 / 8, "reward/mean": 28.0 / 8, "num_actions": 1, "action_is_valid": .5,
		// solved 1 of 3, 0 of 3, 2 of 2
		"pass@1": (1.0/3 + 0 + 1) / 3, "pass@2": (2.0/3 + 0 + 1) / 3, "pass@3": (1.0 + 0) / 2, // an instance with two samples has no pass@3
		"a/success": 1.0 / 6, "a/reward": 15.0 / 6, "b/success": 1, "b/reward": 13.0 / 2, "b/num_actions": 1,
		// row i has i + 1 tokens of log-prob −i
		"entropy/mean": (0 + 2 + 6 + 12 + 20 + 30 + 42 + 56) / 36.0,
	}, m)
	require.NotContains(t, m, "pass@4")
	require.Less(t, float64(m["success/low"]), 3.0/8)
	require.Greater(t, float64(m["success/high"]), 3.0/8)

	task = &Task{Groups: 3, Members: 1, Parts: envs.Mixture{{Label: "a"}}}
	m = EvaluationMetrics(task, rows[:3])
	require.NotContains(t, m, "pass@1", "one sample of an instance")
	require.NotContains(t, m, "a/success")
}

// Means and shares of nothing are 0.
func TestMeans(t *testing.T) {
	require.Equal(t, []float64{0, 2, 0, .25, 0}, []float64{Mean(nil), Mean([]float64{1, 2, 3}), share(0, 0), share(1, 4), share(0, 3)})
	require.Equal(t, 6, episode.Total([]int32{1, 2, 3}))
}

// What was searched and not kept, and what trajectories share with those before them, is counted.
func TestMetricsOfChosenTurns(t *testing.T) {
	m := activities.Metrics{}
	SearchedMetrics(m, episode.Searched{Turns: 3, Tokens: 9})
	InheritedMetrics(m, []episode.TrajectoryRow{{SampledLengths: []int32{8, 2}}, {SampledLengths: []int32{8, 16}}}, []episode.BranchRow{{}, {Turn: 1}, {Row: 1, Inherited: true}, {Row: 1, Turn: 1}})
	require.Equal(t, activities.Metrics{
		"rollout/searched_turns": canon.Float(3), "rollout/searched_tokens": canon.Float(9),
		"rollout/inherited_turns": canon.Float(1), "rollout/inherited_tokens": canon.Float(8),
	}, m)
}
