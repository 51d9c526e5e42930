package chat

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseVariables(t *testing.T) {
	v, err := ParseVariables([]byte(`{"enable_thinking":false,"date_string":"26 Jul 2024","n":3,"x":0.5}`))
	require.NoError(t, err)
	require.Equal(t, Variables{"enable_thinking": false, "date_string": "26 Jul 2024", "n": int64(3), "x": 0.5}, v)
	v, err = ParseVariables(nil)
	require.NoError(t, err)
	require.Empty(t, v)
	for _, bad := range []string{
		`[]`, `{"messages":1}`, `{"add_generation_prompt":true}`, `{"tools":"a"}`, `{"function range":1}`, `{"a":null}`, `{"a":[]}`, `{"a":{}}`, `{"a":1,"a":2}`, `{"":1}`,
		`{"a":"` + strings.Repeat("a", maxVariable+1) + `"}`, `{"a":1`,
	} {
		_, err := ParseVariables([]byte(bad))
		require.ErrorIs(t, err, ErrVariables, bad)
	}
}
