package spec_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/workflows/spec"
)

func TestStopSuccess(t *testing.T) {
	const bandit = `{"environment":{"name":"bandit"}`
	train := decode(t, bandit+`,"stop":{"success":{"at_least":0.9,"for":3}}}`)
	require.Equal(t, spec.StopSuccess{AtLeast: 0.9, For: 3}, train.Stop.Success)
	b, err := decode(t, bandit+`}`).JSON()
	require.NoError(t, err)
	require.NotContains(t, string(b), `"stop":`)
	for _, alone := range []string{`"at_least":0.9`, `"for":3`} {
		_, err := spec.Decode([]byte(bandit+`,"stop":{"success":{`+alone+`}}}`), known)
		require.EqualError(t, err, `1 problem:
  stop.success.at_least: found one of the two; allowed: both, as {"at_least": 0.95, "for": 5}`)
	}
}
