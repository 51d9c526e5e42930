package device

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/infra/store/tables"
	"github.com/reprise-rl/reprise/model/mutual"
)

// The figures are of the iterations that are due; the moving averages continue in
// between, and the update is the same with them and without.
func TestDiagnose(t *testing.T) {
	t.Parallel()
	r := fresh(t, "diagnostics.every=2", "diagnostics.samples=5")
	mi := mutual.FirstTurn + "mi_estimate"
	ema := mutual.Trajectory + mutual.DeviationName
	first, second, third := r.iterate(t), r.iterate(t), r.iterate(t)
	require.Contains(t, first.Metrics, mi)
	require.NotContains(t, second.Metrics, mi)
	require.Contains(t, third.Metrics, mi)
	require.Equal(t, first.Metrics[ema], second.Metrics[ema])
	now := float64(third.Metrics[mutual.Trajectory+"marginal_std"])
	require.InDelta(t, 0.9*float64(first.Metrics[ema])+0.1*now, float64(third.Metrics[ema]), 1e-12)
	require.LessOrEqual(t, float64(first.Metrics[mi]), math.Log(2)+1e-9, "of two prompts")
	require.InDelta(t, math.Log(5), float64(first.Metrics[mutual.Trajectory+"mi_upper_bound"]), 1e-12)
	in := activities.DiagnoseInput{Policy: r.version(), Iteration: 2, Settings: r.Settings, Trajectories: third.Trajectories, Before: activities.Averages(second.Metrics)}
	in.Policy.State = "feed"
	_, err := r.Device.Diagnose(t.Context(), in)
	require.ErrorIs(t, err, activities.ErrNotResident)

	plain := fresh(t)
	for range 3 {
		plain.iterate(t)
	}
	require.Equal(t, plain.state, r.state)
	require.NotContains(t, plain.commits[0].Metrics, mi)
}

// The recorded ids are scored: each reasoning under its own prompt has the log-probs that
// Score gives them.
func TestDiagnoseScoresWhatWasSampled(t *testing.T) {
	r := fresh(t)
	version := r.version()
	r.Plan.Snapshot.Every = 1
	in, err := r.Iterate(t.Context(), r.iteration())
	require.NoError(t, err)
	r.restore(t, activities.RestoreInput{Version: version})
	rows, err := tables.Get[episode.TrajectoryRow](t.Context(), r.store, in.Trajectories)
	require.NoError(t, err)
	scores, err := tables.Get[episode.ScoreRow](t.Context(), r.store, *in.Scores)
	require.NoError(t, err)
	w, done, err := r.Device.begin(t.Context(), r.Run)
	require.NoError(t, err)
	defer done(&err)
	p, err := r.Device.Engine.programsFor(w.Context, r.Run, w.Shapes(w.Training, 1))
	require.NoError(t, err)
	c := firstTurns(w.Context, rows, activities.DiagnoseInput{Policy: version})
	require.Len(t, c.prompts, 2)
	pairs, places := pairsOf([]estimate{{pairs: c}}, w.Train.Update.MicroBatch)
	require.Zero(t, places%w.Train.Update.MicroBatch)
	scored, err := w.scorePairs(t.Context(), p.Scorer, pairs, 1)
	require.NoError(t, err)
	require.Len(t, scored, len(c.reasonings)*len(c.prompts))
	drawn := sampleRows(w.Context, rows, diagnosisAddress(w.Context, activities.DiagnoseInput{Policy: version}, ofFirstTurns))
	require.Len(t, drawn, len(c.reasonings))
	for i, row := range drawn {
		sum := 0.0
		for _, l := range scores[row.Row].LogProbs[:len(c.reasonings[i])] {
			sum += float64(l)
		}
		require.InDelta(t, sum, scored[i*len(c.prompts)+c.own[i]].LogProb, 1e-4)
	}
}

func TestReasoning(t *testing.T) {
	w := newWalked(t)
	rc, err := w.Host.Contexts.Read(t.Context(), w.store, w.Run)
	require.NoError(t, err)
	require.False(t, rc.Training.Protocol.Think)
	ids := w.tok.Encode("Right || Left</answer> and more")
	require.Equal(t, "Right || Left", rc.Tokenizer.Decode(reasoning(rc, ids)))
	require.Empty(t, reasoning(rc, w.tok.Encode("</answer>")))
	require.Equal(t, "Right", rc.Tokenizer.Decode(reasoning(rc, append(w.tok.Encode("Right"), rc.Tokenizer.EndOfTurn()[0]))))
	rc.Training.Protocol.Think = true
	require.Equal(t, "hm <", rc.Tokenizer.Decode(reasoning(rc, w.tok.Encode("hm <</think><answer>Right</answer>"))))
}

func TestTurnsOfTrajectories(t *testing.T) {
	r := episode.TrajectoryRow{IDs: []int32{1, 2, 3, 4, 5, 6, 7}, PromptLengths: []int32{2, 1, 1}, SampledLengths: []int32{1, 1, 1}, Restarts: []bool{true, false, true}}
	context, sampled := r.Turn(1)
	require.Equal(t, []int32{1, 2, 3, 4}, context)
	require.Equal(t, []int32{5}, sampled)
	context, sampled = r.Turn(2)
	require.Equal(t, []int32{6}, context, "behind a window a context begins anew")
	require.Equal(t, []int32{7}, sampled)
	var c scoringPairs
	for _, ids := range [][]int32{{1}, {2}, {1}} {
		c.addPrompt(ids)
	}
	require.Equal(t, []int{0, 1, 0}, c.same)
	require.Equal(t, activities.Metrics{mutual.FirstTurn + mutual.DeviationName: canon.Float(1)}, activities.Averages(activities.Metrics{mutual.FirstTurn + mutual.DeviationName: 1, "other": 2}))
}
