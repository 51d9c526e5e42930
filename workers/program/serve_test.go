package program

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/dev"
	"github.com/reprise-rl/reprise/infra/plugin/plugintest"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/workers"
	"github.com/reprise-rl/reprise/workers/stack"
)

// The program uses the servers that it starts itself, whatever servers the environment
// names: for its worker, its bucket, the CLI that it calls and the commands it proposes.
func TestOwnStackBeatsEnvironment(t *testing.T) {
	device := plugintest.Needs(t)
	for name, variable := range map[string]string{"temporal": dev.EnvTemporal, "versitygw": dev.EnvVersity} {
		if os.Getenv(variable) == "" {
			built, err := filepath.Abs(filepath.Join("..", "..", "bin", name))
			require.NoError(t, err)
			t.Setenv(variable, built)
		}
	}
	t.Chdir(t.TempDir())
	for variable, value := range map[string]string{
		"TEMPORAL_ADDRESS": "127.0.0.1:1", "TEMPORAL_NAMESPACE": "prod", "TEMPORAL_TLS": "true", "TEMPORAL_API_KEY": "cloud",
		"REPRISE_S3_BUCKET": "prod", "REPRISE_S3_PREFIX": "team", "AWS_ENDPOINT_URL": "http://127.0.0.1:1",
	} {
		t.Setenv(variable, value)
	}
	serve := workers.Options{Device: model.DeviceOptions{Plugin: device}, SessionHeartbeat: 5 * time.Second, Grace: time.Second, HostSlots: 1}
	err := stack.With(t.Context(), dev.Options{}, serve, func(ctx context.Context, s stack.Served) error {
		require.Equal(t, "s3://reprise/spec", s.Bucket.Location("spec"))
		require.Equal(t, " --dev-dir .reprise/dev", stack.DirFlag(s.Stack))
		require.Equal(t, " --address "+s.TemporalAddress(), stack.AddressFlag(s.Stack))
		require.NoError(t, startDemo(ctx, io.Discard, s.Stack, "demo", "bandit-demo", ""))
		_, err := s.Client.DescribeWorkflowExecution(ctx, "demo", "")
		require.NoError(t, err)
		return s.Client.TerminateWorkflow(ctx, "demo", "", "seen")
	})
	require.NoError(t, err)
}
