package connect

import (
	"context"
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"go.uber.org/zap"

	"github.com/reprise-rl/reprise/infra/codec"
)

// keyFile writes a key file.
func keyFile(t *testing.T, id string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "codec.keys")
	line := id + " " + base64.StdEncoding.EncodeToString([]byte(strings.Repeat(id[:1], 32))) + "\n"
	require.NoError(t, os.WriteFile(path, []byte(line), 0o600))
	return path
}

func TestCodecSettings(t *testing.T) {
	file, other := keyFile(t, "k1"), keyFile(t, "x2")
	target, err := flags(t, "--dev-dir", shared.Dir()).TemporalTarget()
	require.NoError(t, err)
	require.Nil(t, target.Codec)

	t.Setenv(codec.EnvKeyFile, other)
	target, err = flags(t, "--dev-dir", shared.Dir()).TemporalTarget()
	require.NoError(t, err)
	require.Equal(t, "x2", target.Codec.KeyID(), "of a named stack too")
	target, err = flags(t, "--address", "a:1", "--codec-key-file", file).TemporalTarget()
	require.NoError(t, err)
	require.Equal(t, "k1", target.Codec.KeyID())

	require.NoError(t, os.Chmod(file, 0o644))
	_, err = flags(t, "--address", "a:1", "--codec-key-file", file).TemporalTarget()
	require.ErrorIs(t, err, ErrSettings)
	require.ErrorContains(t, err, "chmod 600 "+file)
}

// A worker that lacks the key of a workflow does not end it: the workflow waits for one
// that has it. What is in its history is encrypted, failures included.
func TestWorkflowWaitsForKey(t *testing.T) {
	const queue, text = "codec", "what nobody else may read"
	serve := func(s *Settings) (client.Client, worker.Worker) {
		c, err := s.DialTemporal(t.Context(), zap.NewNop())
		require.NoError(t, err)
		t.Cleanup(c.Close)
		w := worker.New(c, queue, worker.Options{})
		fails := func(_ context.Context, of string) error {
			return temporal.NewNonRetryableApplicationError(of, "kind", nil)
		}
		w.RegisterActivity(fails)
		w.RegisterWorkflowWithOptions(func(ctx workflow.Context, in string) (string, error) {
			ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute, Summary: in})
			return in, workflow.ExecuteActivity(ctx, fails, in).Get(ctx, nil)
		}, workflow.RegisterOptions{Name: "fails"})
		require.NoError(t, w.Start())
		return c, w
	}
	_, without := serve(flags(t, "--dev-dir", shared.Dir()))
	sealed := flags(t, "--dev-dir", shared.Dir(), "--codec-key-file", keyFile(t, "k1"))
	c, err := sealed.DialTemporal(t.Context(), zap.NewNop())
	require.NoError(t, err)
	defer c.Close()
	run, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{
		ID: "codec", TaskQueue: queue, StaticSummary: text, Memo: map[string]any{"note": text}, WorkflowTaskTimeout: time.Second,
	}, "fails", text)
	require.NoError(t, err)

	event := func(kind enums.EventType) string {
		events := c.GetWorkflowHistory(t.Context(), run.GetID(), run.GetRunID(), true, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		for events.HasNext() {
			e, err := events.Next()
			require.NoError(t, err)
			require.NotEqual(t, enums.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED, e.EventType, "a worker without the key ended it: %s", e)
			if e.EventType == kind {
				return e.String()
			}
		}
		return ""
	}
	require.Contains(t, event(enums.EVENT_TYPE_WORKFLOW_TASK_FAILED), `the key \"k1\"`, "the history says what is missing")
	without.Stop()
	_, with := serve(sealed)
	defer with.Stop()
	var app *temporal.ApplicationError
	require.ErrorAs(t, run.Get(t.Context(), nil), &app)
	require.Equal(t, text, app.Message())

	events := c.GetWorkflowHistory(t.Context(), run.GetID(), run.GetRunID(), false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		require.NoError(t, err)
		require.NotContains(t, e.String(), text)
	}
}
