package activities

import (
	"fmt"
	"slices"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/starter"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/draw"
	"github.com/reprise-rl/reprise/model/loss"
	"github.com/reprise-rl/reprise/model/tokenizer"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// task is what a rollout plays, a run's own or a suite's: the environments, the
// protocol and the sizes. Equal tasks give the same episodes for the same policy.
type task struct {
	parts    envs.Mixture
	order    []int // the part that each group plays, for a round of iterations
	protocol envs.Protocol
	// groups × members episodes of at most turns turns of maxNewTokens tokens.
	groups, members, turns, maxNewTokens int
	// overlongCache is where the punishment of long turns begins, below
	// maxNewTokens; 0 is none. Evaluations have none.
	overlongCache int
	// widths are the most tokens of the context at each turn's start.
	widths []int
	// suite is nil for a run's own rollout.
	suite *spec.Suite
}

// env is what a group plays.
func (s *task) env(group int) envs.Environment { return s.parts[s.order[group]].Environment }

// label is the name of what a group plays.
func (s *task) label(group int) string { return s.parts[s.order[group]].Label }

// rows is the number of episodes.
func (s *task) rows() int { return s.groups * s.members }

// generateRows is the rows of one generation program, where a rollout has as
// many: fixed, so that a row's bits do not depend on the rollout's size.
const generateRows = 64

// play makes the environments of a spec.
func (s *task) play(e spec.Environment) error {
	var parts []envs.Part
	for _, p := range e.Parts() {
		env, err := envs.New(p.Name, p.Options)
		if err != nil {
			return fmt.Errorf("environment %s: %w", p.Label, err)
		}
		parts = append(parts, envs.Part{Label: p.Label, Environment: env, Share: p.Share})
	}
	var err error
	if s.parts, err = envs.NewMixture(parts); err != nil {
		return err
	}
	s.order = s.parts.Order(s.groups * s.rounds())
	return nil
}

// orderRounds is the iterations after which the groups' order begins anew: a part
// whose share is less than a group an iteration plays in some of them.
const orderRounds = 64

// rounds is how many iterations the order is made for; a suite has one, and the
// order of a single environment is the same in all.
func (s *task) rounds() int {
	if s.suite != nil || len(s.parts) == 1 {
		return 1
	}
	return orderRounds
}

// at is the task as an iteration plays it.
func (s *task) at(iteration int) *task {
	now := *s
	from := iteration % s.rounds() * s.groups
	now.order = s.order[from : from+s.groups]
	return &now
}

// trainingTask is what a run learns from.
func trainingTask(t spec.Train) (*task, error) {
	r := t.Rollout
	s := &task{
		protocol: envs.Protocol{Think: r.Think, FormatPenalty: r.FormatPenalty, Penalty: envs.Penalty(r.Penalty), ContextTurns: r.ContextTurns},
		groups:   r.Groups, members: r.GroupSize, turns: r.Turns, maxNewTokens: r.MaxNewTokens, overlongCache: r.OverlongCache, widths: r.PromptTokens,
	}
	return s, s.play(t.Environment)
}

// suiteTask is what an evaluation plays.
func suiteTask(suite spec.Suite) (*task, error) {
	s := &task{
		protocol: envs.Protocol{Think: suite.Think, FormatPenalty: suite.FormatPenalty, Penalty: envs.Penalty(suite.Penalty), ContextTurns: suite.ContextTurns},
		groups:   suite.Instances, members: suite.Samples, turns: suite.Turns, maxNewTokens: suite.MaxNewTokens, widths: suite.PromptTokens,
		suite: &suite,
	}
	if err := s.play(suite.Environment); err != nil {
		return nil, fmt.Errorf("suite %s: %w", suite.Name, err)
	}
	return s, nil
}

// task is what a rollout of the run plays.
func (rc *runContext) task(r Rollout) (*task, error) {
	if r.Evaluation == nil {
		return rc.training.at(r.Iteration), nil
	}
	for _, s := range rc.suites {
		if s.suite.Name == r.Evaluation.Suite {
			return s, nil
		}
	}
	return nil, fmt.Errorf("suite %q is not in the spec: %w", r.Evaluation.Suite, store.ErrInvalid)
}

// shapes are the shapes of the programs of a task's turn. Generation depends on
// the task alone; Score and Update run on the width of the run's longest row.
func (rc *runContext) shapes(s *task, turn int) model.Shapes {
	width := rc.training.widths[len(rc.training.widths)-1] + rc.training.maxNewTokens
	u := rc.train.Update
	l := model.LossOptions{Ratio: loss.Ratio(u.Ratio), DualClip: u.DualClip > 0}
	if u.KLIn == spec.KLLoss {
		l.KL = loss.KLEstimator(u.KLEstimator)
	}
	return model.Shapes{
		GenerateRows: min(generateRows, s.rows()),
		MicroBatch:   u.MicroBatch,
		PromptTokens: s.widths[turn-1],
		MaxNewTokens: s.maxNewTokens,
		Sequence:     (width + scoreMargin - 1) / scoreMargin * scoreMargin,
		ComputeDtype: rc.train.Policy.ComputeDtype,
		Loss:         l,
	}
}

// scoreMargin rounds the widths of scored rows up, so that few programs serve.
const scoreMargin = 16

// drawn is the address of an iteration's draws: branches of a run with common random
// numbers share them.
func (rc *runContext) drawn(p draw.Purpose, branch, iteration int) draw.Address {
	if rc.train.CommonRandom {
		branch = 0
	}
	return draw.Address{Seed: rc.train.Seed, Purpose: p, Branch: int64(branch), Iteration: int64(iteration)}
}

// rowAddress gives the streams of a row: of its group's initial state, of the
// chances in its episode, and of its samples.
type rowAddress struct{ instance, chance, sample draw.Address }

// address computes them from (run seed, purpose, branch, iteration, group,
// member); an evaluation's from (suite, instance, sample) alone.
func (rc *runContext) address(s *task, branch int, r Rollout, group, member int) rowAddress {
	group += r.Round * s.groups            // groups of a later round continue the index
	a := rc.drawn("", branch, r.Iteration) // each stream has its own purpose
	a.Group = int64(group)
	purpose := func(p draw.Purpose) draw.Purpose { return p }
	if s.suite != nil {
		a = draw.Address{Seed: s.suite.Seed, Group: int64(group)}
		purpose = draw.Evaluation.With
	}
	with := func(p draw.Purpose, member int) draw.Address {
		b := a
		b.Purpose, b.Member = purpose(p), int64(member)
		return b
	}
	return rowAddress{
		instance: with(draw.Instance, 0),
		chance:   with(draw.Chance, member),
		sample:   with(draw.Sample, member),
	}
}

// WithWidths fills in the widths of the contexts that a spec leaves out, of the
// run and of its suites, as the environments need them with a model's tokenizer;
// files are the model folder's, nil for a starter.
func WithWidths(t spec.Train, files map[string][]byte) (spec.Train, error) {
	if files == nil {
		files = starter.Files()
	}
	tok, err := tokenizer.Load(files)
	if err != nil {
		return t, fmt.Errorf("tokenizer: %w: %w", err, ErrModelInvalid)
	}
	if t.Rollout.PromptTokens == nil {
		s, err := trainingTask(t)
		if err != nil {
			return t, err
		}
		if t.Rollout.PromptTokens, err = s.neededWidths(tok); err != nil {
			return t, err
		}
	}
	t.Evaluation.Suites = slices.Clone(t.Evaluation.Suites)
	for i, suite := range t.Evaluation.Suites {
		if suite.PromptTokens != nil {
			continue
		}
		s, err := suiteTask(suite)
		if err != nil {
			return t, err
		}
		if t.Evaluation.Suites[i].PromptTokens, err = s.neededWidths(tok); err != nil {
			return t, fmt.Errorf("suite %s: %w", suite.Name, err)
		}
	}
	return t, nil
}

// neededWidths are the widths of the contexts, the widest of all parts.
func (s *task) neededWidths(tok *tokenizer.Tokenizer) ([]int, error) {
	var widest []int
	for _, p := range s.parts {
		widths, err := envs.MaxPromptTokens(p.Environment, tok, s.protocol, s.turns, s.maxNewTokens)
		if err != nil {
			return nil, fmt.Errorf("widths of the prompts of %s: %w", p.Label, err)
		}
		if widest == nil {
			widest = widths
		}
		for i := range widths {
			widest[i] = max(widest[i], widths[i])
		}
	}
	return widest, nil
}
