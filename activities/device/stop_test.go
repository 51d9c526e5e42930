package device

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/batch"
)

// Log ratios of the sampled tokens of two trajectories, the second in two rows: (−1, 2, −4) and (−8 | −16, 3). ml-loop's
// kl_estimate of the trajectories' log weights [−3, −21] is 12, the mean over their six tokens only 4.
func TestTrajectoryKL(t *testing.T) {
	row := func(of, tokens int32) batch.Row {
		mask := make([]bool, 5)
		for k := range tokens {
			mask[k+1] = true
		}
		return batch.Row{Row: of, Origin: 7, Mask: mask}
	}
	rows := []batch.Row{row(0, 3), row(1, 1), row(1, 2)}
	require.InDelta(t, 12, trajectoryKL(model.UpdateMetrics{BehaviourKL: 4}, rows), 1e-12)
	require.InDelta(t, 12, trajectoryKL(model.UpdateMetrics{BehaviourKL: -4}, rows), 1e-12, "its absolute value")
	// A replayed trajectory of the same number is another one, and a supervised row is none.
	replayed, shown := row(1, 1), row(2, 4)
	replayed.Origin, shown.Supervised = 6, true
	require.InDelta(t, 4*7./3, trajectoryKL(model.UpdateMetrics{BehaviourKL: 4}, append(rows, replayed, shown)), 1e-12)
	require.Zero(t, trajectoryKL(model.UpdateMetrics{}, nil))
}

// If the first step is too far, the update's figures are those of the step that was not made.
func TestFiguresOfAStepThatWasNotMade(t *testing.T) {
	left := stepped{stopped: &model.UpdateMetrics{Loss: 3, Tokens: 5}}
	require.Equal(t, canon.Float(3), left.metrics()["actor/loss"])
	require.True(t, left.counts().Skipped)
	require.Zero(t, left.counts().Tokens)
	left.policy = []model.UpdateMetrics{{Loss: 1}}
	require.Equal(t, canon.Float(1), left.metrics()["actor/loss"])
}
