package device

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/tables"
)

// Stop texts end turns wherever they are sampled: in passes, whole and in chunks, with kept values, in
// blocks, in a search, late, and in an evaluation. No bit depends on how many tokens an execution samples.
func TestStopAt(t *testing.T) {
	t.Parallel()
	play := func(edits ...string) *testRun {
		r := fresh(t, append([]string{"rollout.pass_rows=2", "rollout.max_new_tokens=6", "evaluation.every=1", `rollout.stop_at=["e","o"]`}, edits...)...)
		r.iterate(t)
		r.iterate(t)
		return r
	}
	same := func(a, b *testRun) {
		t.Helper()
		for i := range a.commits {
			require.Equal(t, a.commits[i].Trajectories.Digest, b.commits[i].Trajectories.Digest)
			require.Equal(t, a.commits[i].StateAfter, b.commits[i].StateAfter)
			require.Equal(t, a.commits[i].Evaluations[0].Trajectories.Digest, b.commits[i].Evaluations[0].Trajectories.Digest)
		}
	}
	whole := play()
	whole.stopped(t)
	same(whole, play("rollout.chunk_tokens=2"))
	pieces := play("rollout.chunk_tokens=1", "limits.generate_rows=4")
	same(whole, pieces)
	pieces.rebuilt(t)

	blocks := play("rollout.block_rows=4")
	blocks.stopped(t)
	same(blocks, play("rollout.block_rows=4", "rollout.chunk_tokens=1"))

	for _, edits := range [][]string{
		{"rollout.keep_values=true"}, {`rollout.search="beam"`, "rollout.candidates=2"}, {"rollout.lag=1", `update.mismatch={"regime":"decoupled"}`},
	} {
		play(edits...).stopped(t)
	}

	// Without the texts, version 0 samples the same and more.
	off := play("rollout.stop_at=[]", "iterations=2")
	more, cut := off.generated(t, off.commits[0].Turns[:1]), 0
	for i, row := range whole.generated(t, whole.commits[0].Turns[:1]) {
		n := len(row.SampledIDs)
		require.Equal(t, more[i].SampledIDs[:n], row.SampledIDs)
		require.Equal(t, more[i].RolloutLogProbs[:n], row.RolloutLogProbs)
		if n < len(more[i].SampledIDs) {
			cut++
		}
	}
	require.Positive(t, cut)
}

// generated are the rows of some turns.
func (r *testRun) generated(t *testing.T, turns []store.TurnRefs) (out []episode.GenerateRow) {
	t.Helper()
	for _, turn := range turns {
		rows, err := tables.Get[episode.GenerateRow](t.Context(), r.store, turn.Generate)
		require.NoError(t, err)
		out = append(out, rows...)
	}
	return out
}

// stopped checks that the turns of a run and its evaluations end with the first token that holds an
// e or an o, are then not cut, and that the token that closes a message follows them unsampled.
func (r *testRun) stopped(t *testing.T) {
	t.Helper()
	rc := r.context(t)
	closing, err := rc.Tokenizer.Closing()
	require.NoError(t, err)
	holds := func(ids []int32) bool { return strings.ContainsAny(rc.Tokenizer.Decode(ids), "eo") }
	texts, ends, limits, closed := 0, 0, 0, 0
	turn := func(sampled []int32) (truncated bool) {
		require.NotEmpty(t, sampled)
		last := len(sampled) - 1
		require.False(t, holds(sampled[:last]), "a token after the stop text is kept")
		switch {
		case holds(sampled):
			texts++
		case slices.Contains(rc.Tokenizer.EndOfTurn(), sampled[last]):
			ends++
		default:
			limits++
			require.Len(t, sampled, rc.Training.MaxNewTokens)
			return true
		}
		return false
	}
	for _, c := range r.commits {
		for _, row := range r.generated(t, c.Turns) {
			if row.Alive {
				require.Equal(t, turn(row.SampledIDs), row.Truncated)
				require.Len(t, row.RolloutLogProbs, len(row.SampledIDs))
			}
		}
		for _, ref := range []store.Ref{c.Trajectories, *c.Evaluations[0].Trajectories} {
			rows, err := tables.Get[episode.TrajectoryRow](t.Context(), r.store, ref)
			require.NoError(t, err)
			for _, row := range rows {
				truncated := false
				for k := range row.Turns() {
					context, sampled := row.Turn(k)
					truncated = turn(sampled) || truncated
					if k > 0 {
						before, said := row.Turn(k - 1)
						if end := len(before) + len(said); said[len(said)-1] != closing {
							require.Equal(t, closing, context[end])
							closed++
						}
					}
				}
				require.Equal(t, truncated, row.Truncated)
			}
		}
		require.Less(t, float64(c.Metrics["truncated/mean"]), 1.0)
	}
	require.Positive(t, texts)
	require.Positive(t, limits, "turns that no text ends")
	require.Positive(t, closed)
	t.Logf("%d turns ended by a text, %d by a token, %d cut; %d closed", texts, ends, limits, closed)
	r.forget(t)
	state := r.state
	require.Equal(t, state, r.restore(t, activities.RestoreInput{}).State)
}
