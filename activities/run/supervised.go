package run

import (
	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/envs/starter"
	"github.com/reprise-rl/reprise/model/batch"
	"github.com/reprise-rl/reprise/model/draw"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// Imitate gives the supervised rows of a minibatch, laid out by Minibatch in micro-batches of
// b, their part of the policy's loss: coefficient times the mean negative log-likelihood over
// their tokens.
func Imitate(batches []batch.MicroBatch, rows []batch.Row, b int, coefficient float64) {
	tokens := 0
	for _, r := range rows {
		if r.Supervised {
			for _, yes := range r.Mask {
				if yes {
					tokens++
				}
			}
		}
	}
	if tokens == 0 {
		return
	}
	weight := float32(coefficient / float64(tokens))
	for at, r := range rows {
		if !r.Supervised {
			continue
		}
		m, i := &batches[at/b], at%b
		m.RowWeights[i] = 1
		m.Put(batch.Supervised, i, batch.Flags(r.Mask))
		for t, yes := range r.Mask {
			if yes {
				m.Columns[batch.Weights][i][t] = weight
			}
		}
	}
}

// SupervisedRows lays stretches out as supervised rows of an iteration's batch, whose other
// rows have the columns that like has. A stretch that is wider than these is cut.
func SupervisedRows(of []episode.Stretch, iteration int, like batch.Row) []batch.Row {
	width := len(like.IDs)
	var out []batch.Row
	for _, p := range of {
		r := batch.Row{
			Row: p.Row, Origin: int32(iteration), Supervised: true,
			IDs: make([]int32, width), Turns: make([]int32, width), Mask: make([]bool, width), Columns: like.Columns.Blank(),
		}
		r.Length = int32(copy(r.IDs, p.Ids))
		copy(r.Turns, p.Turns)
		copy(r.Mask, p.Sampled)
		out = append(out, r)
	}
	return out
}

// Demonstrations are n episodes of the environments' solvers, drawn from an address: each
// environment of a mixture has its share of them.
func (rc *Context) Demonstrations(n int, settings spec.RolloutSettings, at draw.Address) ([]episode.Stretch, error) {
	s := rc.Training
	var out []episode.Stretch
	for i, rows := range s.Shares(int(at.Iteration), n) {
		if rows == 0 {
			continue
		}
		part := s.Parts[i]
		own := at
		own.Purpose = at.Purpose.With(draw.Purpose(part.Label))
		shown := s.Shown(part.Environment) // at most a window, so that an episode is one row
		shown.Turns, shown.Demonstrations = settings.Limit(shown.Turns), 1
		episodes, err := starter.Transcripts(s.Tokenizer, part.Environment, s.Protocol, shown, rows, own)
		if err != nil {
			return nil, err
		}
		for _, e := range episodes {
			out = append(out, episode.Stretch{Row: -1, Ids: e.IDs, Sampled: e.Loss, Turns: turnNumbers(e.Loss)})
		}
	}
	return out, nil
}

// turnNumbers numbers the turns of an episode's sampled ids, from 1.
func turnNumbers(sampled []bool) []int32 {
	out, turn := make([]int32, len(sampled)), int32(0)
	for t, yes := range sampled {
		if yes && (t == 0 || !sampled[t-1]) {
			turn++
		}
		if yes {
			out[t] = turn
		}
	}
	return out
}
