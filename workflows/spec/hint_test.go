package spec

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/methods/methodstest"
)

// What other programs call a field or a method is understood, in specs, commands and sweeps alike.
func TestHints(t *testing.T) {
	for name, path := range elsewhere {
		require.NotNil(t, byPath(path), "%s: %s is no field", name, path)
	}
	for document, want := range map[string]string{
		`"credit":{"algorithm":"ppo"}`:                  `did you mean "gae"?`,
		`"credit":{"algorithm":"PPO"}`:                  `did you mean "gae"?`,
		`"credit":{"algorithm":"rloo"}`:                 `did you mean "leave_one_out"?`,
		`"selection":{"method":"SNR-adaptive"}`:         `did you mean "top_p"?`,
		`"credit":{"algorithm":"reinforce++"}`:          `did you mean "reinforce_pp"?`,
		`"credit":{"algorithm":"reinforce++-baseline"}`: `did you mean "reinforce_pp_baseline"?`,
		`"credit":{"algorithm":"gppo"}`:                 `did you mean "grpo"?`,
		`"update":{"lr":0.1}`:                           `did you mean "learning_rate"?`,
		`"lr":0.1`:                                      `did you mean "update.learning_rate"?`,
		`"update":{"kl_coef":0.1}`:                      `did you mean "kl_coefficient"?`,
		`"update":{"num_generations":8}`:                `did you mean "rollout.group_size"?`,
		`"rollout":{"max_turn":3}`:                      `did you mean "turns"?`,
		`"update":{"learning_rat":0.1}`:                 `did you mean "learning_rate"?`,
		`"update":{"something_of_nobody":0.1}`:          "",
	} {
		if methodstest.Whole() {
			require.Equal(t, want, problemsOf(t, document)[0].Hint, document)
		}
	}
	for path, want := range map[string]string{
		"update.lr": `did you mean "update.learning_rate"?`, "lr": `did you mean "update.learning_rate"?`,
		"learning_rate": `did you mean "update.learning_rate" or "critic.learning_rate"?`,
	} {
		_, err := Settings{}.Apply(Change{Path: path, Value: []byte("1")})
		require.ErrorContains(t, err, want, path)
	}
}
