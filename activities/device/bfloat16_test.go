package device

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/workflows/collapse"
)

// In bfloat16 too the difference of the sampler's log-probs from Score's is measured, and a run
// with a bound below it is warned. From its batches the run gets the same state.
func TestSamplerBesideScoreInBfloat16(t *testing.T) {
	t.Parallel()
	r := begun(t, "half", tinySpec(t, `policy.compute_dtype="bfloat16"`, `collapse={"training_rollout_diff":{"above":1e-9}}`,
		"iterations=2", "evaluation.every=0", "snapshot.every=2"))
	in := r.iterate(t)
	mean, most := float64(in.Metrics[collapse.MetricRolloutDiff]), float64(in.Metrics[collapse.MetricRolloutDiffMax])
	t.Logf("difference %.2g, at most %.2g", mean, most)
	require.Greater(t, mean, 1e-9)
	require.Less(t, mean, 0.05, "the bound that the documentation shows")
	require.GreaterOrEqual(t, most, mean)
	require.True(t, slices.ContainsFunc(in.Detected.Events, func(e collapse.Event) bool { return e.Detector == collapse.RolloutDiff }))
	require.Equal(t, collapse.Warn, in.Detected.Decision.Action)
	r.rebuilt(t)
}
