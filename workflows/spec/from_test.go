package spec_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/workflows/spec"
)

// The iteration of a fork has no default: 0 is an iteration like the others.
func TestFromNamesIteration(t *testing.T) {
	const document = `{"environment":{"name":"bandit"},"rollout":{"turns":1},"from":`
	_, err := spec.Decode([]byte(document+`{"run":"bandit-1"}}`), known)
	require.EqualError(t, err, "1 problem:\n  from.iteration: found nothing; allowed: an iteration that run bandit-1 has committed (it has no default)")
	train := decode(t, document+`{"run":"bandit-1","iteration":0}}`)
	require.Equal(t, &spec.From{Run: "bandit-1", Branch: -1}, train.From)
	require.NoError(t, spec.Validate(train, known))
	_, err = spec.Decode([]byte(document+`{"run":"bandit-1","iteration":"new"}}`), known)
	require.ErrorContains(t, err, "1 problem:\n")
}
