package workers

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities/device"
	"github.com/reprise-rl/reprise/envs/agent"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/workers/train"
)

// An environment of verifiers plays with its own rollout, and does the same again.
func TestVerifiersAgent(t *testing.T) {
	python := os.Getenv("REPRISE_VERIFIERS")
	if python == "" {
		t.Skip("SKIPPED: REPRISE_VERIFIERS names no Python with verifiers 0.1; agents of Go have run")
	}
	environments, err := filepath.Abs("testdata")
	require.NoError(t, err)
	t.Setenv("PYTHONPATH", environments+string(os.PathListSeparator)+os.Getenv("PYTHONPATH"))
	opened, err := model.OpenDevice(model.DeviceOptions{XLAFlags: model.QuickCompile})
	require.NoError(t, err, "this test computes: run `make plugin`, or set REPRISE_PJRT_PLUGIN")
	defer opened.Close()
	engine, err := device.NewEngine(opened)
	require.NoError(t, err)
	var digests []string
	for range 2 {
		s := store.NewMemory()
		r := train.New(engine, s)
		r.Device.Agents = agent.New([]agent.Program{{Name: "tester", Command: []string{python, "../docs/own/verifiers_agent.py"}}})
		text := strings.Replace(string(agentSpec(`{"environment": "letters:load"}`, 1)), `"broken_share": 0.5`, `"timeout_seconds": 100`, 1)
		_, err := r.Train(t.Context(), "verifiers", []byte(text))
		r.Device.Agents.Close()
		require.NoError(t, err)
		head, err := store.Head(t.Context(), s, "verifiers")
		require.NoError(t, err)
		m, err := store.ReadManifest(t.Context(), s, head.Ref)
		require.NoError(t, err)
		require.InDelta(t, 2, float64(m.Metrics["turns/mean"]), 1e-9)
		require.InDelta(t, 1, float64(m.Metrics["agent/conversations"]), 1e-9)
		require.Contains(t, m.Metrics, "agent/own/length")
		digests = append(digests, head.Ref.Digest)
	}
	require.Equal(t, digests[0], digests[1])
}
