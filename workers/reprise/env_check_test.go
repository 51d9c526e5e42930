package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs/foreign/standin"
)

// standinScript is a program that serves the stand-in with a fault: this test's own program.
func standinScript(t *testing.T, fault string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "serve.sh")
	text := "#!/bin/sh\nexec '" + os.Args[0] + "' serve-standin " + fault + "\n"
	require.NoError(t, os.WriteFile(path, []byte(text), 0o755))
	return path
}

func TestEnvCheck(t *testing.T) {
	out, _, err := runEnv(t, "", "check", "guess", "--env-process", "guess="+standinScript(t, standin.None))
	require.NoError(t, err, out)
	require.Contains(t, out, `ok      describe (version "guess-1")`)
	require.Contains(t, out, "ok      instances differ")
	require.NotContains(t, out, "FAILED")

	out, _, err = runEnv(t, "", "check", "guess", "--json", "--env-process", "other=x", "--env-process", "guess="+standinScript(t, standin.Wide))
	require.EqualError(t, err, `environment "guess": 1 of 11 parts of the check failed`)
	require.Contains(t, out, `{"part":"no observation is wider than widest","problem":"the observation \"`)
	require.Contains(t, out, `{"part":"instances differ"}`)

	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"check"}, "NAME is missing"},
		{[]string{"check", "guess"}, `add --env-process guess=COMMAND`},
		{[]string{"check", "guess", "--env-process", "guess"}, "want NAME=COMMAND"},
		{[]string{"check", "guess", "--env-process", "guess=./nothing.py"}, "chmod +x"},
		{[]string{"check", "guess", "--options", "{", "--env-process", "guess=" + standinScript(t, standin.None)}, "options are not JSON"},
		{[]string{"check", "guess", "--instances", "0", "--env-process", "guess=" + standinScript(t, standin.None)}, "want 1 to 64"},
	} {
		_, _, err := runEnv(t, "", c.args...)
		require.ErrorContains(t, err, c.want, "%q", c.args)
	}
}
