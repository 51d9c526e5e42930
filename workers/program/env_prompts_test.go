package program

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/strict"
)

func TestEnvPrompts(t *testing.T) {
	shown := func(arguments ...string) (string, error) {
		var out bytes.Buffer
		cmd := envPromptsCommand()
		cmd.SetArgs(arguments)
		cmd.SetOut(&out)
		cmd.SilenceUsage, cmd.SilenceErrors = true, true
		err := cmd.Execute()
		return out.String(), err
	}
	got, err := shown("--env", "frozenlake", "--options", `{"size":3,"success_rate":1}`)
	require.NoError(t, err)
	require.Contains(t, got, "[system]\nYou are a helpful assistant.\n\n[user]\n")
	require.Contains(t, got, "Turn 1:\n")
	require.Contains(t, got, "[assistant]\n<think>…</think><answer>")
	require.Contains(t, got, "[user]\nReward: ")
	require.Contains(t, got, "Turn 2:\n")
	require.Contains(t, got, "[assistant begins after <think>]\n")

	got, err = shown("--env", "bandit", "--think=false")
	require.NoError(t, err)
	require.NotContains(t, got, "Turn 2", "one action is the whole episode")
	require.Contains(t, got, "[assistant begins after <answer>]\n")

	// Other wordings, and an episode that ends.
	words := filepath.Join("..", "..", "docs", "own", "words.txt")
	ours, err := shown("--env", "frozenlake", "--options", `{"size":3,"success_rate":1}`)
	require.NoError(t, err)
	own, err := shown("--env", "frozenlake", "--options", `{"size":3,"success_rate":1}`, "--protocol", "file:"+words)
	require.NoError(t, err)
	require.Equal(t, ours, own, "the example has our words")
	ragen, err := shown("--env", "frozenlake", "--protocol", "ragen", "--max-new-tokens", "77")
	require.NoError(t, err)
	require.Contains(t, ragen, "77")
	ended, err := shown("--env", "bandit", "Phoenix || Dragon")
	require.NoError(t, err)
	require.Contains(t, ended, "[assistant]\n<think>…</think><answer>Phoenix</answer>", "at most the actions of a turn")
	require.Contains(t, ended, "[the episode has ended: reward ")

	goals, err := shown("--env", "frozenlake", "--subgoals")
	require.NoError(t, err)
	require.Contains(t, goals, "Reply: <think> <switch> KEEP or SWITCH </switch> <subgoal> your subgoal </subgoal> </think><answer> your action </answer>")
	require.Contains(t, goals, "[assistant]\n<think> <switch> SWITCH </switch>")
	for _, other := range []string{"--think=false", "--protocol=ragen", "--protocol=vagen"} {
		_, err = shown("--env", "bandit", "--subgoals", other)
		require.ErrorContains(t, err, "--subgoals: a subgoal stands in a thought", other)
	}
	examples, err := shown("--env", "frozenlake", "--protocol", "examples")
	require.NoError(t, err)
	require.Contains(t, examples, "Reply like this:\n<think> I look at the state and choose. </think><answer> Right || Down </answer>\n")
	_, err = shown("--env", "frozenlake", "--protocol", "hiper", "--subgoals")
	require.NoError(t, err)
	_, err = shown("--env", "frozenlake", "--protocol", "hiper")
	require.ErrorContains(t, err, "add --subgoals")
	_, err = shown("--env", "frozenlake", "--protocol", "vagen", "--think=false")
	require.ErrorContains(t, err, "asks for a thought")

	_, err = shown("--env", "bandit", "--protocol", "french")
	require.ErrorContains(t, err, "want examples, hiper, ragen, reprise, vagen or file:PATH")
	_, err = shown("--env", "bandit", "--protocol", "file:env.go")
	var problems strict.Problems
	require.ErrorAs(t, err, &problems)
}
