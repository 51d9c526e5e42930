package run

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/foreign"
	"github.com/reprise-rl/reprise/envs/rewards"
	"github.com/reprise-rl/reprise/envs/suites"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// guessing are the options of a foreign environment that has described itself.
const guessing = `{"name":"guess","description":{"protocol":1,"version":"1","instructions":"Guess.","actions":["1"],"max_actions":5,"max_actions_per_turn":2,"instances":9,"widest":["Guess."],"replayable":true}}`

// What a spec may ask of each environment: of one that says nothing of itself, nothing.
func TestKnownOfEnvironments(t *testing.T) {
	known := Known()
	for _, c := range []struct {
		name, options                               string
		demonstrates, plays, roles, certain, forked bool
	}{
		{"bandit", `{}`, true, true, false, false, false},
		{"frozenlake", `{}`, true, true, false, false, true},
		{"frozenlake", `{"slippery":false}`, true, true, false, true, true},
		{"lake_for_two", `{}`, true, true, true, true, false},
		{"foreign", `{"name":"guess"}`, true, false, false, false, false},
		{"foreign", guessing, false, true, false, false, false},
		{"nowhere", `{}`, false, false, false, false, false},
		{"bandit", `{"x":1}`, false, false, false, false, false},
	} {
		options := []byte(c.options)
		require.Equal(t, []bool{c.demonstrates, c.plays, c.roles, c.certain, c.forked}, []bool{
			known.Demonstrates(c.name, options), known.Plays(c.name, options), known.Roles(c.name, options), known.Certain(c.name, options), known.Forked(c.name, options),
		}, "%s %s", c.name, c.options)
	}
}

// The names that a spec may have, and what is wrong with options.
func TestKnownNames(t *testing.T) {
	known := Known()
	require.Contains(t, known.Environments, foreign.Name)
	require.Subset(t, known.Environments, envs.Names())
	require.Equal(t, suites.Names(), known.Suites)
	require.Equal(t, rewards.Names(), known.Rewards)
	for _, name := range suites.Names() {
		e, ok := known.Suite(name)
		require.True(t, ok)
		want, _ := suites.Named(name)
		require.Equal(t, spec.Environment{Name: want.Environment, Options: want.Options}, e)
	}
	_, ok := known.Suite("nowhere")
	require.False(t, ok)

	require.Empty(t, known.Options("bandit", json.RawMessage(`{}`)))
	problems := known.Options("bandit", json.RawMessage(`{"high_probability": 2}`))
	require.Len(t, problems, 1)
	require.Equal(t, "high_probability", problems[0].Path)
	problems = known.Options("nowhere", json.RawMessage(`{"a": 1}`))
	require.Len(t, problems, 1)
	require.Equal(t, `{"a": 1}`, problems[0].Found)
	require.Contains(t, problems[0].Allowed, "nowhere")

	bandit, lake := spec.Environment{Name: "bandit"}, spec.Environment{Name: "frozenlake"}
	require.Empty(t, known.Reward(spec.Reward{Name: "length"}, bandit, false))
	require.Empty(t, known.Reward(spec.Reward{Name: "progress"}, lake, false))
	for says, c := range map[string]struct {
		reward spec.Reward
		env    spec.Environment
		think  bool
		path   string
	}{
		`"luck"`:                       {spec.Reward{Name: "luck"}, bandit, true, "name"},
		`"x"`:                          {spec.Reward{Name: "length", Options: []byte(`{"of": "x"}`)}, bandit, true, "options.of"},
		`"state" with the environment`: {spec.Reward{Name: "state"}, lake, false, "name"},
		`"progress" with the environment "bandit"`: {spec.Reward{Name: "progress"}, bandit, true, "name"},
		`"progress" with the environment "mathqa"`: {spec.Reward{Name: "progress"}, spec.Environment{Mixture: []spec.Part{{Label: "a", Name: "frozenlake"}, {Label: "b", Name: "mathqa"}}}, true, "name"},
	} {
		problems := known.Reward(c.reward, c.env, c.think)
		require.Len(t, problems, 1, says)
		require.Equal(t, c.path, problems[0].Path)
		require.Contains(t, problems[0].Found, says)
	}
	require.Empty(t, known.Reward(spec.Reward{Name: "progress"}, spec.Environment{Name: "nowhere"}, true), "it is reported at the environment")
	require.Empty(t, known.Protocol("ragen"))
	require.Len(t, known.Protocol("file:/nowhere"), 1)
}

// An environment that keeps instances apart is evaluated on those.
func TestHeldOut(t *testing.T) {
	own, err := heldOut("frozenlake", json.RawMessage(`{"size":3}`))
	require.NoError(t, err)
	require.JSONEq(t, `{"size":3}`, string(own))
	held, err := heldOut("countdown", json.RawMessage(`{"max_number":20}`))
	require.NoError(t, err)
	env, err := envs.New("countdown", json.RawMessage(`{"max_number":20}`))
	require.NoError(t, err)
	require.JSONEq(t, string(env.(envs.Held).HeldOut()), string(held))
	require.NotEqual(t, `{"max_number":20}`, string(held))
	_, err = heldOut("nowhere", nil)
	require.Error(t, err)
}

// The first environment that has not described itself is named, of the run and of its suites, whatever part it is.
func TestUndescribed(t *testing.T) {
	silent := func(name string) spec.Environment {
		return spec.Environment{Name: foreign.Name, Options: []byte(`{"name":"` + name + `"}`)}
	}
	described := spec.Environment{Name: foreign.Name, Options: []byte(guessing)}
	own := spec.Environment{Name: "bandit"}
	for _, c := range []struct {
		run    spec.Environment
		suites []spec.Environment
		want   string
	}{
		{own, nil, ""}, {described, []spec.Environment{described}, ""}, {silent("one"), []spec.Environment{silent("two")}, "one"}, {own, []spec.Environment{described, silent("two")}, "two"},
		{spec.Environment{Mixture: []spec.Part{{Label: "a", Name: "bandit"}, {Label: "b", Name: foreign.Name, Options: []byte(`{"name":"part"}`)}}}, nil, "part"},
		{spec.Environment{Name: "nowhere"}, []spec.Environment{silent("two")}, "two"},
	} {
		train := spec.Train{Environment: c.run}
		for _, s := range c.suites {
			train.Evaluation.Suites = append(train.Evaluation.Suites, spec.Suite{Environment: s})
		}
		require.Equal(t, c.want, Undescribed(train))
	}
}
