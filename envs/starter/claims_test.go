package starter

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/rewards"
)

// Random claims have the form that the reward `state` reads, are about what the environment
// has, and say every side; a reply with them is as short as a policy's may be.
func TestClaims(t *testing.T) {
	tok := mustOf(t, Second)
	env := mustEnv(t, "frozenlake", `{"size":2,"slippery":false,"max_actions_per_turn":2}`)
	p := envs.Protocol{Think: true}
	o := Options{Turns: 1, Objects: rewards.Objects(env.Name())}
	require.Equal(t, []string{"goal", "hole"}, o.Objects)
	require.Nil(t, rewards.Objects("bandit"))
	claims := map[string]int{}
	for _, row := range stepsOf(t, tok, env, p, o, 8, 32) {
		sampled := 0
		for _, yes := range row.Loss {
			if yes {
				sampled++
			}
		}
		require.LessOrEqual(t, sampled, 32)
		for _, reply := range replies(tok, env, p, row) {
			said := rewards.Tagged(reply.Thought)
			require.Len(t, said, 2, reply.Thought)
			require.NotEmpty(t, reply.Actions)
			for _, s := range said {
				require.Len(t, rewards.Relations(s.Text), 1, s.Text)
				claims[s.Text]++
			}
		}
	}
	require.Len(t, claims, 2*3*3)
	plain := stepsOf(t, tok, env, p, Options{Turns: 1}, 1, 4)
	require.Empty(t, rewards.Tagged(replies(tok, env, p, plain[0])[0].Thought))
}
