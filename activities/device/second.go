package device

import (
	"context"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/loss/terms"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// network is the second network of a run, as manifests call its programs.
type network string

const (
	noNetwork     network = "" // the programs are the policy's
	criticNetwork network = "critic"
	prmNetwork    network = "prm" // a process reward model
)

// secondOf is the second network that a run trains.
func secondOf(c spec.Credit) network {
	switch {
	case c.Critic():
		return criticNetwork
	case c.PRM():
		return prmNetwork
	}
	return noNetwork
}

// secondConfig is the configuration of a run's second network.
func secondConfig(rc *run.Context) model.Config {
	if c := rc.Train.Credit; c.Critic() {
		return rc.Config.CriticOf(c.Values())
	}
	return rc.Config.PRM()
}

// secondFor gives the programs of a run's second network, on the rows of its updates.
func (e *Engine) secondFor(rc *run.Context, run activities.Run) (*model.Programs, error) {
	return e.prepared(secondKey(rc, run), rc, run)
}

func secondKey(rc *run.Context, run activities.Run) programsKey {
	s, c := rc.Shapes(rc.Training, 1), rc.Train.Credit
	return programsKey{base: run.Base.Digest, lora: rc.Config.LoRA, second: secondOf(c), values: c.Values(), shapes: model.Shapes{
		MicroBatch: s.MicroBatch, Sequence: s.Sequence, Narrower: s.Narrower, ComputeDtype: s.ComputeDtype, Keep: s.Keep, Sharded: s.Sharded,
		Loss: model.LossOptions{Value: valueLoss(c)},
	}}
}

// valueLoss is the name of the critic's loss, if it is not the usual one.
func valueLoss(c spec.Credit) string {
	if c.Promises() {
		return terms.Promise
	}
	return ""
}

// secondOptimizer are the optimizer's knobs of a second network; what it shares is the policy's.
func secondOptimizer(s spec.Settings) model.Optimizer {
	u, c := s.Update, s.Critic
	return model.Optimizer{
		LearningRate: float32(c.LearningRate), Beta1: float32(u.Beta1), Beta2: float32(u.Beta2),
		AdamEpsilon: float32(u.AdamEpsilon), WeightDecay: float32(c.WeightDecay), MaxGradNorm: float32(c.MaxGradNorm),
	}
}

// criticSettings are the critic's knobs. Logits of chances have no clip.
func criticSettings(s spec.Settings) model.CriticSettings {
	out := model.CriticSettings{Optimizer: secondOptimizer(s), Clip: float32(s.Critic.Clip)}
	if s.Credit.Promises() {
		out.Clip = 0
	}
	return out
}

// prmSettings are the knobs of a process reward model's step.
func prmSettings(s spec.Settings) model.Settings {
	return model.Settings{Optimizer: secondOptimizer(s), Temperature: float32(s.Rollout.Temperature)}
}

// learnPreferences does the next micro-batch of the process reward model's step, and the step if it
// was the last. It is one step over all rows of the batch, before the policy's: then the log-probs
// that the preferences were computed from are those of the parameters that learn.
func (u *update) learnPreferences(ctx context.Context, e *Engine, b *begunUpdate) error {
	if b.prm == nil {
		batches, err := run.Preferences(run.Picked(u.rows, u.preferred), u.policy.Shapes())
		if err != nil {
			return err
		}
		if b.prm, err = u.prm.Gradient(batches, u.prefer); err != nil {
			return err
		}
		if err := b.prm.Shard(u.shards); err != nil {
			return err
		}
	}
	next, m, added, err := add(ctx, b.prm, e.second)
	if err != nil {
		return err
	}
	b.done += added
	if next != nil {
		e.hold(e.state, next)
		b.prm, b.made.prm = nil, &m
	}
	return nil
}
