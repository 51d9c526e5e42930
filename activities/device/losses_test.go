package device

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/infra/store/tables"
	"github.com/reprise-rl/reprise/model/batch"
)

// exact makes three iterations of a run, and makes them again: in another run, from the
// batches alone, and from the first version on. All have the same bits.
func exact(t *testing.T, edits ...string) *testRun {
	t.Helper()
	edits = append([]string{`credit.algorithm="reinforce_pp"`, "update.minibatch=4", "update.learning_rate=0.03"}, edits...)
	again := fresh(t, edits...)
	for range 3 {
		require.False(t, again.iterate(t).Update.Skipped)
	}
	r := freshIn(t, modelsOf(t, again.store), edits...)
	r.iterate(t)
	first := *r
	last := r.iterate(t)
	r.iterate(t)
	require.Equal(t, again.head, r.head)
	r.rebuilt(t)

	r.forget(t)
	first.restore(t, activities.RestoreInput{})
	repeated, err := first.Iterate(t.Context(), first.iteration())
	require.NoError(t, err)
	last.Timings, repeated.Timings = nil, nil
	require.Equal(t, last, repeated)
	return r
}

// Each surrogate, and each ratio, trains exactly; the first ratio of fresh rows is 1.
func TestSurrogates(t *testing.T) {
	t.Parallel()
	for name, edits := range map[string][]string{
		"cispo":           {`update.surrogate="cispo"`},
		"sapo":            {`update.surrogate="sapo"`, `update.aggregation="seq_mean_token_mean"`},
		"dppo_tv":         {`update.surrogate="dppo_tv"`, "update.clip_low=0.001", "update.clip_high=0.001"},
		"dppo_kl":         {`update.surrogate="dppo_kl"`, "update.clip_low=1e-6", "update.clip_high=1e-6"},
		"gmpo":            {`update.surrogate="gmpo"`, `update.aggregation="seq_mean_token_mean"`, "update.clip_low=0.001", "update.clip_high=0.001"},
		"turn":            {`update.ratio="turn"`, "update.clip_low=0.001", "update.clip_high=0.001"},
		"off-policy mask": {"update.off_policy_limit=1e-6", "update.epochs=2"},
		"sum":             {`update.aggregation="sum_constant"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := exact(t, edits...)
			m := r.commits[0].Metrics
			require.Positive(t, m["actor/ratio_max"], "the second step is off policy")
			if name == "dppo_tv" || name == "dppo_kl" || name == "gmpo" || name == "turn" {
				require.Positive(t, m["actor/pg_clipfrac"])
			}
			if name == "off-policy mask" {
				require.Positive(t, m["actor/off_policy_masked_fraction"])
				require.Less(t, float64(m["actor/off_policy_masked_fraction"]), 1.0)
			} else {
				require.NotContains(t, m, "actor/off_policy_masked_fraction")
			}
		})
	}
}

// In the decoupled regime stale rows are scored again when the update begins, and all rows
// have weights; of fresh rows they are 1 but for rounding.
func TestDecoupled(t *testing.T) {
	t.Parallel()
	for name, edits := range map[string][]string{
		"replay, token":          {"freshness.replay_iterations=2", `update.mismatch.weight="token"`},
		"replay, turn":           {"freshness.replay_iterations=2", `update.mismatch.weight="turn"`, "update.mismatch.normalize=true"},
		"reuse, sequence":        {"freshness.reuse=3", `update.mismatch.weight="sequence"`, "update.mismatch.cap=1.5"},
		"online, icepop":         {"freshness.online=3", "update.mismatch.cap=1.01", `update.mismatch.mask="token"`, "update.mismatch.mask_low=0.99", "update.mismatch.mask_high=1.01"},
		"online, geometric, gae": {"freshness.online=3", `update.mismatch.weight="none"`, `update.mismatch.mask="geometric"`, "update.mismatch.mask_low=0.99999", "update.mismatch.mask_high=1", `credit.algorithm="gae"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := exact(t, append(edits, `update.mismatch.regime="decoupled"`)...)
			fresh, stale := r.commits[0].Metrics, r.commits[2].Metrics
			require.InDelta(t, 0, float64(fresh["rollout_corr/k3_kl"]), 1e-9)
			require.Greater(t, float64(stale["rollout_corr/k3_kl"]), 1e-6, "the policy has moved on")
			require.LessOrEqual(t, float64(stale["rollout_corr/rollout_is_eff_sample_size"]), 1.0)
			if name == "online, icepop" || name == "online, geometric, gae" {
				require.Positive(t, stale["rollout_corr/rollout_rs_masked_fraction"])
				require.LessOrEqual(t, float64(stale["rollout_corr/rollout_is_max"]), 1.01)
			} else {
				require.InDelta(t, 1, float64(fresh["rollout_corr/rollout_is_mean"]), 1e-4)
				require.Zero(t, stale["rollout_corr/rollout_rs_masked_fraction"])
			}
			for _, row := range r.batch(t, r.commits[2]) {
				require.NotNil(t, row.Columns[batch.RolloutLogProbs])
			}
		})
	}
}

