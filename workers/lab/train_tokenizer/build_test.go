package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs/starter"
)

// The files in the repository are those this program makes.
func TestBuildMakesTheEmbeddedFiles(t *testing.T) {
	for _, v := range []starter.Vocabulary{starter.First, starter.Second} {
		files, err := build(v)
		require.NoError(t, err)
		for name, content := range v.Files() {
			require.Equal(t, string(content), string(files[name]), "%s of %d: run go generate ./envs/starter", name, v)
		}
		require.Len(t, files, len(v.Files()))
	}
}

// Each listed word is one token, alone and with a space before it, or as it is listed.
func TestListedWordsAreTokens(t *testing.T) {
	tok, err := starter.Second.Tokenizer()
	require.NoError(t, err)
	one := func(text string) { require.Len(t, tok.EncodePlain(text), 1, "%q", text) }
	for _, g := range groups {
		require.NotEmpty(t, g.why)
		for _, word := range strings.Fields(g.words) {
			one(word)
			one(" " + word)
		}
		for _, word := range strings.Fields(g.said) {
			one(" " + word)
		}
		for _, token := range g.exact {
			one(token)
		}
	}
}
