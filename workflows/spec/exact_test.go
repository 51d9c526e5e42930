package spec

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/methods/methodstest"
)

// The sampler's scores do where no other policy and no other network is asked about the rows.
func TestScoredBySampler(t *testing.T) {
	for fields, want := range map[string]bool{
		``:                            true,
		`"policy": {"exact": false}`:  false,
		`"update": {"kl_in": "loss"}`: false,
		`"update": {"kl_in": "reward", "kl_estimator": "k1"}, "credit": {"algorithm": "gae"}`: false,
		`"credit": {"algorithm": "gae"}`:                                         false,
		`"credit": {"algorithm": "optimal_token_baseline"}`:                      false,
		`"credit": {"algorithm": "grpo"}`:                                        true,
		`"update": {"mismatch": {"regime": "decoupled"}}`:                        true,
		`"rollout": {"lag": 1}, "update": {"mismatch": {"regime": "decoupled"}}`: false,
		`"freshness": {"online": 2}`:                                             true,
		`"selection": {"metric": "exact_entropy"}`:                               true,
	} {
		document := strings.TrimSuffix(`{"iterations": 4, "environment": {"name": "bandit"}, `+fields, ", ") + "}"
		if methodstest.Without(fields) {
			continue
		}
		got, err := Decode([]byte(document), Known{Environments: []string{"bandit"}})
		require.NoError(t, err, fields)
		require.Equal(t, want, got.ScoredBySampler(), fields)
	}
}
