package chaos

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/human"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// TestWorkerMemory trains the same run with policies of 1 and 30 million parameters: what
// the larger one's worker has resident at most beyond the smaller one's is an update's 16
// bytes a parameter, and some for the rest. Kept activations would be besides.
func TestWorkerMemory(t *testing.T) {
	beside(t)
	peak := func(name string, s spec.Starter) (bytes, parameters int64) {
		l := newNamedLane(t, sharedStack(t), "memory-"+name, true)
		worker := l.worker(workerOptions{})
		l.start("memory", preset(t, "smoke", map[string]any{
			"policy.starter": map[string]any{"layers": s.Layers, "hidden_size": s.HiddenSize, "intermediate_size": s.IntermediateSize, "heads": s.Heads, "kv_heads": s.KVHeads},
			"iterations":     2, "rollout.groups": 2, "update.recompute": "always", "policy.warm_start": map[string]any{"steps": 0}, "evaluation": map[string]any{"every": 0}, "snapshot": map[string]any{"every": 1},
		}))
		l.completes("memory")
		bytes, _ = resident(t, worker)
		worker.kill()
		l.verifies("memory")
		parameters = s.Shape(768).Parameters()
		t.Logf("%s: %.1f M parameters, %s resident at most", name, float64(parameters)/1e6, human.Bytes(bytes))
		return bytes, parameters
	}
	small, few := peak("small", spec.Starter{Layers: 4, HiddenSize: 128, IntermediateSize: 384, Heads: 8, KVHeads: 4})
	large, many := peak("large", spec.Starter{Layers: 4, HiddenSize: 768, IntermediateSize: 2304, Heads: 12, KVHeads: 4})
	require.InDelta(t, 1e6, few, 0.3e6)
	require.InDelta(t, 30e6, many, 3e6)
	require.LessOrEqual(t, float64(large-small), 16*1.15*float64(many)+128<<20)
}
