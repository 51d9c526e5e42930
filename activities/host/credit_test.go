package host

import (
	"github.com/reprise-rl/reprise/activities/run"
)

// scores are scores of the selected rows: each log-prob names its row and its token.
func (p *played) scores(rows []run.TrajectoryRow, values int) (out []run.ScoreRow) {
	for _, r := range run.SelectedOf(rows) {
		s := run.ScoreRow{Row: r.Row}
		for n := range run.Total(r.SampledLengths) {
			at := float32(r.Row) + float32(n)/64
			s.LogProbs, s.Entropies, s.RefLogProbs = append(s.LogProbs, -at), append(s.Entropies, at), append(s.RefLogProbs, -2*at)
			for v := range values {
				s.Values = append(s.Values, at/64+float32(v))
			}
		}
		out = append(out, s)
	}
	return out
}
