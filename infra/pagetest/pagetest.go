// Package pagetest is for tests that write files of the repository: pages and presets that follow from tables in Go.
package pagetest

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// Same requires that a generated file is want. With update, a test's flag -update, the file is written first.
func Same(t testing.TB, file, want string, update bool) {
	t.Helper()
	if update {
		require.NoError(t, os.WriteFile(file, []byte(want), 0o644))
	}
	have, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, want, string(have), "the same test with -update writes %s anew", file)
}

// JSON is JSON in a line as a person writes it: with a space after each comma and colon between values.
func JSON(line []byte) string {
	var out []byte
	text, escaped := false, false
	for _, c := range line {
		text = text != (c == '"' && !escaped)
		escaped = c == '\\' && !escaped
		if out = append(out, c); !text && (c == ',' || c == ':') {
			out = append(out, ' ')
		}
	}
	return string(out)
}
