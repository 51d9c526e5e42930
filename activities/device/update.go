package device

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/batch"
	"github.com/reprise-rl/reprise/model/draw"
	"github.com/reprise-rl/reprise/model/loss"
	"github.com/reprise-rl/reprise/model/loss/terms"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// Update makes version n+1 from version n and the batch, or a piece of it. What a piece
// leaves is in the worker's memory alone. A worker that made the version or the piece before
// answers from memory; a piece that does not follow on what is there is an ErrNotResident.
func (d *Device) Update(ctx context.Context, in activities.UpdateInput) (_ activities.UpdateResult, err error) {
	defer run.Edge(ctx, &err, "update version %d of run %s", in.Policy.Version, in.Policy.Run.ID)
	w, done, err := d.begin(ctx, in.Policy.Run)
	if err != nil {
		return activities.UpdateResult{}, err
	}
	defer done(&err)
	key, err := keyOf(in)
	if err != nil {
		return activities.UpdateResult{}, err
	}
	r, known := d.Engine.remembered(key, in)
	if !known {
		begun := time.Now()
		if r, err = w.apply(ctx, d.Store, in, w.bound(in.MaxSeconds)); err != nil {
			return activities.UpdateResult{}, err
		}
		w.countAgain(in, r, time.Since(begun))
		if r.Begun == nil {
			d.Engine.remember(key, r)
		}
	}
	r.Telemetry = w.telemetry()
	return r, nil
}

// countAgain counts what a piece has done for a second time, because the worker that had done
// it was lost.
func (w *work) countAgain(in activities.UpdateInput, r activities.UpdateResult, took time.Duration) {
	if in.Begun == nil || in.Begun.Lost <= in.Begun.Done {
		return
	}
	from, to := in.Begun.Done, in.Begun.Of
	if r.Begun != nil {
		to = r.Begun.Done
	}
	if from == 0 {
		w.measured.Recomputed++
	}
	w.measured.RecomputeSeconds += took.Seconds() * float64(min(to, in.Begun.Lost)-from) / float64(to-from)
}

// bound is where a piece of an update ends: after so many rows, or with the first
// micro-batch after a time. 0 is no bound. A piece has at least one micro-batch.
type bound struct {
	rows   int
	until  time.Time
	yields func() bool // where set, tells that somebody else needs the device
}

// bound is that of a piece of an update that is made now.
func (w *work) bound(maxSeconds int) bound {
	if maxSeconds <= 0 {
		return bound{}
	}
	return bound{rows: w.Train.Limits.UpdateRows, until: time.Now().Add(time.Duration(maxSeconds) * time.Second), yields: w.yields}
}

// reached says whether a piece ends after so many rows.
func (b bound) reached(rows int) bool {
	return b.rows > 0 && rows >= b.rows || !b.until.IsZero() && time.Now().After(b.until) || b.yields != nil && b.yields()
}

// apply continues an update, from what is in memory of it to its end or to the bound. The
// steps are made in the memory of the state: from the first to the last of them the worker
// holds no version. After an error on the way it holds the version before, or none, and then
// the error is an ErrNotResident. If the context ends, or the batch cannot be read, the update
// stays as far as it is.
func (w *work) apply(ctx context.Context, s store.Store, in activities.UpdateInput, end bound) (_ activities.UpdateResult, err error) {
	key, err := keyOf(in)
	if err != nil {
		return activities.UpdateResult{}, err
	}
	b, err := w.engine.takeBegun(key, in)
	if err != nil {
		return activities.UpdateResult{}, err
	}
	defer func() { err = w.engine.leave(b, err) }()
	u, err := w.readUpdate(ctx, s, in)
	if err != nil {
		return activities.UpdateResult{}, err
	}
	b.of = u.microBatches()
	if w.Train.ScoredBySampler() && b.exact == nil && b.done == 0 {
		if b.exact, err = u.checkExact(ctx, w, in.Policy.Version); err != nil {
			return activities.UpdateResult{}, err
		}
	}
	for from := b.done; b.done < b.of; {
		if err := ctx.Err(); err != nil {
			return activities.UpdateResult{}, err
		}
		b.broken = true // until it is done
		if err := u.next(ctx, w, b); err != nil {
			return activities.UpdateResult{}, fmt.Errorf("step %d: %w", b.step, err)
		}
		b.broken = false
		if b.done < b.of && end.reached((b.done-from)*u.microBatch) {
			return activities.UpdateResult{Begun: b.told(in)}, nil
		}
	}
	b.broken = true
	if err := w.engine.computeFingerprint(); err != nil {
		return activities.UpdateResult{}, err
	}
	return activities.UpdateResult{State: w.engine.fingerprint, Counts: b.made.counts(), Metrics: u.metrics(w.Train, b)}, nil
}

