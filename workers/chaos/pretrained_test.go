package chaos

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/dev"
	"github.com/reprise-rl/reprise/infra/pretrained"
)

// TestPretrained trains adapters over SmolLM2-135M-Instruct for three iterations with its worker
// killed in the second update, and again undisturbed, to the same bytes. It does not run beside
// others, because it needs both cores. Adapters, because two snapshots of all weights are 3 GB;
// `reprise-lab learn --killed` trains those.
func TestPretrained(t *testing.T) {
	folder, err := filepath.Abs(filepath.Join("..", "..", pretrained.Folder))
	require.NoError(t, err)
	if _, err := os.Stat(folder); err != nil {
		t.Skipf("SmolLM2-135M-Instruct is not there: `make pretrained` fetches it by pip (%v)", err)
	}
	spec := preset(t, "smol-bandit-lora", map[string]any{
		"iterations": 3, "policy.from": "folder:" + folder,
		"policy.warm_start": map[string]any{"steps": 1, "rows": 4, "learning_rate": 1e-3, "demonstrations": 0},
		"rollout.groups":    2, "rollout.group_size": 2, "update.micro_batch": 4, "evaluation.every": 0, "snapshot.every": 3,
		"selection.method": "all", "selection.drop_flat": false,
	})
	l := newLane(t, ownStack(t, dev.Options{Ephemeral: true}))
	stop := l.keepWith(workerOptions{heartbeat: pretrainedHeartbeat}, "Update#1/inside/1")
	l.start(chaosRun, spec)
	l.completes(chaosRun)
	const undisturbed = "undisturbed"
	l.start(undisturbed, spec) // by the worker that replaced the killed one, which has the programs
	l.completes(undisturbed)
	stop()
	l.verifies(chaosRun)
	killed := l.manifest(chaosRun, 1)
	require.NotEqual(t, killed.StateBefore, killed.StateAfter, "the interrupted update changed the policy")
	for n := range 3 {
		require.Equal(t, l.manifest(undisturbed, n).StateAfter, l.manifest(chaosRun, n).StateAfter, "iteration %d", n)
	}
	s, err := l.status(chaosRun)
	require.NoError(t, err)
	require.Equal(t, 1, s.LostDevices, "the history counts the killed worker")
}

// pretrainedHeartbeat leaves a worker of 135 million parameters time to say that it lives.
const pretrainedHeartbeat = "8s"
