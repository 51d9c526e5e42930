package host

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/model/batch"
)

// The turns are updated one after another. A row that has no token of a turn keeps what the turns after it have left of
// its advantages.
func TestPasses(t *testing.T) {
	p := begin(t, `{"credit": {"algorithm": "seeupo"}, "update": {"micro_batch": 2, "passes": {"order": "turns_reversed"}}}`)
	p.say = func(_ activities.Rollout, turn int, row episode.GenerateRow) string {
		if turn == 1 {
			return []string{"Left</answer>", "Right</answer>", "Right || Right</answer>", "Left</answer>"}[row.Member]
		}
		return []string{"Left</answer>", "Right || Right</answer>", "Right</answer>", "Right</answer>"}[row.Member]
	}
	_, selected := p.selected(0, activities.SelectInput{})
	rows := p.rows(selected)
	var turns []int
	for _, r := range rows[:4] {
		turns = append(turns, r.Turns())
	}
	require.Equal(t, []int{3, 2, 2, 3}, turns)
	in, first := p.credited(activities.CreditInput{}, selected)
	require.Equal(t, []int{3, 2, 1}, first.Turns)
	require.Nil(t, first.Corrections)
	learned := p.batch(first.Batch)
	require.Equal(t, []int32{0, 3, 4, 7}, rowsOf(learned), "those that have a third turn")
	whole := map[int32]float64{} // the advantages of the first pass
	advantage := func(r batch.Row) float64 { return float64(r.Columns[batch.Advantages][slices.Index(r.Mask, true)]) }
	for _, r := range learned {
		whole[r.Row] = advantage(r)
	}

	// After the third turn the log-probs of the rows that have it have moved, each by its own.
	moved := func(scores []episode.ScoreRow, turn int, by func(row int32) float64) []episode.ScoreRow {
		out := slices.Clone(scores)
		for i := range out {
			r := rows[out[i].Row]
			out[i].LogProbs = slices.Clone(out[i].LogProbs)
			at := 0
			for k, n := range r.SampledLengths {
				for range n {
					if k+1 == turn {
						out[i].LogProbs[at] += float32(by(r.Row))
					}
					at++
				}
			}
		}
		return out
	}
	before := read[episode.ScoreRow](p, *in.Scores)
	ratio := func(row int32) float64 { return math.Log(1 + float64(row)/64) }
	after := moved(before, 3, ratio)
	afterRef := putTable(p, after)
	in.Pass = &activities.CreditPass{Turn: 2, Updated: 3, Before: *in.Scores, After: afterRef}
	second, err := p.h.Credit(t.Context(), in)
	require.NoError(t, err)
	require.Nil(t, second.Turns)
	corrections := read[run.CorrectionRow](p, *second.Corrections)
	require.Len(t, corrections, 8)
	for i, c := range corrections {
		want := 1.0
		if turns[i%4] == 3 {
			want = 1 + float64(i)/64
		}
		require.EqualValues(t, i, c.Row)
		require.InDelta(t, want, c.Correction, 1e-5)
	}
	require.Contains(t, second.Metrics, "passes/turn_3/ratio_mean")
	learned = p.batch(second.Batch)
	require.Equal(t, []int32{0, 1, 2, 3, 4, 5, 6, 7}, rowsOf(learned), "all have a second turn")
	for _, r := range learned {
		if a, ok := whole[r.Row]; ok {
			require.InDelta(t, a*corrections[r.Row].Correction, advantage(r), 1e-6)
		}
		at := slices.Index(r.Mask, true)
		require.EqualValues(t, 2, r.Turns[at])
		n := 0
		for i := range at {
			if r.Turns[i] > 0 {
				n++
			}
		}
		require.Equal(t, after[r.Row].LogProbs[n], r.Columns[batch.OldLogProbs][at], "the state with which the pass begins")
	}

	// After the second turn those with a third keep M of it.
	last := moved(after, 2, func(row int32) float64 { return -ratio(row) })
	in.Pass = &activities.CreditPass{Turn: 1, Updated: 2, Before: afterRef, After: putTable(p, last), Corrections: second.Corrections}
	third, err := p.h.Credit(t.Context(), in)
	require.NoError(t, err)
	for i, c := range read[run.CorrectionRow](p, *third.Corrections) {
		require.InDelta(t, corrections[i].Correction/(1+float64(i)/64), c.Correction, 1e-5)
	}
	require.Contains(t, third.Metrics, "passes/turn_2/ratio_mean")
	for _, r := range p.batch(third.Batch) {
		require.EqualValues(t, 1, r.Turns[slices.Index(r.Mask, true)])
	}
	// The corrections of a pass that are missing make another batch.
	in.Pass.Corrections = nil
	without, err := p.h.Credit(t.Context(), in)
	require.NoError(t, err)
	require.NotEqual(t, third.Batch, without.Batch)
	for name, change := range map[string]func(*activities.CreditPass){
		"before": func(c *activities.CreditPass) { c.Before.Key = "runs/r/nothing" }, "after": func(c *activities.CreditPass) { c.After.Key = "runs/r/nothing" },
		"corrections": func(c *activities.CreditPass) { gone := afterRef; gone.Key = "runs/r/nothing"; c.Corrections = &gone },
	} {
		bad := *in.Pass
		change(&bad)
		broken := in
		broken.Pass = &bad
		_, err := p.h.Credit(t.Context(), broken)
		require.ErrorContains(t, err, " pass", name)
	}
}

// rowsOf are the trajectories of a batch's rows.
func rowsOf(rows []batch.Row) (out []int32) {
	for _, r := range rows {
		out = append(out, r.Row)
	}
	return out
}