// update is what an update is made of.
type update struct {
	rows       []batch.Row
	steps      [][]int // the rows of each optimizer step, which the address of the iteration draws, as run.Context.Arrange gives them
	microBatch int     // rows
	shards     int     // of an optimizer step
	knobs      spec.Update
	divisor    float64
	policy     *model.Learner
	stale      *model.Scorer // of rows that an older version sampled
	settings   model.Settings
	critic     *model.Learner // nil without
	values     int            // of the critic for each token
	value      model.CriticSettings
	prm        *model.Learner // nil without
	prefer     model.Settings // of the process reward model
	preferred  []int          // the rows of its step, as run.Context.Arrange gives them
	mismatch   *mismatch      // nil without weights
}

// readUpdate reads an update's batch and prepares its programs.
func (w *work) readUpdate(ctx context.Context, s store.Store, in activities.UpdateInput) (*update, error) {
	u := &update{
		microBatch: w.Train.Update.MicroBatch, shards: max(w.Train.Update.Shards, 1), knobs: in.Settings.Update,
		divisor:  divisor(w.Context, in.Settings.Update),
		settings: modelSettings(in.Settings, in.Settings.Update.Rate(in.Policy.Version, w.Train.Iterations)),
		value:    criticSettings(in.Settings), values: w.Train.Credit.Values(), prefer: prmSettings(in.Settings),
	}
	var err error
	if u.rows, err = w.ReadBatch(ctx, s, in.Batch); err != nil {
		return nil, err
	}
	p, err := w.engine.programsFor(w.Context, in.Policy.Run, w.Shapes(w.Training, 1))
	if err != nil {
		return nil, err
	}
	u.policy, u.stale = p.Learner, p.Scorer
	if of := secondOf(w.Train.Credit); of != noNetwork {
		second, err := w.engine.secondFor(w.Context, in.Policy.Run)
		if err != nil {
			return nil, err
		}
		switch of {
		case criticNetwork:
			u.critic = second.Learner
		case prmNetwork:
			u.prm = second.Learner
			for i := range u.rows {
				u.preferred = append(u.preferred, i)
			}
			u.preferred = w.Arrange(u.rows, u.preferred)
		}
	}
	if u.mismatch, err = mismatchOf(u.knobs.Mismatch, u.rows, in.Policy.Version); err != nil {
		return nil, err
	}
	size := len(u.rows)
	if u.knobs.Minibatch > 0 {
		size = min(size, u.knobs.Minibatch)
	}
	u.steps, err = loss.Minibatches(len(u.rows), size, u.knobs.Epochs, w.Drawn(draw.Shuffle, in.Policy.Branch, in.Policy.Version))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, store.ErrInvalid)
	}
	for i, of := range u.steps {
		u.steps[i] = w.Arrange(u.rows, of)
	}
	if u.mismatch != nil {
		u.mismatch.stale = w.Arrange(u.rows, u.mismatch.stale)
	}
	return u, nil
}

// microBatches counts those of all steps; each goes through the critic and the policy by
// itself.
func (u *update) microBatches() int {
	n := 0
	for _, members := range u.steps {
		n += (len(members) + u.microBatch - 1) / u.microBatch
	}
	if u.critic != nil {
		n *= 2
	}
	if u.prm != nil {
		n += (len(u.preferred) + u.microBatch - 1) / u.microBatch
	}
	if u.mismatch != nil {
		n += (len(u.mismatch.stale) + u.microBatch - 1) / u.microBatch
	}
	return n
}

// minibatch lays the rows of an optimizer step out, for the critic or for the policy. Supervised
// rows are the policy's alone.
func (u *update) minibatch(step int, critic bool) ([]batch.MicroBatch, error) {
	rows := run.Picked(u.rows, u.steps[step])
	if critic {
		return run.CriticMinibatch(rows, u.policy.Shapes(), u.knobs, u.divisor, u.values)
	}
	batches, err := run.Minibatch(rows, u.policy.Shapes(), u.knobs, u.divisor)
	if err == nil {
		run.Imitate(batches, rows, u.microBatch, u.knobs.Supervised.Weight())
	}
	return batches, err
}

// next does the next micro-batch of an update, in shards one on each device, and the optimizer
// step if it was the last of its minibatch. The first ones score stale rows again, if the run has mismatch weights.
func (u *update) next(ctx context.Context, w *work, b *begunUpdate) error {
	if m := u.mismatch; m != nil {
		if len(b.scored) < len(m.stale) {
			return u.scoreAgain(ctx, w, b)
		}
		if err := m.correct(u.rows, b.scored); err != nil {
			return err
		}
	}
	if u.prm != nil && b.made.prm == nil {
		return u.learnPreferences(ctx, w.engine, b)
	}
	if b.policy == nil && b.critic == nil {
		critic := u.critic != nil && !b.valued
		batches, err := u.minibatch(b.step, critic)
		if err != nil {
			return err
		}
		if critic {
			if b.critic, err = u.critic.CriticGradient(batches, u.value); err == nil {
				err = b.critic.Shard(u.shards)
			}
		} else if b.policy, err = u.policy.Gradient(batches, u.settings); err == nil {
			err = b.policy.Shard(u.shards)
		}
		if err != nil {
			return err
		}
	}
	e := w.engine
	if b.critic != nil {
		critic, m, added, err := add(ctx, b.critic, e.second)
		if err != nil {
			return err
		}
		b.done += added
		if critic != nil {
			e.hold(e.state, critic)
			b.critic, b.valued, b.made.critic = nil, true, append(b.made.critic, m)
		}
	} else {
		added, err := addTo(ctx, b.policy, e.state)
		if err != nil {
			return err
		}
		b.done += added
		if stop, err := u.tooFar(w, b); err != nil || stop {
			return err
		}
		policy, m, err := applied(b.policy, e.state)
		if err != nil {
			return err
		}
		if policy != nil {
			e.hold(policy, e.second)
			b.policy, b.valued, b.made.policy = nil, false, append(b.made.policy, m)
			b.made.rows = len(u.rows)
			b.made.micro += int64((len(u.steps[b.step]) + u.microBatch - 1) / u.microBatch)
			b.step++
			w.measured.Tokens += m.Tokens
		}
	}
	return nil
}

