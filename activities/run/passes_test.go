package run

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/model/batch"
	"github.com/reprise-rl/reprise/model/methods/methodstest"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// passed are three rows of a later round: of two turns, of three and of one.
func passed() []episode.TrajectoryRow {
	return []episode.TrajectoryRow{{Row: 4, SampledLengths: []int32{1, 2}}, {Row: 7, SampledLengths: []int32{2, 1, 1}}, {Row: 9, SampledLengths: []int32{1}}}
}

// logProbs are scores of rows: each token's is −1, and in one turn, from 1, less by that of its row.
func logProbs(rows []episode.TrajectoryRow, turn int, less ...float64) (out []episode.ScoreRow) {
	for i, r := range rows {
		s := episode.ScoreRow{Row: r.Row}
		for k, n := range r.SampledLengths {
			for range n {
				l := -1.0
				if k+1 == turn {
					l -= less[i]
				}
				s.LogProbs = append(s.LogProbs, float32(l))
			}
		}
		out = append(out, s)
	}
	return out
}

// A correction follows the ratio of the turn that the pass before updated. A row without that turn keeps what it had
// from the passes before.
func TestCorrections(t *testing.T) {
	methodstest.Needs(t, "turns_reversed")
	rows := passed()
	before := logProbs(rows, 0)
	// The third turn is updated: the second row has it.
	first, err := Corrections(rows, before, logProbs(rows, 3, .5, -.125, .5), nil, 3, spec.Passes{Order: "turns_reversed"})
	require.NoError(t, err)
	require.Equal(t, []CorrectionRow{{4, 1, 1}, {7, math.Exp(.125), math.Exp(.125)}, {9, 1, 1}}, first)
	// Then the second: the first two rows have it. The third one's ratio is far above the bounds.
	first[2].Correction = 1.1
	second, err := Corrections(rows, before, logProbs(rows, 2, .0625, -.03125, 9), first, 2, spec.Passes{Order: "turns_reversed"})
	require.NoError(t, err)
	require.Equal(t, []int32{4, 7, 9}, []int32{second[0].Row, second[1].Row, second[2].Row})
	require.InDelta(t, math.Exp(-.0625), second[0].Correction, 1e-15)
	require.InDelta(t, math.Exp(.125+.03125), second[1].Correction, 1e-15)
	require.Equal(t, CorrectionRow{9, 1.1, 1}, second[2], "it has no such turn")
	// Bounds are the spec's, or 0.2 on either side.
	third, err := Corrections(rows, before, logProbs(rows, 1, -9, 9, 0), second, 1, spec.Passes{Order: "turns_reversed"})
	require.NoError(t, err)
	require.InDeltaSlice(t, []float64{1.2 * math.Exp(-.0625), .8 * math.Exp(.15625), 1.1}, []float64{third[0].Correction, third[1].Correction, third[2].Correction}, 1e-15)
	require.InDelta(t, math.Exp(9), third[0].Ratio, 1e-9, "not clipped")
	third, err = Corrections(rows, before, logProbs(rows, 1, -9, 9, 0), nil, 1, spec.Passes{Order: "turns_reversed", ClipLow: .5, ClipHigh: .25})
	require.NoError(t, err)
	require.Equal(t, []float64{1.25, .5, 1}, []float64{third[0].Correction, third[1].Correction, third[2].Correction})

	sameBytes(t, func() []CorrectionRow {
		again, err := Corrections(rows, before, logProbs(rows, 1, -9, 9, 0), second, 1, spec.Passes{Order: "turns_reversed"})
		require.NoError(t, err)
		return again
	})

	// One log-prob that is not finite spoils all, as in advantages.
	spoiled, err := Corrections(rows, before, logProbs(rows, 1, math.NaN(), 0, 0), nil, 1, spec.Passes{Order: "turns_reversed"})
	require.NoError(t, err)
	for i, c := range spoiled {
		require.Equal(t, rows[i].Row, c.Row)
		require.True(t, math.IsNaN(c.Correction) && math.IsNaN(c.Ratio))
	}
}