// The ratio compares with the version that the update begins with, so the first step on stale
// rows is not clipped; without a regime it is.
func TestDecoupledRatio(t *testing.T) {
	t.Parallel()
	ratios := func(edits ...string) canon.Float {
		r := fresh(t, append(edits, "freshness.reuse=2", "update.learning_rate=0.03")...)
		r.iterate(t)
		return r.iterate(t).Metrics["actor/ratio_max"]
	}
	require.Zero(t, ratios(`update.mismatch.regime="decoupled"`))
	require.Positive(t, ratios())
}

// An update in pieces, each of one micro-batch, scores and weighs as one in a single piece.
func TestDecoupledInPieces(t *testing.T) {
	t.Parallel()
	var heads []string
	for _, edit := range []string{"limits.update_rows=4", "limits.update_rows=1024"} {
		r := fresh(t, edit, "freshness.reuse=2", `update.mismatch.regime="decoupled"`, "update.minibatch=4")
		r.iterate(t)
		heads = append(heads, r.iterate(t).StateAfter)
	}
	require.Equal(t, heads[0], heads[1])
}

// In the bypass regime the old log-probs of a batch are the sampler's.
func TestBypass(t *testing.T) {
	t.Parallel()
	r := exact(t, `update.mismatch.regime="bypass"`, "freshness.replay_iterations=1")
	decoupled := fresh(t, `update.mismatch.regime="decoupled"`)
	in := decoupled.iterate(t)
	for i, row := range decoupled.batch(t, in) {
		got := r.batch(t, r.commits[0])[i]
		require.Equal(t, row.Columns[batch.RolloutLogProbs], got.Columns[batch.OldLogProbs])
		require.Nil(t, got.Columns[batch.RolloutLogProbs])
	}
	require.NotContains(t, r.commits[2].Metrics, "rollout_corr/k3_kl")
}

// A batch without the sampler's log-probs has no weights.
func TestDecoupledNeedsTheSampler(t *testing.T) {
	r := fresh(t, `update.mismatch.regime="decoupled"`)
	in := r.iterate(t)
	rows := r.batch(t, in)
	rows[0].Columns[batch.RolloutLogProbs] = nil
	_, err := mismatchOf(r.Settings.Update.Mismatch, rows, 0)
	require.ErrorContains(t, err, "no log-probs of the sampler")
	m, err := mismatchOf(r.Settings.Update.Mismatch, rows[1:], 1)
	require.NoError(t, err)
	require.Len(t, m.stale, len(rows)-1, "of another version")
}

// Replayed rows of a run without weights, which a run with weights continues, count as
// sampled by the policy that Score used.
func TestDecoupledAfterARunWithout(t *testing.T) {
	t.Parallel()
	before := fresh(t, "freshness.replay_iterations=1")
	kept := before.iterate(t).Batch
	body, err := store.GetArtifact(t.Context(), before.store, *kept)
	require.NoError(t, err)
	r := fresh(t, "freshness.replay_iterations=1", `update.mismatch.regime="decoupled"`)
	r.iterate(t)
	require.NoError(t, r.store.Put(t.Context(), kept.Key, body, store.PutOptions{}))
	it := r.iteration()
	it.Replay = []store.Ref{*kept}
	in, err := r.Iterate(t.Context(), it)
	require.NoError(t, err)
	replayed := 0
	for _, row := range r.batch(t, in) {
		if row.Origin == 0 {
			replayed++
			require.Equal(t, row.Columns[batch.OldLogProbs], row.Columns[batch.RolloutLogProbs])
		}
	}
	require.Positive(t, replayed)
}

