package bench

import (
	"context"

	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/batch"
	"github.com/reprise-rl/reprise/model/draw"
	"github.com/reprise-rl/reprise/model/loss"
	"github.com/reprise-rl/reprise/model/loss/terms"
	"github.com/reprise-rl/reprise/workers/lab/speed"
)

// updates holds a policy, a critic and the batch that both are trained on.
type updates struct {
	device         *model.Device
	options        model.DeviceOptions // with which it was opened
	config         model.Config
	plain, critics *model.Programs
	others         []*model.Programs // of other losses
	policy, critic *model.State
	all, kept      []batch.MicroBatch
	dealts         []*dealt
	several        *model.Device // nil until it is opened
}

func newUpdates(device *model.Device, options model.DeviceOptions, c model.Config) (_ *updates, err error) {
	u := &updates{device: device, options: options, config: c}
	defer func() {
		if err != nil {
			u.free()
		}
	}()
	for group := range algorithmGroups {
		b := speed.Rows(c, starterShape, group)
		b.Columns[batch.RefLogProbs] = b.Columns[batch.OldLogProbs]
		b.Columns[batch.Returns], b.Columns[batch.OldValues] = b.Columns[batch.Advantages], b.Columns[batch.Advantages]
		u.all = append(u.all, b)
	}
	u.kept = u.all[:algorithmKept]
	if u.plain, err = u.programs(c, model.LossOptions{}); err != nil {
		return nil, err
	}
	if u.critics, err = u.programs(c.Critic(), model.LossOptions{}); err != nil {
		return nil, err
	}
	params := model.NewParams(c, draw.Address{Purpose: draw.Weights})
	if u.policy, err = u.plain.NewState(params); err != nil {
		return nil, err
	}
	u.critic, err = u.critics.NewState(model.NewCritic(params))
	return u, err
}

func (u *updates) programs(c model.Config, o model.LossOptions) (*model.Programs, error) {
	return u.device.Programs(c, nil, model.Shapes{MicroBatch: starterShape.MicroBatch, Sequence: starterShape.Tokens, Keep: true, Loss: o})
}

func (u *updates) free() {
	for _, d := range u.dealts {
		d.policy.Free()
	}
	for _, s := range []*model.State{u.policy, u.critic} {
		if s != nil {
			s.Free()
		}
	}
	for _, p := range append(u.others, u.plain, u.critics) {
		if p != nil {
			p.Free()
		}
	}
	if u.several != nil {
		u.several.Close()
	}
}

// update is one optimizer step, which the policy takes; edit, if set, changes its settings.
func (u *updates) update(p *model.Learner, batches []batch.MicroBatch, edit func(*model.Settings)) func(context.Context) error {
	k := model.Settings{Optimizer: speed.Optimizer, ClipLow: 0.2, ClipHigh: 0.28, Temperature: 1}
	if edit != nil {
		edit(&k)
	}
	return func(ctx context.Context) error {
		next, _, err := p.Update(ctx, u.policy, batches, k)
		if err == nil {
			u.policy = next
		}
		return err
	}
}

func (u *updates) score(batches []batch.MicroBatch) func(context.Context) error {
	return func(ctx context.Context) error {
		for _, b := range batches {
			if _, _, err := u.plain.Scorer.Score(ctx, u.policy, b, 1); err != nil {
				return err
			}
		}
		return nil
	}
}

func (u *updates) values(batches []batch.MicroBatch) func(context.Context) error {
	return func(ctx context.Context) error {
		for _, b := range batches {
			if _, err := u.critics.Scorer.Values(ctx, u.critic, b); err != nil {
				return err
			}
		}
		return nil
	}
}

func (u *updates) criticUpdate(batches []batch.MicroBatch) func(context.Context) error {
	return func(ctx context.Context) error {
		next, _, err := u.critics.Learner.CriticUpdate(ctx, u.critic, batches, model.CriticSettings{Optimizer: speed.Optimizer, Clip: 0.5})
		if err == nil {
			u.critic = next
		}
		return err
	}
}

// both runs a, then b.
func both(a, b func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := a(ctx); err != nil {
			return err
		}
		return b(ctx)
	}
}

func (u *updates) selection() ([]workload, error) {
	return []workload{
		{"update, all groups", -1, u.update(u.plain.Learner, u.all, nil)},
		{"update, 25 % of them", 0, u.update(u.plain.Learner, u.kept, nil)},
	}, nil
}

