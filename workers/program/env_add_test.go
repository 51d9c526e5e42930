package program

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"

	"github.com/reprise-rl/reprise/envs/foreign/standin"
	"github.com/reprise-rl/reprise/infra/dev"
	"github.com/reprise-rl/reprise/infra/plugin/plugintest"
	"github.com/reprise-rl/reprise/workers"
	"github.com/reprise-rl/reprise/workers/stack"
)

// What env add writes are whole paths; what cannot be run is refused.
func TestEnvAdd(t *testing.T) {
	file := filepath.Join(t.TempDir(), "dev", workers.EnvFileName)
	script := standinScript(t, standin.None)
	t.Chdir(filepath.Dir(script))
	out, _, err := runEnv(t, "", "add", "guess=./serve.sh serve.sh --slow", "--dev-dir", filepath.Dir(file))
	require.NoError(t, err)
	require.Equal(t, "guess: "+script+" "+script+" --slow\nwritten to "+file+"\nNo dev stack runs there: "+stack.ProgramName()+" dev serves it when it starts.\n", out)
	_, _, err = runEnv(t, "", "add", "other="+script, "--file", file)
	require.NoError(t, err)
	commands, err := workers.ReadEnvFile(file)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"guess": script + " " + script + " --slow", "other": script}, commands)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"guess"}, "want NAME=COMMAND"},
		{[]string{"Guess=" + script}, `found the name "Guess", want`},
		{[]string{"guess=./nothing.py"}, "chmod +x"},
		{[]string{"guess=" + script, "--file", file, "--dev-dir", "x"}, "give one of them"},
		{nil, "NAME=COMMAND is missing"},
	} {
		_, _, err := runEnv(t, "", append([]string{"add"}, c.args...)...)
		require.ErrorContains(t, err, c.want, "%q", c.args)
	}
	require.NoError(t, os.Chmod(file, 0o602))
	_, _, err = runEnv(t, "", "add", "third="+script, "--file", file)
	require.ErrorContains(t, err, "any user can write it")
}

// A run that names an environment which no worker serves waits for it. It goes forward when the environment is
// added to the stack that runs.
func TestRunWaitsForAnEnvironment(t *testing.T) {
	plugintest.Needs(t)
	dir := t.TempDir()
	worker := workers.Options{SessionHeartbeat: 20 * time.Second, EnvFile: filepath.Join(dir, workers.EnvFileName)}
	err := stack.With(t.Context(), dev.Options{Dir: dir}, worker, func(ctx context.Context, s stack.Served) error {
		w, err := stack.StartTrain(ctx, s.Client, "guess-1", []byte(`{"seed": 1, "iterations": 1,
			"policy": {"from": "starter", "starter": {"layers": 1, "hidden_size": 32, "intermediate_size": 64, "heads": 2, "kv_heads": 1}, "warm_start": {"steps": 0}},
			"environment": {"name": "foreign", "options": {"name": "guess"}},
			"rollout": {"groups": 2, "group_size": 2, "turns": 2, "max_new_tokens": 8, "think": false},
			"update": {"micro_batch": 4}, "selection": {"method": "all"}, "evaluation": {"every": 0}}`))
		if err != nil {
			return err
		}
		pending := func() string {
			d, err := s.Client.DescribeWorkflowExecution(ctx, w.GetID(), "")
			require.NoError(t, err)
			require.Equal(t, enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, d.GetWorkflowExecutionInfo().GetStatus())
			for _, a := range d.GetPendingActivities() {
				if a.GetAttempt() > 1 {
					return a.GetLastFailure().GetMessage()
				}
			}
			return ""
		}
		require.Eventually(t, func() bool { return strings.Contains(pending(), "add it with reprise env add guess=COMMAND") }, 20*time.Second, 100*time.Millisecond, "it is named")
		// What is added and cannot be started is named too.
		require.NoError(t, os.WriteFile(worker.EnvFile, []byte(`{"guess": "./nothing.py"}`), 0o600))
		require.Eventually(t, func() bool { return strings.Contains(pending(), `environment's command "./nothing.py"`) }, 20*time.Second, 100*time.Millisecond)
		_, _, err = runEnv(t, "", "add", "guess="+standinScript(t, standin.None), "--dev-dir", s.Dir())
		require.NoError(t, err)
		return w.Get(ctx, nil)
	})
	require.NoError(t, err)
}
