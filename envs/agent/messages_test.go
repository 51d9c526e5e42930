package agent

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReadResult(t *testing.T) {
	episode, r, err := readResult([]byte(`{"episode":"7","reward":0.5,"success":true,"metrics":{"searches":3}}`))
	require.NoError(t, err)
	require.Equal(t, "7", episode)
	require.Equal(t, Result{Reward: 0.5, Success: true, Metrics: map[string]float64{"searches": 3}}, r)
	_, r, err = readResult([]byte(`{"error":"no mood"}`))
	require.NoError(t, err)
	require.Equal(t, Result{Error: "no mood"}, r)
	for text, want := range map[string]string{
		`hello`:                                 "want a JSON object",
		`[]`:                                    "want a JSON object",
		`{}`:                                    "an answer has a reward, or an error",
		`{"reward":1,"error":"x"}`:              "has no reward",
		`{"reward":"1"}`:                        `reward is`,
		`{"reward":1e7}`:                        "want a number from -1e+06 to 1e+06",
		`{"reward":1,"reward":2}`:               "stands twice",
		`{"reward":1,"success":1}`:              "want true or false",
		`{"reward":1,"done":true}`:              `unknown field "done"`,
		`{"reward":1,"metrics":[1]}`:            "want an object of numbers",
		`{"reward":1,"metrics":{"A":1}}`:        "lower-case letters",
		`{"reward":1,"metrics":{"a":"x"}}`:      "metrics.a is",
		`{"reward":1,"metrics":{"a":1,"a":1}}`:  "twice",
		`{"error":""}`:                          "a text that is not empty",
		`{"reward":1,"metrics":{"a":{"b":{}}}}`: "",
	} {
		_, _, err := readResult([]byte(text))
		require.ErrorContains(t, err, want, text)
	}
	_, r, err = readResult([]byte(`{"error":"` + strings.Repeat("x", 5000) + `"}`))
	require.NoError(t, err)
	require.Len(t, r.Error, MaxError)
}

func FuzzReadResult(f *testing.F) {
	f.Add([]byte(`{"episode":"7","reward":0.5,"success":true,"metrics":{"searches":3}}`))
	f.Add([]byte(`{"error":"\ud800"}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		_, r, err := readResult(line)
		if err == nil && r.Error == "" && (r.Reward > MaxReward || r.Reward < -MaxReward || r.Reward != r.Reward) {
			t.Fatalf("reward %v", r.Reward)
		}
	})
}

func TestFlags(t *testing.T) {
	t.Setenv("AGENT_KEY", "x")
	got, err := Flags{Agents: []string{"solver=python solver.py --fast", "far=https://example.com/play?key=1"}, Variables: []string{"solver=AGENT_KEY"}}.Programs()
	require.NoError(t, err)
	require.Equal(t, []Program{
		{Name: "solver", Command: []string{"python", "solver.py", "--fast"}, Variables: []string{"AGENT_KEY"}},
		{Name: "far", URL: "https://example.com/play?key=1"},
	}, got)
	for _, c := range []struct {
		flags Flags
		want  string
	}{
		{Flags{Agents: []string{"solver"}}, "--agent: found \"solver\", want NAME=COMMAND or NAME=URL"},
		{Flags{Agents: []string{"Solver=x"}}, "--agent: found the name \"Solver\""},
		{Flags{Agents: []string{"a=https://user@host/"}}, "without user"},
		{Flags{Agents: []string{"a=x", "a=y"}}, `--agent names the agent "a" twice`},
		{Flags{Variables: []string{"a=B"}}, `--agent-variable names the agent "a": no --agent does`},
		{Flags{Agents: []string{"a=http://h"}, Variables: []string{"a=B"}}, "the agent has a URL"},
		{Flags{Agents: []string{"a=x"}, Variables: []string{"a"}}, "want NAME=VARIABLE"},
	} {
		_, err := c.flags.Programs()
		require.ErrorContains(t, err, c.want)
	}
}