// widths scores rows of unequal lengths, even from an eighth of the width to all of it, and trains
// on them: all in the width of the longest, and each in the least of two or three that it fits in.
func (u *updates) widths() ([]workload, error) {
	width := starterShape.Tokens
	p, err := u.device.Programs(u.config, nil, model.Shapes{
		MicroBatch: starterShape.MicroBatch, Sequence: width, Narrower: [2]int{width / 2, width / 4}, Keep: true,
	})
	if err != nil {
		return nil, err
	}
	u.others = append(u.others, p)
	laid := func(widths int) []batch.MicroBatch {
		var out []batch.MicroBatch
		open := map[int]int{} // micro-batches that are not full, by width
		rows := algorithmGroups * starterShape.MicroBatch
		for i := range rows {
			length := width/8 + i*(width-width/8)/(rows-1)
			own := width
			for n := 1; n < widths && length <= width>>n; n++ {
				own = width >> n
			}
			at, there := open[own]
			if !there || len(out[at].IDs) == starterShape.MicroBatch {
				at = len(out)
				out, open[own] = append(out, batch.MicroBatch{Width: own}), at
			}
			addRow(&out[at], u.all[i/starterShape.MicroBatch].IDs[i%starterShape.MicroBatch][:length])
		}
		return out
	}
	work := func(widths int) func(context.Context) error {
		batches := laid(widths)
		return both(func(ctx context.Context) error {
			_, err := p.Scorer.ScoreAll(ctx, u.policy, batches, 1)
			return err
		}, u.update(p.Learner, batches, nil))
	}
	return []workload{
		{"Score and Update, unequal rows in one width", -1, work(1)},
		{"in two widths", 0, work(2)},
		{"in three widths", 0, work(3)},
	}, nil
}

// addRow adds a row of ids to a micro-batch, with a loss on its second half.
func addRow(to *batch.MicroBatch, ids []int32) {
	mask, old, advantages := make([]bool, len(ids)), make([]float32, len(ids)), make([]float32, len(ids))
	for t := len(ids) / 2; t < len(ids); t++ {
		mask[t], old[t], advantages[t] = true, -6, 1
	}
	to.IDs, to.Lengths, to.Mask = append(to.IDs, ids), append(to.Lengths, int32(len(ids))), append(to.Mask, mask)
	to.Columns[batch.OldLogProbs] = append(to.Columns[batch.OldLogProbs], old)
	to.Columns[batch.Advantages] = append(to.Columns[batch.Advantages], advantages)
}

func (u *updates) criticBeside() ([]workload, error) {
	return []workload{
		{"policy: Score and Update", -1, both(u.score(u.kept), u.update(u.plain.Learner, u.kept, nil))},
		{"critic: Values and CriticUpdate", 0, both(u.values(u.kept), u.criticUpdate(u.kept))},
	}, nil
}

// losses is an update for each option of the loss. The reference's log-probs that a KL
// needs are a separate Score.
func (u *updates) losses() ([]workload, error) {
	all := []workload{
		{"clipped surrogate, token ratio", -1, u.update(u.plain.Learner, u.kept, nil)},
		{"entropy bonus", 0, u.update(u.plain.Learner, u.kept, func(k *model.Settings) { k.EntropyCoefficient = 0.001 })},
	}
	for _, l := range []struct {
		name    string
		options model.LossOptions
		edit    func(*model.Settings)
	}{
		{"sequence ratio", model.LossOptions{Ratio: loss.SequenceRatio}, nil},
		{"dual clip", model.LossOptions{Guards: terms.DualClip}, func(k *model.Settings) { k.Knobs = terms.Knobs{terms.DualClip: 3} }},
		{"KL k1", model.LossOptions{KL: loss.K1}, withKL},
		{"KL k2", model.LossOptions{KL: loss.K2}, withKL},
		{"KL k3", model.LossOptions{KL: loss.K3}, withKL},
		{"KL abs", model.LossOptions{KL: loss.KAbs}, withKL},
	} {
		p, err := u.programs(u.config, l.options)
		if err != nil {
			return nil, err
		}
		u.others = append(u.others, p)
		all = append(all, workload{l.name, 0, u.update(p.Learner, u.kept, l.edit)})
	}
	return append(all, workload{"the reference's Score, for a KL", 0, u.score(u.kept)}), nil
}

func withKL(k *model.Settings) { k.KLCoefficient = 0.001 }
