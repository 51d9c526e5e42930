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

	mixed := resolve(`"protocol":"ragen"`, `,"protocol":"reprise"`)
	require.Equal(t, "reprise", mixed.Evaluation.Suites[0].Protocol, "left out, it would be the run's")
	b, err = mixed.JSON()
	require.NoError(t, err)
	again, err := Decode(b, Known{})
	require.NoError(t, err)
	require.Equal(t, mixed, again)
}

// Another policy than the starter reads examples unless its spec says otherwise, and a resolved spec
// always says what it reads.
func TestProtocolOfAModel(t *testing.T) {
	resolve := func(rollout, suite string) Train {
		train, err := Decode([]byte(`{"policy":{"from":"folder:/m"},"environment":{"name":"bandit"},"rollout":{`+rollout+`},"evaluation":{"suites":[{"suite":"in-distribution"`+suite+`}]}}`), Known{})
		require.NoError(t, err)
		b, err := train.JSON()
		require.NoError(t, err)
		again, err := Decode(b, Known{})
		require.NoError(t, err)
		require.Equal(t, train, again)
		return train
	}
	for _, c := range []struct{ rollout, suite, run, measured string }{
		{``, ``, "examples", "examples"},
		{`"protocol":"reprise"`, ``, "reprise", "reprise"},
		{``, `,"protocol":"reprise"`, "examples", "reprise"},
		{`"protocol":"ragen"`, ``, "ragen", "ragen"},
	} {
		train := resolve(c.rollout, c.suite)
		require.Equal(t, c.run, train.Rollout.Protocol, c)
		require.Equal(t, c.measured, train.Evaluation.Suites[0].Protocol, c)
	}

	e, err := DecodeEvaluate([]byte(`{"policy":"folder:/m","suites":[{"environment":{"name":"bandit"}}]}`), Known{})
	require.NoError(t, err)
	measured, err := e.WithSuites(nil, Known{})
	require.NoError(t, err)
	require.Equal(t, "examples", measured.Evaluation.Suites[0].Protocol)

	// An evaluation of a starter's run that names our wording is the evaluation that names none.
	starter, err := Decode([]byte(`{"environment":{"name":"bandit"}}`), Known{})
	require.NoError(t, err)
	for _, suites := range []string{``, `,"suites":["in-distribution"]`} {
		e, err := DecodeEvaluate([]byte(`{"policy":"run-1","protocol":"reprise"`+suites+`}`), Known{})
		require.NoError(t, err)
		measured, err := e.WithSuites(&starter, Known{})
		require.NoError(t, err)
		require.Equal(t, starter.Evaluation.Suites, measured.Evaluation.Suites)
	}
}
