package run

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs"
	_ "github.com/reprise-rl/reprise/envs/all"
)

// An environment's own figures are means an episode, under its label in rollouts and in
// mixtures; other environments have none.
func TestCountedMetrics(t *testing.T) {
	shop, err := envs.New("webshop", []byte(`{"catalogue":"starter"}`))
	require.NoError(t, err)
	lake, err := envs.New("frozenlake", nil)
	require.NoError(t, err)
	bought := func(label string) TrajectoryRow {
		return TrajectoryRow{
			Environment: label, Actions: []string{"search[hat]", "", "click[p01] || click[buy now]"}, StateKeys: []string{"a", "b cut", "c", "d cut"},
			SampledLengths: []int32{1, 1, 1}, PromptLengths: []int32{1, 1, 1}, IDs: make([]int32, 6), Rewards: []float64{0, 0, 1}, Penalties: make([]float64, 3), Executed: []int32{1, 0, 2},
		}
	}
	walked := bought("frozenlake")
	walked.Actions = []string{"Up", "Up", "Up"}
	wandered := bought("webshop")
	wandered.Actions = []string{"search[hat]", "click[back to search]", "search[cup]"}
	one := &Task{Groups: 1, Members: 2, Parts: envs.Mixture{{Label: "webshop", Environment: shop, Share: 1}}}
	rows := []TrajectoryRow{bought("webshop"), wandered}
	for name, want := range map[string]float64{"searches": 1.5, "clicks": 1.5, "purchases": 0.5, "cut_pages": 1} {
		require.EqualValues(t, want, RolloutMetrics(one, rows)["train/webshop/"+name], name)
		require.EqualValues(t, want, EvaluationMetrics(one, rows)[name], name)
	}
	both := &Task{Groups: 1, Members: 2, Parts: envs.Mixture{{Label: "webshop", Environment: shop, Share: 1}, {Label: "frozenlake", Environment: lake, Share: 1}}}
	metrics := EvaluationMetrics(both, []TrajectoryRow{bought("webshop"), walked})
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
	row := func(actions ...string) TrajectoryRow {
		return TrajectoryRow{
			Environment: "countdown", Actions: actions, StateKeys: make([]string, 4),
			SampledLengths: []int32{1, 1, 1}, PromptLengths: []int32{1, 1, 1}, IDs: make([]int32, 6), Rewards: make([]float64, 3), Penalties: make([]float64, 3), Executed: []int32{1, 1, 1},
		}
	}
	rows := []TrajectoryRow{row("calculate 1+2", "calculate ?", "1+2"), row("calculate 1/0", "calculate 3", "3")}
	for name, want := range map[string]float64{"calculate_calls": 2, "call_is_valid": 0.5} {
		require.EqualValues(t, want, RolloutMetrics(task, rows)["train/countdown/"+name], name)
		require.EqualValues(t, want, EvaluationMetrics(task, rows)[name], name)
	}
	metrics := EvaluationMetrics(task, []TrajectoryRow{row("1+2", "", ""), row("3", "", "")})
	require.EqualValues(t, 0, metrics["calculate_calls"])
	require.NotContains(t, metrics, "call_is_valid")
}

// A group is chosen if any of its members is, wherever it stands.
func TestChosenGroups(t *testing.T) {
	env, err := envs.New("bandit", nil)
	require.NoError(t, err)
	task := &Task{Groups: 2, Members: 2, Parts: envs.Mixture{{Label: "bandit", Environment: env, Share: 1}}}
	row := func(group int32, reward float64, selected bool) TrajectoryRow {
		return TrajectoryRow{
			Environment: "bandit", Group: group, Selected: selected, Actions: []string{"A"}, StateKeys: make([]string, 2),
			SampledLengths: []int32{1}, PromptLengths: []int32{1}, IDs: make([]int32, 2), Rewards: []float64{reward}, Penalties: make([]float64, 1), Executed: []int32{1},
		}
	}
	rows := []TrajectoryRow{row(0, 2, true), row(0, 0, false), row(1, 8, false), row(1, 0, false)}
	require.InDelta(t, math.Sqrt2, float64(RolloutMetrics(task, rows)["rollout/chosen_in_group_reward_std"]), 1e-12)
	rows[2].Selected, rows[3].Selected = true, true
	require.InDelta(t, 5/math.Sqrt2, float64(RolloutMetrics(task, rows)["rollout/chosen_in_group_reward_std"]), 1e-12)
}
