package all

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs"
)

// The registry describes an environment's options as they are: each default is allowed
// and has the documented type.
func TestDescriptionsNameEveryOption(t *testing.T) {
	for _, name := range envs.Names() {
		t.Run(name, func(t *testing.T) {
			env, err := envs.New(name, nil)
			require.NoError(t, err)
			require.Equal(t, name, env.Name())
			d, err := envs.Describe(name)
			require.NoError(t, err)
			require.Equal(t, name, d.Name)
			require.NotEmpty(t, d.Summary)
			types := map[string]string{"string": "string", "number": "float64", "integer": "int", "boolean": "bool"}
			defaults := map[string]any{}
			for _, o := range d.Options {
				require.NotContains(t, defaults, o.Name, "an option twice")
				defaults[o.Name] = o.Default
				require.NotEmpty(t, o.Doc)
				require.NotContains(t, o.Doc, "{", "a range that is not filled in")
				require.Equal(t, types[o.Type], fmt.Sprintf("%T", o.Default), o.Name)
			}
			written, err := json.Marshal(defaults)
			require.NoError(t, err)
			_, err = envs.New(name, written)
			require.NoError(t, err)
			_, err = envs.New(name, json.RawMessage(`{"no such option":1}`))
			for _, o := range d.Options {
				require.ErrorContains(t, err, o.Name)
			}
		})
	}
	_, err := envs.Describe("sokobann")
	require.ErrorIs(t, err, envs.ErrUnknown)
	require.ErrorContains(t, err, `did you mean "sokoban"?`)
}
