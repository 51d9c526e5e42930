package device

import (
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
	// teacherNetwork and judgeNetwork are no second networks, which a run trains, but have programs of their own too.
	teacherNetwork network = "teacher"
	judgeNetwork   network = "judge"
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
