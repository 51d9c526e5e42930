package spec_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/workflows/spec"
)

func TestRewards(t *testing.T) {
	known := spec.Known{
		Environments: []string{"bandit"}, Rewards: []string{"length", "progress"},
		Reward: func(r spec.Reward, e spec.Environment, think bool) []spec.Problem {
			if r.Name == "progress" {
				return []spec.Problem{{Path: "name", Found: r.Name + " with " + e.Name, Allowed: "a grid"}}
			}
			if string(r.Options) != "{}" {
				return []spec.Problem{{Path: "options.of", Found: string(r.Options), Allowed: "reply"}}
			}
			return nil
		},
	}
	decode := func(rewards string) (spec.Train, error) {
		return spec.Decode([]byte(`{"environment":{"name":"bandit"},"rewards":`+rewards+`}`), known)
	}
	got, err := decode(`[{"name":"length"}]`)
	require.NoError(t, err)
	require.Equal(t, []spec.Reward{{Name: "length", Weight: 1, Options: []byte(`{}`)}}, got.Rewards)
	b, err := got.JSON()
	require.NoError(t, err)
	again, err := spec.Decode(b, known)
	require.NoError(t, err)
	require.Equal(t, got, again)
	for rewards, want := range map[string]string{
		`[{"name":"lenght"}]`:                    `rewards[0].name`,
		`[{"weight":2}]`:                         `rewards[0].name`,
		`[{"name":"length"},{"name":"length"}]`:  `a second time`,
		`[{"name":"progress"}]`:                  `progress with bandit`,
		`[{"name":"length","options":{"of":1}}]`: `rewards[0].options.of`,
		`[{"name":"length","weight":"much"}]`:    `rewards[0].weight`,
		`[]`:                                     `rewards`,
	} {
		_, err := decode(rewards)
		require.ErrorContains(t, err, want, rewards)
	}
	plain, err := spec.Decode([]byte(`{"environment":{"name":"bandit"}}`), known)
	require.NoError(t, err)
	b, err = plain.JSON()
	require.NoError(t, err)
	require.NotContains(t, string(b), "rewards")
	require.NotContains(t, string(b), "thoughts")
}
