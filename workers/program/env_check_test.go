package program

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/reprise-rl/reprise/envs/foreign/standin"
	"github.com/reprise-rl/reprise/infra/dev"
	"github.com/reprise-rl/reprise/workers/envturn/envserver"
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
	require.Regexp(t, `ok      two requests at the same time \(a turn of 128 episodes takes [0-9.]+ ms, the median of [0-9]+\)`, out)
	require.NotContains(t, out, "FAILED")

	out, _, err = runEnv(t, "", "check", "guess", "--json", "--env-process", "other=x", "--env-process", "guess="+standinScript(t, standin.Wide))
	require.EqualError(t, err, `environment "guess": 1 of 12 parts of the check failed`)
	require.Contains(t, out, `{"part":"no observation is wider than widest","problem":"the observation \"`)
	require.Contains(t, out, `{"part":"instances differ"}`)

	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"check"}, "NAME is missing"},
		{[]string{"check", "guess"}, `add --env-process guess=COMMAND, or --env-temporal guess`},
		{[]string{"check", "guess", "--env-temporal", "guess", "--address", "nowhere"}, "not host:port"},
		{[]string{"check", "guess", "--env-process", "guess"}, "want NAME=COMMAND"},
		{[]string{"check", "guess", "--env-process", "guess=./nothing.py"}, "chmod +x"},
		{[]string{"check", "guess", "--options", "{", "--env-process", "guess=" + standinScript(t, standin.None)}, "options are not JSON"},
		{[]string{"check", "guess", "--instances", "0", "--env-process", "guess=" + standinScript(t, standin.None)}, "want 1 to 64"},
		{[]string{"check", "guess", "--env-openenv", "guess"}, "want NAME=URL"},
		{[]string{"check", "guess", "--env-openenv", "guess=http://host"}, "ws://127.0.0.1:8000/ws"},
	} {
		_, _, err := runEnv(t, "", c.args...)
		require.ErrorContains(t, err, c.want, "%q", c.args)
	}
}

// Workers of Temporal's are checked without any other worker of this program.
func TestEnvCheckOverTemporal(t *testing.T) {
	s, err := dev.Start(t.Context(), dev.Options{Ephemeral: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Stop()) })
	c, err := client.Dial(client.Options{HostPort: s.TemporalAddress(), Namespace: s.Namespace()})
	require.NoError(t, err)
	defer c.Close()
	w, err := envserver.Start(c, "guess", standin.Wide, "")
	require.NoError(t, err)
	defer w.Stop()
	out, _, err := runEnv(t, "", "check", "guess", "--env-temporal", "guess", "--address", s.TemporalAddress(), "--instances", "2")
	require.EqualError(t, err, `environment "guess": 1 of 12 parts of the check failed`)
	require.Contains(t, out, `ok      describe (version "guess-1")`)
	require.Contains(t, out, "FAILED  no observation is wider than widest")

	_, _, err = runEnv(t, "", "check", "other", "--env-temporal", "other", "--address", s.TemporalAddress(), "--timeout", "1s")
	require.ErrorContains(t, err, "no worker of queue reprise-env.other took EnvDescribe within 1s")
}
