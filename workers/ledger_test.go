package workers_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/presets"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/workers/bench"
)

func TestLedgerNow(t *testing.T) {
	if os.Getenv("LEDGER") == "" {
		t.Skip()
	}
	device, err := model.OpenDevice(model.DeviceOptions{})
	require.NoError(t, err)
	for _, name := range []string{"smoke", "chaos", "chaos-turns", "starpo-ppo", "bandit-demo", "starpo-s", "gigpo", "turn-gae", "online-k", "replay", "dapo"} {
		text, err := presets.Read(name)
		require.NoError(t, err)
		engine, err := activities.NewEngine(device)
		require.NoError(t, err)
		s := store.NewMemory()
		trained, err := bench.Local{Engine: engine, Store: s}.Train(t.Context(), name, text)
		require.NoError(t, err)
		head, err := store.Head(t.Context(), s, name)
		require.NoError(t, err)
		t.Logf("%s %d %s %s %s", name, len(trained.Iterations), trained.State, head.Ref.Digest, engine.Info().Fingerprint)
	}
}
