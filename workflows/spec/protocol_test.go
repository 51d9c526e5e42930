package spec

import (
	"strings"
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

// Texts end turns by default with every policy but the starter, whose spec has no such key. An empty array
// turns them off and is written down; suites and evaluations follow the run.
func TestStopAt(t *testing.T) {
	resolve := func(policy, rollout, suite string) Train {
		train, err := Decode([]byte(`{"policy":{"from":"`+policy+`"},"environment":{"name":"bandit"},"rollout":{`+rollout+`},"evaluation":{"suites":[{"suite":"in-distribution"`+suite+`}]}}`), Known{})
		require.NoError(t, err)
		b, err := train.JSON()
		require.NoError(t, err)
		again, err := Decode(b, Known{})
		require.NoError(t, err)
		require.Equal(t, train, again, "a resolved spec is read back as it is")
		require.Equal(t, train.Rollout.StopAt != nil, strings.Contains(string(b), `"stop_at"`))
		return train
	}
	const loaded = "hf:a/b"
	answer := []string{"</answer>"}
	require.Nil(t, resolve(FromStarter, ``, ``).Rollout.StopAt)
	require.Equal(t, answer, resolve(FromStarter, `"stop_at":["</answer>"]`, ``).Rollout.StopAt)
	plain := resolve(loaded, ``, ``)
	require.Equal(t, answer, plain.Rollout.StopAt)
	require.Equal(t, answer, plain.Evaluation.Suites[0].StopAt)
	off := resolve(loaded, `"stop_at":[]`, ``)
	require.Empty(t, off.Rollout.StopAt)
	require.NotNil(t, off.Rollout.StopAt)
	require.Empty(t, off.Evaluation.Suites[0].StopAt)
	own := resolve(loaded, `"stop_at":[]`, `,"stop_at":["\n\n","x"]`)
	require.Equal(t, []string{"\n\n", "x"}, own.Evaluation.Suites[0].StopAt)

	evaluated := func(run *Train, text string) []string {
		e, err := DecodeEvaluate([]byte(text), Known{Suites: []string{"far"}})
		require.NoError(t, err)
		train, err := e.WithSuites(run, Known{Suites: []string{"far"}, Suite: func(string) (Environment, bool) { return Environment{Name: "bandit"}, true }})
		require.NoError(t, err)
		if run == nil {
			require.Equal(t, train.Evaluation.Suites[0].StopAt, train.Rollout.StopAt)
		}
		return train.Evaluation.Suites[0].StopAt
	}
	starter := resolve(FromStarter, ``, ``)
	require.Nil(t, evaluated(&starter, `{"policy":"run"}`))
	require.Nil(t, evaluated(&starter, `{"policy":"run","suites":["far"]}`))
	require.Equal(t, answer, evaluated(&plain, `{"policy":"run","suites":["far"]}`))
	require.Equal(t, []string{"x"}, evaluated(&plain, `{"policy":"run","stop_at":["x"]}`))
	require.Equal(t, answer, evaluated(nil, `{"policy":"hf:a/b","suites":["far"]}`))
	require.Empty(t, evaluated(nil, `{"policy":"hf:a/b","suites":["far"],"stop_at":[]}`))

	for _, bad := range []string{`"x"`, `null`, `[""]`, `[1]`, `["x","x"]`, `["a","b","c","d","e","f","g","h","i"]`, `["` + strings.Repeat("x", 65) + `"]`} {
		_, err := Decode([]byte(`{"environment":{"name":"bandit"},"rollout":{"stop_at":`+bad+`}}`), Known{})
		require.ErrorContains(t, err, "rollout.stop_at", bad)
		require.ErrorContains(t, err, "an array of up to 8 different texts, each of 1 to 64 bytes", bad)
	}
	for _, good := range []string{`["a","b","c","d","e","f","g","h"]`, `["` + strings.Repeat("x", 64) + `"]`} {
		require.Len(t, resolve(loaded, `"stop_at":`+good, ``).Rollout.StopAt, strings.Count(good, `"`)/2)
	}
}