// Rows whose advantages are all small are left out, and an update ends before a step that is too far from the policy that
// sampled; both are as exact as the rest. A first step on fresh rows is 0 away.
func TestLoopsRules(t *testing.T) {
	t.Parallel()
	r := exact(t, "selection.least_advantage=0.01", "update.stop_kl=1e-9", "update.epochs=8")
	m, made := r.commits[0].Metrics, r.commits[0].Update.Steps
	require.Positive(t, m["actor/steps_left_out"])
	require.Less(t, made, int64(8), "the steps of the first time through the rows, or fewer")
	require.Greater(t, m["actor/trajectory_kl"], canon.Float(1e-9))
	require.Contains(t, m, "rollout/small_advantages")

	// 20 nats a trajectory are within reach.
	whole := fresh(t, "update.minibatch=4", "update.stop_kl=20", "update.epochs=8", "update.learning_rate=0.3")
	far := whole.iterate(t).Metrics
	require.Greater(t, far["actor/trajectory_kl"], canon.Float(20))
	require.Positive(t, far["actor/steps_left_out"])
	near := fresh(t, "update.minibatch=4", "selection.least_advantage=0.01", "update.stop_kl=20")
	require.Zero(t, near.iterate(t).Metrics["actor/steps_left_out"])

	// Replayed rows are far before the first step: none is made, and the run goes on with the version it had.
	stale := fresh(t, `credit.algorithm="reinforce_pp"`, "freshness.replay_iterations=1", "update.learning_rate=0.03", "update.stop_kl=1e-9")
	first := stale.iterate(t)
	require.False(t, first.Update.Skipped)
	it := stale.iteration()
	it.Replay = []store.Ref{*first.Batch}
	state := stale.state
	in, err := stale.Iterate(t.Context(), it)
	require.NoError(t, err)
	require.True(t, in.Update.Skipped)
	require.Zero(t, in.Update.Steps)
	require.Greater(t, in.Metrics["actor/trajectory_kl"], canon.Float(1e-9))
	require.Positive(t, in.Metrics["actor/grad_norm"], "of the step that was not made")
	require.Equal(t, state, in.StateAfter)

	none := fresh(t, `credit.algorithm="leave_one_out"`, "selection.least_advantage=1000")
	in = none.iterate(t)
	require.True(t, in.Update.Skipped)
	require.Nil(t, in.Batch)
	require.EqualValues(t, in.Metrics["rollout/selected_rows"], in.Metrics["rollout/small_advantages"])
}

// A selection by exact entropies scores every row first, unless the sampler has, and learns from the groups with the
// highest; the scores of their rows are used again.
func TestExactEntropies(t *testing.T) {
	t.Parallel()
	for _, bySampler := range []bool{true, false} {
		exactEntropies(t, bySampler)
	}
}

func exactEntropies(t *testing.T, bySampler bool) {
	r := exact(t, fmt.Sprint("policy.exact=", bySampler), `selection={"method":"top_count","count":1,"metric":"exact_entropy"}`, "rollout.groups=3", "update.minibatch=0")
	in := r.commits[0]
	scores, err := tables.Get[episode.ScoreRow](t.Context(), r.store, *in.Scores)
	require.NoError(t, err)
	rows, err := tables.Get[episode.TrajectoryRow](t.Context(), r.store, in.Trajectories)
	require.NoError(t, err)
	all := scores
	if bySampler {
		require.Less(t, len(scores), len(rows), "of the selected alone")
		all, err = episode.BySampler(rows)
		require.NoError(t, err)
	}
	require.Len(t, all, len(rows))
	alone, err := r.Host.Credit(t.Context(), activities.CreditInput{Run: r.Run, Settings: in.Settings, Trajectories: in.Trajectories, Scores: in.Scores})
	require.NoError(t, err)
	require.Equal(t, in.Batch, alone.Batch, "as if the credit were a step of its own")
	require.NoError(t, run.AddEntropies(rows, all))
	sums := map[int32]float64{}
	var kept []int32
	for _, row := range rows {
		sums[row.Group] += row.Entropy
		if row.Selected && !slices.Contains(kept, row.Group) {
			kept = append(kept, row.Group)
		}
	}
	require.Len(t, kept, 1)
	for _, sum := range sums {
		require.GreaterOrEqual(t, sums[kept[0]], sum)
	}
	learned := r.batch(t, in)
	require.Len(t, learned, len(rows)/3)
	of := run.ScoresOf(episode.SelectedOf(rows), scores)
	for i, row := range learned {
		require.Equal(t, of[i].Row, row.Row)
		at := slices.Index(row.Mask, true)
		require.Equal(t, of[i].LogProbs[0], row.Columns[batch.OldLogProbs][at])
	}
}

// A run that is started again with the same id and another model has its own reference.
func TestReferenceOfARunStartedAgain(t *testing.T) {
	t.Parallel()
	for _, steps := range []string{"2", "3"} {
		r := fresh(t, `update.kl_in="loss"`, "policy.warm_start.steps="+steps)
		require.Zero(t, r.iterate(t).Metrics["actor/kl_loss"], "version 0 is the reference")
	}
}