// Scores and corrections of other rows are refused.
func TestCorrectionsThatDoNotFit(t *testing.T) {
	methodstest.Needs(t, "turns_reversed")
	rows := passed()
	scores := func() []episode.ScoreRow { return logProbs(rows, 0) }
	moved := func() []episode.ScoreRow { s := scores(); s[1].Row = 8; return s }
	for name, c := range map[string]struct {
		before, after []episode.ScoreRow
		last          []CorrectionRow
	}{
		"fewer before":        {scores()[:2], scores(), nil},
		"fewer after":         {scores(), scores()[:2], nil},
		"fewer corrections":   {scores(), scores(), []CorrectionRow{{4, 1, 1}}},
		"another row before":  {moved(), scores(), nil},
		"another row after":   {scores(), moved(), nil},
		"another correction":  {scores(), scores(), []CorrectionRow{{4, 1, 1}, {8, 1, 1}, {9, 1, 1}}},
		"corrections swapped": {scores(), scores(), []CorrectionRow{{7, 1, 1}, {4, 1, 1}, {9, 1, 1}}},
	} {
		_, err := Corrections(rows, c.before, c.after, c.last, 1, spec.Passes{Order: "turns_reversed"})
		require.ErrorIs(t, err, store.ErrInvalid, name)
	}
	_, err := Corrections(rows, scores(), scores(), nil, 1, spec.Passes{Order: "turns"})
	require.ErrorContains(t, err, `no order of passes is named "turns"`)
	_, err = Corrections(rows, scores(), scores(), nil, 1, spec.Passes{Order: "turns_reversed", ClipLow: 2})
	require.ErrorIs(t, err, store.ErrInvalid)
}

// A turn's figures are those of its own tokens.
func TestOfTurnOfSampled(t *testing.T) {
	sampled := []float32{1, 2, 3, 4, 5, 6}
	for turn, want := range [][]float64{1: {1, 2}, 2: {3}, 3: {4, 5, 6}, 4: nil} {
		if turn > 0 {
			require.Equal(t, want, ofTurn(sampled, []int32{2, 1, 3}, turn))
		}
	}
	require.Empty(t, ofTurn(sampled, []int32{0, 6}, 1))
}

// Each row's advantages are multiplied by its own correction, and the figures are over the rows.
func TestCorrect(t *testing.T) {
	s := TrainingSignal{Advantages: [][]float64{{1, 2}, {3}, {-4}}}
	s.Correct([]CorrectionRow{{4, 2, 9}, {7, .5, 9}, {9, 1, 9}})
	require.Equal(t, [][]float64{{2, 4}, {1.5}, {-4}}, s.Advantages)
	require.Equal(t, activities.Metrics{
		"passes/turn_3/ratio_mean": canon.Float(2), "passes/turn_3/correction_mean": canon.Float(1), "passes/turn_3/correction_min": canon.Float(.5), "passes/turn_3/correction_max": canon.Float(1.5),
	}, CorrectionMetrics(3, []CorrectionRow{{4, .5, 1}, {7, 1.5, 2}, {9, 1, 3}}))
}

// The turns are updated from the last to the first that a row learns from; each pass has the rows that have the turn,
// and their tokens of it.
func TestTurnsOfPasses(t *testing.T) {
	rows := []batch.Row{
		{Row: 0, Turns: []int32{0, 1, 0, 2, 2}, Mask: []bool{false, true, false, true, true}},
		{Row: 1, Turns: []int32{0, 1, 0, 4, 0}, Mask: []bool{false, true, false, true, false}},
		{Row: 2, Turns: []int32{0, 5, 3, 2, 0}, Mask: []bool{false, false, false, true, false}}, // 3 and 5 are not learned from
	}
	require.Equal(t, []int{4, 2, 1}, TurnsBackwards(rows))
	require.Nil(t, TurnsBackwards(nil))
	for turn, want := range map[int]map[int32][]bool{
		4: {1: {false, false, false, true, false}},
		3: {},
		2: {0: {false, false, false, true, true}, 2: {false, false, false, true, false}},
		1: {0: {false, true, false, false, false}, 1: {false, true, false, false, false}},
	} {
		got := map[int32][]bool{}
		last := int32(-1)
		for _, r := range OfTurn(rows, turn) {
			require.Greater(t, r.Row, last, "in their order")
			got[r.Row], last = r.Mask, r.Row
		}
		require.Equal(t, want, got, "turn %d", turn)
	}
	require.Equal(t, []bool{false, true, false, true, true}, rows[0].Mask, "the rows are as before")
}
