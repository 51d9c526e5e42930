package run

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/model/batch"
	"github.com/reprise-rl/reprise/model/credit"
	"github.com/reprise-rl/reprise/model/methods"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// CorrectionsArtifact names the tables of corrections.
const CorrectionsArtifact = "corrections"

// CorrectionRow is what the passes before have left of a row's advantages.
type CorrectionRow struct {
	Row int32 `parquet:"row"`
	// Correction is M: the pass learns from the advantages times it.
	Correction float64 `parquet:"correction"`
	// Ratio is that of the policies after and before the pass before, over the row's tokens of the
	// turn that it updated; 1 if the row has no such turn.
	Ratio float64 `parquet:"ratio"`
}

// Corrections computes those of a pass from the scores of the selected rows before the pass
// before, and after it. last are those of that pass; nil if it was the first. A log-prob that is
// not finite makes every correction NaN, as it does with advantages.
func Corrections(rows []episode.TrajectoryRow, before, after []episode.ScoreRow, last []CorrectionRow, updated int,
	p spec.Passes) ([]CorrectionRow, error) {
	if len(before) != len(rows) || len(after) != len(rows) || last != nil && len(last) != len(rows) {
		return nil, fmt.Errorf("%d rows have %d scores before the pass, %d after it and %d corrections: %w", len(rows), len(before), len(after), len(last), store.ErrInvalid)
	}
	m := make([]float64, len(rows))
	var was, is [][]float64
	for i, r := range rows {
		if before[i].Row != r.Row || after[i].Row != r.Row || last != nil && last[i].Row != r.Row {
			return nil, fmt.Errorf("row %d has the scores or the correction of another row: %w", r.Row, store.ErrInvalid)
		}
		if m[i] = 1; last != nil {
			m[i] = last[i].Correction
		}
		was = append(was, ofTurn(before[i].LogProbs, r.SampledLengths, updated))
		is = append(is, ofTurn(after[i].LogProbs, r.SampledLengths, updated))
	}
	low, high := p.Clip()
	order := methods.Order(p.Order)
	if order.Correct == nil {
		return nil, fmt.Errorf("no order of passes is named %q: %w", p.Order, store.ErrInvalid)
	}
	next, ratios, err := order.Correct(m, was, is, low, high)
	if errors.Is(err, credit.ErrNotFinite) {
		next = slices.Repeat([]float64{math.NaN()}, len(rows))
		ratios = next
	} else if err != nil {
		return nil, fmt.Errorf("corrections: %w: %w", err, store.ErrInvalid)
	}
	out := make([]CorrectionRow, len(rows))
	for i, r := range rows {
		out[i] = CorrectionRow{Row: r.Row, Correction: next[i], Ratio: ratios[i]}
	}
	return out, nil
}

// ofTurn are the figures of a row's sampled tokens in a turn, from 1; none if the row ended before.
func ofTurn(sampled []float32, lengths []int32, turn int) []float64 {
	if turn > len(lengths) {
		return nil
	}
	from := episode.Total(lengths[:turn-1])
	var out []float64
	for _, v := range sampled[from : from+int(lengths[turn-1])] {
		out = append(out, float64(v))
	}
	return out
}

// Correct multiplies the advantages by the corrections of their rows.
func (s *TrainingSignal) Correct(by []CorrectionRow) {
	for i, row := range s.Advantages {
		for t := range row {
			row[t] *= by[i].Correction
		}
	}
}

// CorrectionMetrics describe what a pass has changed, and what it leaves of the advantages.
func CorrectionMetrics(updated int, of []CorrectionRow) activities.Metrics {
	prefix := fmt.Sprintf("passes/turn_%d/", updated)
	var m, ratios []float64
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, r := range of {
		m, ratios = append(m, r.Correction), append(ratios, r.Ratio)
		lo, hi = min(lo, r.Correction), max(hi, r.Correction)
	}
	return activities.Metrics{
		prefix + "ratio_mean": canon.Float(Mean(ratios)), prefix + "correction_mean": canon.Float(Mean(m)),
		prefix + "correction_min": canon.Float(lo), prefix + "correction_max": canon.Float(hi),
	}
}

// TurnsBackwards are the turns that rows learn from, the last one first.
func TurnsBackwards(rows []batch.Row) []int {
	there := map[int32]bool{}
	last := int32(0)
	for _, r := range rows {
		for t, yes := range r.Mask {
			if yes {
				there[r.Turns[t]], last = true, max(last, r.Turns[t])
			}
		}
	}
	var out []int
	for turn := last; turn > 0; turn-- {
		if there[turn] {
			out = append(out, int(turn))
		}
	}
	return out
}

// OfTurn are the rows that learn from a turn, and from it alone.
func OfTurn(rows []batch.Row, turn int) []batch.Row {
	var out []batch.Row
	for _, r := range rows {
		mask, any := make([]bool, len(r.Mask)), false
		for t, yes := range r.Mask {
			mask[t] = yes && int(r.Turns[t]) == turn
			any = any || mask[t]
		}
		if any {
			r.Mask = mask
			out = append(out, r)
		}
	}
	return out
}