// add adds a micro-batch, or one on each device, and makes the step of the last one; next is nil
// before.
func add[M any](ctx context.Context, g *model.Gradient[M], s *model.State) (next *model.State, m M, added int, err error) {
	if added, err = addTo(ctx, g, s); err == nil {
		next, m, err = applied(g, s)
	}
	return next, m, added, err
}

// addTo adds a micro-batch, or one on each device, and returns how many.
func addTo[M any](ctx context.Context, g *model.Gradient[M], s *model.State) (added int, err error) {
	before := g.Left()
	err = g.Add(ctx, s)
	return before - g.Left(), err
}

// applied makes the step if all of its micro-batches were added; next is nil before.
func applied[M any](g *model.Gradient[M], s *model.State) (next *model.State, m M, err error) {
	if g.Left() == 0 {
		next, m, err = g.Apply(s)
	}
	return next, m, err
}

// divisor is the constant of the aggregation: Dr. GRPO's is the most a trajectory
// can sample.
func divisor(rc *run.Context, u spec.Update) float64 {
	if u.Divisor > 0 {
		return u.Divisor
	}
	return float64(rc.Training.Turns * rc.Training.MaxNewTokens)
}

// modelSettings are the knobs as the update's program takes them.
func modelSettings(s spec.Settings, rate float64) model.Settings {
	u := s.Update
	return model.Settings{
		Optimizer: model.Optimizer{
			LearningRate: float32(rate), Beta1: float32(u.Beta1), Beta2: float32(u.Beta2),
			AdamEpsilon: float32(u.AdamEpsilon), WeightDecay: float32(u.WeightDecay), MaxGradNorm: float32(u.MaxGradNorm),
		},
		ClipLow: float32(u.ClipLow), ClipHigh: float32(u.ClipHigh), Knobs: u.Knobs(),
		EntropyCoefficient: float32(u.EntropyCoefficient), KLCoefficient: klCoefficient(u), Temperature: float32(s.Rollout.Temperature),
	}
}

// klCoefficient is the loss's: in the rewards the distance has been counted.
func klCoefficient(u spec.Update) float32 {
	if u.KLIn != spec.KLLoss {
		return 0
	}
	return float32(u.KLCoefficient)
}

// guardMetrics are the metrics that guards of the loss have of their own.
func guardMetrics(t spec.Train) []string {
	var out []string
	for _, m := range t.Update.Terms(1).PolicyLayout().Own() {
		if m.Name != terms.SupervisedLoss { // which is reported by another name
			out = append(out, m.Name)
		}
	}
	return out
}

// metrics are the metrics of a whole update.
func (u *update) metrics(t spec.Train, b *begunUpdate) activities.Metrics {
	made := b.made
	out := made.metrics()
	if b.exact != nil {
		maps.Copy(out, b.exact.Metrics(true))
	}
	out["actor/lr"] = canon.Float(u.settings.LearningRate)
	if t.Update.KLIn == spec.KLLoss {
		out["actor/kl_loss"], out["actor/kl_coef"] = made.mean(func(m model.UpdateMetrics) float64 { return m.KL }), canon.Float(u.knobs.KLCoefficient)
	}
	if u.mismatch != nil {
		maps.Copy(out, u.mismatch.metrics())
	}
	if u.knobs.StopKL > 0 {
		out["actor/steps_left_out"] = canon.Float(len(u.steps) - len(made.policy))
		out["actor/trajectory_kl"] = canon.Float(made.furthest)
	}
	for _, own := range guardMetrics(t) {
		out["actor/"+own] = made.mean(func(m model.UpdateMetrics) float64 { return m.Own[own] })
	}
	if t.Update.Supervised.On() {
		out["supervised/loss"] = canon.Float(made.likelihood() / u.knobs.Supervised.Weight())
	}
	if u.critic != nil {
		out["critic/lr"] = canon.Float(u.value.LearningRate)
	}
	if u.prm != nil {
		out["prm/lr"] = canon.Float(u.prefer.LearningRate)
	}
	return out
}
