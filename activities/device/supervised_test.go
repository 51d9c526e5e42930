package device

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/batch"
)

// marked are a batch's supervised rows, and the others.
func marked(rows []batch.Row) (supervised, others []batch.Row) {
	for _, r := range rows {
		if r.Supervised {
			supervised = append(supervised, r)
		} else {
			others = append(others, r)
		}
	}
	return supervised, others
}

// Supervised rows train exactly, beside the rows of the policy gradient, a critic, mismatch
// weights and a replay buffer, and alone.
func TestSupervisedRows(t *testing.T) {
	t.Parallel()
	onBandit := []string{`environment.name="bandit"`, "rollout.turns=1", "update.learning_rate=0.001"}
	taught := `policy.warm_start={"steps":60,"rows":8,"learning_rate":0.005}`
	for name, edits := range map[string][]string{
		"star":           {taught, `update.supervised={"from":"own_successes","share":1}`},
		"successes":      {taught, `update.supervised={"from":"own_successes","share":0.4}`, "freshness.replay_iterations=2", `update.mismatch.regime="decoupled"`},
		"demonstrations": {`update.supervised={"from":"demonstrations","coefficient":0.5}`, `update.kl_in="loss"`, `credit.algorithm="gae"`, "update.minibatch=0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := exact(t, append(onBandit, edits...)...)
			for i, in := range r.commits {
				supervised, others := marked(r.batch(t, in))
				require.NotEmpty(t, supervised)
				require.EqualValues(t, len(supervised), in.Metrics["supervised/rows"])
				require.Positive(t, in.Metrics["supervised/loss"])
				require.Equal(t, name == "star", len(others) == 0)
				if name == "demonstrations" {
					require.Len(t, supervised, len(others)/3, "a quarter of all")
				} else {
					require.Positive(t, in.Metrics["supervised/successes"])
				}
				for _, row := range supervised {
					require.Contains(t, row.Mask, true)
					require.NotContains(t, row.Columns[batch.Advantages], float32(1))
					require.Equal(t, name == "demonstrations", row.Row == -1)
				}
				if name == "successes" {
					earlier := 0
					for _, row := range others {
						if int(row.Origin) < i {
							earlier++
						}
					}
					require.Equal(t, i > 0, earlier > 0)
				}
			}
		})
	}
}

// If no episode succeeds, an update that has nothing but successes is skipped.
func TestNoSuccesses(t *testing.T) {
	r := fresh(t, `update.supervised={"from":"own_successes","share":1}`, `environment.name="bandit"`, "rollout.turns=1")
	in := r.iterate(t)
	require.Nil(t, in.Batch)
	require.True(t, in.Update.Skipped)
	require.Zero(t, in.Metrics["supervised/rows"])
	require.Equal(t, in.StateBefore, in.StateAfter)
	r.iterate(t)
}

// Observations are learned beside the rows that they came in, exactly, and the likelihood of what the environment answers
// rises.
func TestObservations(t *testing.T) {
	t.Parallel()
	r := exact(t, "rollout.turns=3", `update.supervised={"from":"observations","coefficient":1}`, `update.ratio="turn"`, "update.learning_rate=0.01")
	var losses []float64
	for _, in := range r.commits {
		supervised, others := marked(r.batch(t, in))
		require.NotEmpty(t, supervised)
		require.LessOrEqual(t, len(supervised), len(others))
		byRow := map[int32]batch.Row{}
		for _, row := range others {
			byRow[row.Row] = row
		}
		for _, row := range supervised {
			require.Contains(t, row.Mask, true)
			require.Equal(t, byRow[row.Row].IDs, row.IDs)
			for at, yes := range row.Mask {
				require.False(t, yes && byRow[row.Row].Mask[at], "no token is learned in two ways")
			}
		}
		require.EqualValues(t, len(supervised), in.Metrics["supervised/rows"])
		losses = append(losses, float64(in.Metrics["supervised/loss"]))
	}
	require.Less(t, losses[2], losses[0])
}
