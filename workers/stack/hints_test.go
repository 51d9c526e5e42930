package stack

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/dev"
)

// What a person is told to type is the shortest that works here.
func TestNamesFromHere(t *testing.T) {
	folder := t.TempDir()
	t.Chdir(folder)
	own := filepath.Join(folder, "release", "temporal")
	other := filepath.Join(folder, "other", "temporal")
	for _, path := range []string{own, other} {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"), 0o755))
	}
	t.Setenv(dev.EnvTemporal, own)
	t.Setenv("PATH", filepath.Dir(other))
	require.Equal(t, filepath.Join("release", "temporal"), TemporalName(), "another program is on PATH")
	links := filepath.Join(folder, "bin")
	require.NoError(t, os.Mkdir(links, 0o755))
	require.NoError(t, os.Symlink(own, filepath.Join(links, "temporal")))
	t.Setenv("PATH", links)
	require.Equal(t, "temporal", TemporalName(), "PATH leads to it by a link")

	require.Empty(t, PresetFile("bandit-demo"))
	program, err := os.Executable()
	require.NoError(t, err)
	beside := filepath.Join(filepath.Dir(program), "presets", "bandit-demo.json")
	require.NoError(t, os.MkdirAll(filepath.Dir(beside), 0o755))
	require.NoError(t, os.WriteFile(beside, nil, 0o644))
	require.Equal(t, beside, PresetFile("bandit-demo"))
	source := filepath.Join("infra", "presets", "bandit-demo.json")
	require.NoError(t, os.MkdirAll(filepath.Dir(source), 0o755))
	require.NoError(t, os.WriteFile(source, nil, 0o644))
	require.Equal(t, source, PresetFile("bandit-demo"), "the source's own comes first")
}
