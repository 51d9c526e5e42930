package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs/starter"
)

// The files in the repository are those this program makes.
func TestBuildMakesTheEmbeddedFiles(t *testing.T) {
	files, err := build()
	require.NoError(t, err)
	for name, content := range starter.Files() {
		require.Equal(t, string(content), string(files[name]), "%s: run go generate ./envs/starter", name)
	}
	require.Len(t, files, len(starter.Files()))
}
