package device

import (
	"context"

	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/model"
)

// scorer computes the figures of micro-batches before an update.
type scorer struct {
	policy      *model.Programs
	state       *model.State
	temperature float32
	reference   *model.State // nil without
	critic      *model.Programs
	value       *model.State // nil without
}

// score scores a micro-batch of pieces and appends the figures of their sampled tokens to
// the rows of their trajectories.
func (s scorer) score(ctx context.Context, of []run.Piece, batch model.MicroBatch, table []run.ScoreRow) error {
	logProbs, entropies, err := s.policy.Score(ctx, s.state, batch, s.temperature)
	if err != nil {
		return err
	}
	var reference, values [][]float32
	if s.reference != nil {
		if reference, _, err = s.policy.Score(ctx, s.reference, batch, s.temperature); err != nil {
			return err
		}
	}
	if s.value != nil {
		if values, err = s.critic.Values(ctx, s.value, batch); err != nil {
			return err
		}
	}
	for i, p := range of {
		to := &table[p.Of]
		for t, sampled := range p.Sampled {
			if !sampled {
				continue
			}
			to.LogProbs = append(to.LogProbs, logProbs[i][t])
			to.Entropies = append(to.Entropies, entropies[i][t])
			if reference != nil {
				to.RefLogProbs = append(to.RefLogProbs, reference[i][t])
			}
			if values != nil {
				to.Values = append(to.Values, values[i][t])
			}
		}
	}
	return nil
}
