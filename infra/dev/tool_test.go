package dev

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A named program is taken, else the one beside this program, else one in bin/ here or above.
func TestToolPlaces(t *testing.T) {
	const variable = "REPRISE_TEST_TOOL"
	program, err := os.Executable()
	require.NoError(t, err)
	folder := t.TempDir()
	tool := func(path string) string {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, nil, 0o755))
		t.Cleanup(func() { _ = os.Remove(path) })
		return path
	}
	inner := filepath.Join(folder, "a", "b")
	require.NoError(t, os.MkdirAll(inner, 0o755))
	t.Chdir(inner)
	find := func() string {
		path, err := findTool("nearby", "", variable)
		require.NoError(t, err)
		return path
	}
	_, err = findTool("nearby", "", variable)
	require.ErrorIs(t, err, ErrNoTool)
	require.ErrorContains(t, err, "install the release again")
	require.Equal(t, tool(filepath.Join(folder, "bin", "nearby")), find())
	require.Equal(t, tool(filepath.Join(filepath.Dir(program), "nearby")), find(), "a release's own comes before what lies in bin/ above")
	t.Setenv(variable, tool(filepath.Join(folder, "named")))
	require.Equal(t, filepath.Join(folder, "named"), find())
}

func TestServersHaveAUser(t *testing.T) {
	t.Setenv("USER", "")
	require.Contains(t, serverEnvironment(), "USER=reprise")
	t.Setenv("USER", "ada")
	require.Contains(t, serverEnvironment(), "USER=ada")
	require.NotContains(t, serverEnvironment(), "USER=reprise")
}
