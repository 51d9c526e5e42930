package spec

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Our wording is left out of a spec, also where it is written; suites follow the run.
func TestProtocolIsLeftOut(t *testing.T) {
	resolve := func(rollout, suite string) Train {
		train, err := Decode([]byte(`{"seed":1,"environment":{"name":"bandit"},"rollout":{`+rollout+`},"evaluation":{"suites":[{"suite":"in-distribution"`+suite+`}]}}`), Known{})
		require.NoError(t, err)
		return train
	}
	plain, written := resolve(``, ``), resolve(`"protocol":"reprise"`, `,"protocol":"reprise"`)
	require.Equal(t, plain, written)
	b, err := written.JSON()
	require.NoError(t, err)
	require.NotContains(t, string(b), `"protocol"`)

	ragen := resolve(`"protocol":"ragen"`, ``)
	require.Equal(t, "ragen", ragen.Rollout.Protocol)
	require.Equal(t, "ragen", ragen.Evaluation.Suites[0].Protocol)
	require.Empty(t, resolve(`"protocol":"ragen"`, `,"protocol":"reprise"`).Evaluation.Suites[0].Protocol)
}
