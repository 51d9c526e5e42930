package device

import (
	"context"
	"fmt"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/batch"
)

// sampledByThis are the rows of an update's first micro-batch that the version has sampled.
func (u *update) sampledByThis(version int) (at []int) {
	for _, i := range u.steps[0] {
		if i >= 0 && int(u.rows[i].Origin) == version && !u.rows[i].Supervised && len(at) < u.microBatch {
			at = append(at, i)
		}
	}
	return at
}

// checkExact scores a micro-batch of the rows that the version has sampled, before an update's first step; nil if there are none.
// Stale weights of the sampler, a card that computes wrong, and an adapter that is not the policy's are seen so.
func (u *update) checkExact(ctx context.Context, w *work, version int) (*run.Exactness, error) {
	at := u.sampledByThis(version)
	if len(at) == 0 {
		return nil, nil
	}
	rows := run.Picked(u.rows, w.Arrange(u.rows, at))
	batches, err := run.Minibatch(rows, u.policy.Shapes(), u.knobs, u.divisor)
	if err != nil {
		return nil, err
	}
	scores, err := u.stale.ScoreAll(ctx, w.engine.state, batches, u.settings.Temperature)
	if err != nil {
		return nil, fmt.Errorf("score a micro-batch again: %w", err)
	}
	out := &run.Exactness{}
	for i, r := range rows {
		of := scores[i/u.microBatch].LogProbs[i%u.microBatch]
		for t, sampled := range r.Mask {
			if sampled {
				out.Compare(r.Row, int32(t), r.Columns[batch.OldLogProbs][t], of[t])
			}
		}
	}
	return out, nil
}

// pieceRows are the numbers of rows in which each piece of the network is computed to find the one that is not exact.
var pieceRows = []int{2, 16, 256}

// scoresAsSampled scores what was sampled from prompts, where the run has policy.exact: the log-probs and entropies must be the same, to
// the bit. Nothing else is wrong with the device if they are not: it serves runs without.
func (w *work) scoresAsSampled(
	ctx context.Context,
	p *model.Programs,
	probe *model.State,
	in model.GenerateInput,
	got model.GenerateOutput,
) error {
	if !w.Train.Policy.Exact {
		return nil
	}
	e, err := p.ScoreAgain(ctx, probe, in, got)
	if err != nil || e.Differing == 0 {
		return err
	}
	sh := p.Shapes()
	pieces, err := w.engine.device.ExactPieces(
		ctx,
		probe.Config(),
		sh.ComputeDtype,
		model.PieceSizes{Rows: pieceRows, Widths: []int{sh.PromptTokens, sh.Sequence}},
	)
	if err != nil {
		return fmt.Errorf("find what is not exact: %w", err)
	}
	return fmt.Errorf("%w: %d of %d tokens: %v; %s; start another run with policy.exact false, or serve this one by another machine",
		activities.ErrNotExact, e.Differing, e.Tokens, e.First, model.SayPieces(pieces))
}
