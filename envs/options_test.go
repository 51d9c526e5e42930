package envs_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs"
)

// optioned is an environment of nothing but options.
type optioned struct {
	corridor
	table    *envs.Options
	size     int
	name     string
	rate     float64
	on       bool
	mode     string
	twice    int
	fallback bool // OK said that something is wrong
}

func init() {
	envs.Register("test-options", "options of every type", func(o *envs.Options) envs.Environment {
		e := &optioned{table: o}
		o.Int("size", &e.size, 4, 2, 9, "how large: {range}")
		o.Text("name", &e.name, "<a>", "what it is called")
		o.Number("rate", &e.rate, 0.5, 0, 1.5, "how often")
		o.Bool("on", &e.on, true, "whether")
		o.Choice("mode", &e.mode, "slow", []string{"slow", "fast"}, "how")
		o.Int("twice", &e.twice, 2*e.size, e.size, 100, "at least size")
		if e.fallback = !o.OK(); !e.fallback && e.name == "bad" {
			o.Wrong("name", "another one")
		}
		return e
	})
}

func TestOptions(t *testing.T) {
	for options, want := range map[string]optioned{
		``:     {size: 4, name: "<a>", rate: 0.5, on: true, mode: "slow", twice: 8},
		` {} `: {size: 4, name: "<a>", rate: 0.5, on: true, mode: "slow", twice: 8},
		`{"twice":9, "size":9,"name":"","rate":1,"on":false,"mode":"fast"}`: {size: 9, rate: 1, mode: "fast", twice: 9},
		`{"rate":-0,"size":3}`: {size: 3, name: "<a>", on: true, mode: "slow", twice: 6},
	} {
		env, err := envs.New("test-options", json.RawMessage(options))
		require.NoError(t, err, options)
		got := *env.(*optioned)
		got.table = nil
		require.Equal(t, want, got, options)
	}
	env, err := envs.New("test-options", json.RawMessage(`{"size":3}`))
	require.NoError(t, err)
	table := env.(*optioned).table
	require.Equal(t, `{"size":3,"name":"\u003ca\u003e","rate":0.5,"on":true,"mode":"slow","twice":6}`, string(table.JSON(nil)))
	require.Equal(t, `{"size":3,"name":"b","rate":0.5,"on":true,"mode":"slow","twice":0}`, string(table.JSON(map[string]any{"name": "b", "twice": 0})))
	d, err := envs.Describe("test-options")
	require.NoError(t, err)
	require.Equal(t, envs.Description{Name: "test-options", Summary: "options of every type", Options: []envs.Option{
		{Name: "size", Type: "integer", Default: 4, Doc: "how large: 2 to 9"},
		{Name: "name", Type: "string", Default: "<a>", Doc: "what it is called"},
		{Name: "rate", Type: "number", Default: 0.5, Doc: "how often"},
		{Name: "on", Type: "boolean", Default: true, Doc: "whether"},
		{Name: "mode", Type: "string", Default: "slow", Doc: "how"},
		{Name: "twice", Type: "integer", Default: 8, Doc: "at least size"},
	}}, d)
}

func TestOptionsAreReadStrictly(t *testing.T) {
	const all = "size, name, rate, on, mode, twice"
	for options, want := range map[string]string{
		`[]`:                      `found [], want a JSON object`,
		`[1`:                      `found [1, want a JSON object`,
		`null`:                    `found null, want a JSON object`,
		`{"size":`:                `found {"size":, want valid JSON and nothing after the object (unexpected end of JSON input at line 1, column 8)`,
		`{} 1`:                    `found {} 1, want valid JSON and nothing after the object (invalid character '1' after top-level value at line 1, column 4)`,
		`{"sise":1}`:              `sise: found 1, want one of the options ` + all + ` (did you mean "size"?)`,
		`{"Size":1}`:              `Size: found 1, want one of the options ` + all + ` (did you mean "size"?)`,
		`{"size":null}`:           `size: found null, want an integer, or no such option for its default`,
		`{"size":4.0}`:            `size: found 4.0, want an integer`,
		`{"size":"4"}`:            `size: found "4", want an integer`,
		`{"size":1}`:              `size: found 1, want from 2 to 9`,
		`{"rate":"x"}`:            `rate: found "x", want a number`,
		`{"rate":1e400}`:          `rate: found 1e400, want a number`,
		`{"rate":2e0}`:            `rate: found 2, want from 0 to 1.5`,
		`{"on":0}`:                `on: found 0, want true or false`,
		`{"name":[1, 2]}`:         `name: found [1, 2], want a string`,
		`{"mode":"fasst"}`:        `mode: found "fasst", want one of slow, fast (did you mean "fast"?)`,
		`{"size":9,"twice":8}`:    `twice: found 8, want from 9 to 100`,
		`{"name":"bad"}`:          `name: found "bad", want another one`,
		`{"size":1,"name":"bad"}`: `size: found 1, want from 2 to 9`,
		`{"twice":1,"on":1,"size":2,"size":3,"x":{"y":1},"rate":9}`: `on: found 1, want true or false; size: found 3, want each option once; x: found {"y":1}, want one of the options ` + all +
			`; rate: found 9, want from 0 to 1.5; twice: found 1, want from 2 to 100`,
	} {
		_, err := envs.New("test-options", json.RawMessage(options))
		var wrong *envs.OptionsError
		require.ErrorAs(t, err, &wrong, options)
		require.EqualError(t, err, `options of environment "test-options": `+want, options)
	}
}
