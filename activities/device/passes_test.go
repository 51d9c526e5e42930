package device

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/activities/episode/recorded"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/tables"
	"github.com/reprise-rl/reprise/model/batch"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// inPasses is a run whose updates go turn by turn. Walks end after different numbers of turns.
func inPasses(t *testing.T, edits ...string) *testRun {
	return fresh(t, append([]string{
		`update.passes.order="turns_reversed"`, `credit.algorithm="seeupo"`, `update.ratio="turn"`, `update.aggregation="seq_mean_token_mean"`,
		"rollout.turns=3", "update.learning_rate=0.03",
	}, edits...)...)
}

// An update in passes trains exactly: twice, rebuilt from its batches, and again from a version that
// is rebuilt. Each pass learns from one turn with log-probs of the policy that it begins with, and
// its corrections are those of SeeUPO, which this test computes anew from the stored scores.
func TestPasses(t *testing.T) {
	t.Parallel()
	again := inPasses(t)
	for range 2 {
		require.False(t, again.iterate(t).Update.Skipped)
	}
	r := inPasses(t)
	for range 2 {
		r.iterate(t)
	}
	require.Equal(t, again.head, r.head)
	r.rebuilt(t)
	for _, in := range r.commits {
		require.Nil(t, in.Batch)
		require.EqualValues(t, len(in.Passes), in.Update.Steps)
		require.Greater(t, len(in.Passes), 1)
		rows, err := recorded.Selected(t.Context(), r.store, in.Trajectories)
		require.NoError(t, err)
		m := map[int32]float64{}
		before := *in.Scores
		for i, p := range in.Passes {
			require.Equal(t, len(in.Passes)-i, p.Turn)
			after := before
			if i > 0 {
				after = *p.Scores
				r.corrected(t, in.Passes[i-1].Turn, rows, before, after, *p.Corrections, m)
			} else {
				require.Nil(t, p.Scores)
				require.Nil(t, p.Corrections)
			}
			r.checkBatch(t, in, p, rows, after, m)
			before = after
		}
	}
}

// corrected checks the corrections of a pass, and puts them into m, where a row that is missing has 1.
func (r *testRun) corrected(t *testing.T, updated int, rows []episode.TrajectoryRow, before, after, stored store.Ref, m map[int32]float64) {
	t.Helper()
	was, err := tables.Get[episode.ScoreRow](t.Context(), r.store, before)
	require.NoError(t, err)
	is, err := tables.Get[episode.ScoreRow](t.Context(), r.store, after)
	require.NoError(t, err)
	corrections, err := tables.Get[run.CorrectionRow](t.Context(), r.store, stored)
	require.NoError(t, err)
	require.Len(t, corrections, len(rows))
	clip := func(v float64) float64 { return min(max(v, 0.8), 1.2) }
	moved := false
	for i, row := range rows {
		if _, known := m[row.Row]; !known {
			m[row.Row] = 1
		}
		ratio := 1.0
		if updated <= row.Turns() {
			from, n, sum := episode.Total(row.SampledLengths[:updated-1]), int(row.SampledLengths[updated-1]), 0.0
			for at := from; at < from+n; at++ {
				sum += float64(is[i].LogProbs[at]) - float64(was[i].LogProbs[at])
			}
			ratio = math.Exp(sum / float64(n))
			m[row.Row] = clip(m[row.Row] * clip(ratio))
		}
		require.Equal(t, run.CorrectionRow{Row: row.Row, Correction: m[row.Row], Ratio: ratio}, corrections[i])
		moved = moved || ratio != 1
	}
	require.True(t, moved, "no pass changed anything")
}

// checkBatch checks a pass's batch: its rows, its tokens, their old log-probs and their advantages.
func (r *testRun) checkBatch(t *testing.T, in activities.CommitInput, p store.Pass, rows []episode.TrajectoryRow, scored store.Ref, m map[int32]float64) {
	t.Helper()
	scores, err := tables.Get[episode.ScoreRow](t.Context(), r.store, scored)
	require.NoError(t, err)
	rc, err := r.Host.Contexts.Read(t.Context(), r.store, r.Run)
	require.NoError(t, err)
	learned, err := rc.ReadBatch(t.Context(), r.store, p.Batch)
	require.NoError(t, err)
	l := run.NewCreditInput(rows)
	require.NoError(t, l.Scored(rows, scores, false, spec.Credit{}))
	signal, err := l.TrainingSignal(in.Settings, rows, nil)
	require.NoError(t, err)
	at := 0
	for i, row := range rows {
		if p.Turn > row.Turns() {
			continue // it ended before
		}
		b, n := learned[at], episode.Total(row.SampledLengths[:p.Turn-1])
		require.Equal(t, row.Row, b.Row)
		for k, yes := range b.Mask {
			require.Equal(t, int(b.Turns[k]) == p.Turn, yes)
			if yes {
				correction, known := m[row.Row]
				if !known {
					correction = 1
				}
				require.Equal(t, scores[i].LogProbs[n], b.Columns[batch.OldLogProbs][k])
				require.Equal(t, float32(signal.Advantages[i][n]*correction), b.Columns[batch.Advantages][k])
				n++
			}
		}
		require.Equal(t, episode.Total(row.SampledLengths[:p.Turn]), n)
		at++
	}
	require.Len(t, learned, at)
}

// A worker that is lost between two passes rebuilds the state from the version before and the passes
// that are done; one that holds a pass goes on from there.
func TestRestoreBetweenPasses(t *testing.T) {
	t.Parallel()
	r := inPasses(t)
	before := r.version()
	in := r.iterate(t)
	var passed []activities.PendingUpdate
	for _, p := range in.Passes {
		passed = append(passed, activities.PendingUpdate{Batch: p.Batch, Settings: in.Settings, State: p.State})
	}
	for n := range len(passed) + 1 {
		r.forget(t)
		got := r.restore(t, activities.RestoreInput{Version: before, Passed: passed[:n]})
		require.True(t, got.Done)
		require.Equal(t, n, got.Telemetry.Recomputed)
		want := before.State
		if n > 0 {
			want = passed[n-1].State
		}
		require.Equal(t, want, got.State)
		require.Equal(t, before.State, got.Before)
		if n < len(passed) {
			got = r.restore(t, activities.RestoreInput{Version: before, Passed: passed[:n+1]})
			require.Equal(t, passed[n].State, got.State)
			require.Equal(t, 1, got.Telemetry.Recomputed, "the passes before are in memory")
		}
	}
}
