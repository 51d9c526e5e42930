package workflows

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/strict"
	"github.com/reprise-rl/reprise/workflows/collapse"
)

// A command with a wrong input is refused with what is wrong, and changes nothing. A command without the input
// that it needs is one.
func TestWrongInputs(t *testing.T) {
	const oneInteger = "iteration: found nothing; allowed: an integer (as {\"iteration\": 12})"
	for _, c := range []struct{ name, input, says string }{
		{"roll-back", ``, "1 problem:\n  " + oneInteger},
		{"roll-back", `{"iteration": 0, "describe": true}`, "describe: the run plays no environment that describes itself"},
		{"roll-back", `null`, "1 problem:\n  " + oneInteger},
		{"roll-back", `{}`, "1 problem:\n  " + oneInteger},
		{"roll-back", `{"iter": 1}`, "2 problems:\n  iter: found an unknown key; allowed: iteration, describe (did you mean \"iteration\"?)\n  " + oneInteger},
		{"roll-back", `{"Iteration": 1}`, "2 problems:\n  Iteration: found an unknown key; allowed: iteration, describe (did you mean \"iteration\"?)\n  " + oneInteger},
		{"roll-back", `{"iteration": 1, "adopt": true}`, "1 problem:\n  adopt: found an unknown key; allowed: iteration, describe"},
		{"roll-back", `{"iteration": "1"}`, "1 problem:\n  iteration: found \"1\"; allowed: an integer"},
		{"roll-back", `{"iteration": 1.5}`, "1 problem:\n  iteration: found 1.5; allowed: an integer"},
		{"roll-back", `{"iteration": null}`, "1 problem:\n  iteration: found null; allowed: an integer"},
		{"roll-back", `{"iteration": 1, "iteration": 0}`, "1 problem:\n  iteration: found the key again; allowed: each key once"},
		{"roll-back", `1`, "1 problem:\n  (input): found 1; allowed: an object, as {\"iteration\": 12}"},
		{"stop-after", ``, "1 problem:\n  " + oneInteger},
		{"stop-after", `{"after": 3}`, "2 problems:\n  after: found an unknown key; allowed: iteration\n  " + oneInteger},
		{"change-knob", ``, "2 problems:\n  path: found nothing; allowed: a text in quotes (as {\"path\": \"update.learning_rate\", \"value\": 1e-4})\n" +
			"  value: found nothing; allowed: a JSON value (as {\"path\": \"update.learning_rate\", \"value\": 1e-4})"},
		{"change-knob", `{"path": "update.learning_rate", "value": 1e-4, "from": 3}`, "1 problem:\n  from: found an unknown key; allowed: path, value"},
		{"adopt-programs", `{"fingerprint": "../../x"}`, "fingerprint: found \"../../x\"; allowed: 12 digits from 0 to 9 and a to f, as reprise doctor and the start of a device worker print it"},
		{"adopt-programs", `{"print": "f00df00df00d"}`, "1 problem:\n  print: found an unknown key; allowed: fingerprint (did you mean \"fingerprint\"?)"},
		{"pause", `[1,2,3]`, "1 problem:\n  (input): found [1,2,3]; allowed: nothing: this command has no input"},
		{"report", `"xxx"`, "1 problem:\n  (input): found \"xxx\"; allowed: nothing: this command has no input"},
		{"snapshot-now", `{"now":true}`, "1 problem:\n  (input): found {\"now\":true}; allowed: nothing: this command has no input"},
	} {
		s, p := collapsing(t, -1, 0, collapse.Warn)
		var a *answer
		p.when("Generate", 3, func() {
			if c.input == "" {
				a = p.send(c.name)
			} else {
				a = p.send(c.name, json.RawMessage(c.input))
			}
		})
		p.train(nil)
		p.result()
		require.False(t, a.accepted, "%s %s", c.name, c.input)
		require.EqualError(t, a.err, c.says, "%s %s", c.name, c.input)
		require.Len(t, s.commits, 5, "the run goes on as if nobody had asked")
		require.Zero(t, s.commits[4].Branch)
	}
}

// A query takes no input that it does not know.
func TestWrongQuestions(t *testing.T) {
	_, p := collapsing(t, -1, 0, collapse.Warn)
	p.when("Generate", 3, func() {
		_, err := p.QueryWorkflow("status", json.RawMessage(`{"full": true}`))
		require.ErrorContains(t, err, "allowed: nothing: this command has no input")
	})
	p.train(nil)
	p.result()
	for input, says := range map[string]string{
		`{"from": 3}`:   "from: found an unknown key; allowed: offset, limit",
		`{"limit":"3"}`: `limit: found "3"; allowed: an integer`,
		``:              "",
		`{"offset": 1}`: "",
	} {
		_, err := readInput[PageOf](json.RawMessage(input), `{"offset": 0, "limit": 50}`)
		if says == "" {
			require.NoError(t, err, input)
			continue
		}
		var problems strict.Problems
		require.ErrorAs(t, err, &problems, input)
		require.Equal(t, says, problems[0].String(), input)
	}
}
