package run

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/agent"
	"github.com/reprise-rl/reprise/envs/starter"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/strict"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/draw"
	"github.com/reprise-rl/reprise/model/methods"
	"github.com/reprise-rl/reprise/model/search"
	"github.com/reprise-rl/reprise/model/tokenizer"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// Task is what a rollout plays, a run's own or a suite's: the environments, the
// protocol and the sizes. Equal tasks give the same episodes for the same policy.
type Task struct {
	Parts    envs.Mixture
	order    []int // the part that each group plays, for a round of iterations
	Protocol envs.Protocol
	// Groups × members episodes of at most turns turns of maxNewTokens tokens.
	Groups, Members, Turns, MaxNewTokens int
	// Slots are the rows that a group generates in a turn: more than members where a search
	// chooses among them.
	Slots int
	// Trees is how the trajectories of a group branch.
	Trees search.Trees
	// Method is how a rollout searches, and Breadth how many continuations it tries; both are empty for an
	// evaluation.
	Method  search.Method
	Breadth search.Breadth
	// OverlongCache is where the punishment of long turns begins, below
	// maxNewTokens; 0 is none. Evaluations have none.
	OverlongCache int
	// StopAt are the texts that end a turn.
	StopAt []string
	// Widths are the most tokens of the context at each turn's start.
	Widths []int
	// Suite is nil for a run's own rollout.
	Suite *spec.Suite
	// Tokenizer is the policy's; if its chat template takes tools, it gets those of the task.
	Tokenizer *tokenizer.Tokenizer
}

// Env is what a group plays.
func (s *Task) Env(group int) envs.Environment { return s.Parts[s.order[group]].Environment }

// ByAgent reports whether an agent of somebody else's plays the episodes.
func (s *Task) ByAgent() bool {
	if len(s.Parts) != 1 {
		return false
	}
	_, ok := s.Parts[0].Environment.(*agent.Environment)
	return ok
}

// AgentOptions are what the agent gets of the spec's environment.
func (s *Task) AgentOptions() json.RawMessage {
	return s.Parts[0].Environment.(*agent.Environment).Options()
}

// Label is the name of what a group plays.
func (s *Task) Label(group int) string { return s.Parts[s.order[group]].Label }

// Rows is the number of episodes.
func (s *Task) Rows() int { return s.Groups * s.Members }

// play makes the environments of a spec.
func (s *Task) play(e spec.Environment) error {
	var parts []envs.Part
	for _, p := range e.Parts() {
		env, err := envs.New(p.Name, p.Options)
		if err != nil {
			return fmt.Errorf("environment %s: %w", p.Label, err)
		}
		parts = append(parts, envs.Part{Label: p.Label, Environment: env, Share: p.Share})
	}
	var err error
	if s.Parts, err = envs.NewMixture(parts); err != nil {
		return err
	}
	s.order = s.Parts.Order(s.Groups * s.rounds())
	s.Protocol.Tools, err = toolset(e, s.Parts)
	return err
}

// orderRounds is the number of iterations after which the groups' order repeats: a part
// whose share is less than one group plays in only some iterations.
const orderRounds = 64

// shareRounds is the number of steps after which the shares of the environments in n rows repeat.
const shareRounds = 256

// Shares is how many of n transcripts of a step each environment has, [parts]. A share that is less
// than one of them has one in some steps.
func (s *Task) Shares(step, n int) []int {
	first := step % shareRounds * n
	shares, before := s.Parts.Counts(first+n), s.Parts.Counts(first)
	for i := range shares {
		shares[i] -= before[i]
	}
	return shares
}

// Shown says which turns of an episode transcripts of an environment show. With a window, the
// first turns stand for all, because later windows look like these. Each turn is shown of an
// environment of several roles, since the first is one role's, and of one whose episodes have stages.
func (s *Task) Shown(env envs.Environment) starter.Options {
	n := s.Protocol.ContextTurns
	if n == 0 {
		for turn := 1; turn <= s.Turns; turn++ {
			if s.Protocol.Restarts(turn) { // what is cut is not shown
				return starter.Options{Turns: turn - 1}
			}
		}
		return starter.Options{Turns: s.Turns}
	}
	_, roles := env.(envs.Teamed)
	_, stages := env.(envs.Staged)
	if roles || stages {
		return starter.Options{Turns: s.Turns, Window: n}
	}
	return starter.Options{Turns: min(s.Turns, n)}
}

// Samples reports whether a slot of a group samples in a turn, from 1: where a search looks ahead, the first
// turns have fewer different beginnings than slots, and the other slots are padding.
func (s *Task) Samples(slot, turn int) bool { return slot%s.Breadth.Apart(turn) == 0 }

// rounds is how many iterations the order is made for; a suite has one, and the
// order of a single environment is the same in all.
func (s *Task) rounds() int {
	if s.Suite != nil || len(s.Parts) == 1 {
		return 1
	}
	return orderRounds
}

// at is the task as an iteration plays it.
func (s *Task) at(iteration int) *Task {
	now := *s
	from := iteration % s.rounds() * s.Groups
	now.order = s.order[from : from+s.Groups]
	return &now
}

// inWording is a protocol in a wording that a spec names. RAGEN's prompts always have a hint of
// the length; it is the limit here, so that the prompt asks for no more than can be sampled.
func inWording(p envs.Protocol, wording string, maxNewTokens int) (envs.Protocol, error) {
	p, problems := p.WithWording(wording, maxNewTokens)
	if err := strict.Problems(problems).Err(); err != nil {
		return p, fmt.Errorf("templates of prompts: %w", err)
	}
	return p, nil
}

// trainingTask is what a run learns from.
func trainingTask(t spec.Train) (*Task, error) {
	r := t.Rollout
	p, err := inWording(envs.Protocol{Think: r.Think, Subgoals: r.Subgoals, FormatPenalty: r.FormatPenalty,
		Penalty: envs.Penalty(r.Penalty), ContextTurns: r.ContextTurns, Cuts: spec.Cuts(r.Context)}, r.Protocol, r.MaxNewTokens)
	if err != nil {
		return nil, err
	}
	if t.Environment.ByAgent() {
		p = envs.Protocol{} // the agent writes the prompts
	}
	s := &Task{
		Protocol: p,
		Groups:   r.Groups, Members: r.GroupSize, Slots: r.GroupSlots(), Trees: r.TreesOf(), Method: methods.Search(r.Search),
		Breadth: r.SearchOf(), Turns: r.Turns, MaxNewTokens: r.MaxNewTokens, OverlongCache: r.OverlongCache, Widths: r.PromptTokens,
		StopAt: r.StopAt,
	}
	return s, s.play(t.Environment)
}

// suiteTask is what an evaluation plays.
func suiteTask(suite spec.Suite) (*Task, error) {
	p, err := inWording(envs.Protocol{Think: suite.Think, Subgoals: suite.Subgoals, FormatPenalty: suite.FormatPenalty,
		Penalty: envs.Penalty(suite.Penalty), ContextTurns: suite.ContextTurns, Cuts: spec.Cuts(suite.Context)},
		suite.Protocol, suite.MaxNewTokens)
	if err != nil {
		return nil, fmt.Errorf("suite %s: %w", suite.Name, err)
	}
	if suite.Environment.ByAgent() {
		p = envs.Protocol{}
	}
	s := &Task{
		Protocol: p,
		Groups:   suite.Instances, Members: suite.Samples, Slots: suite.Samples, Trees: search.Trees{Trees: suite.Samples},
		Turns: suite.Turns, MaxNewTokens: suite.MaxNewTokens, Widths: suite.PromptTokens, StopAt: suite.StopAt, Suite: &suite,
	}
	if err := s.play(suite.Environment); err != nil {
		return nil, fmt.Errorf("suite %s: %w", suite.Name, err)
	}
	return s, nil
}

// Task is what a rollout of the run plays.
func (rc *Context) Task(r activities.Rollout) (*Task, error) {
	if r.Evaluation == nil {
		return rc.Training.at(r.Iteration), nil
	}
	for _, s := range rc.Suites {
		if s.Suite.Name == r.Evaluation.Suite {
			return s, nil
		}
	}
	return nil, fmt.Errorf("suite %q is not in the spec: %w", r.Evaluation.Suite, store.ErrInvalid)
}

// Shapes are the shapes of the programs of a task's turn. Generation depends on
// the task alone; Score and Update run on the width of the run's longest row.
func (rc *Context) Shapes(s *Task, turn int) model.Shapes {
	width := rc.Training.Widths[len(rc.Training.Widths)-1] + rc.Training.MaxNewTokens
	width = (width + scoreMargin - 1) / scoreMargin * scoreMargin
	u := rc.Train.Update
	sh := model.Shapes{
		GenerateRows: min(rc.Train.Rollout.Pass(), s.Groups*s.Slots),
		BlockRows:    rc.Train.Rollout.BlockRows,
		MicroBatch:   u.MicroBatch,
		PromptTokens: s.Widths[turn-1],
		MaxNewTokens: s.MaxNewTokens,
		ChunkTokens:  rc.Train.Rollout.ChunkTokens,
		Sequence:     width,
		Narrower:     narrower(width, u.Widths),
		ComputeDtype: rc.Train.Policy.ComputeDtype,
		Exact:        rc.Train.Policy.Exact,
		Keep:         u.Keeps(),
		SumSquares:   rc.Train.Credit.ReadsSumSquares(),
		Sharded:      u.Shards > 1,
		Loss:         u.Terms(rc.Training.Turns),
	}
	if turn == 1 && !s.ByAgent() {
		sh.SharedPrompts = rc.Train.Rollout.SharedPrompts(s.Groups*s.Slots, s.Slots)
	}
	if rc.Keeps(s) {
		sh.Append.Widest = s.Widths[len(s.Widths)-1]
		if turn > 1 {
			sh.Append.Before, sh.Append.Tokens = s.Widths[turn-2], rc.Train.Rollout.AppendTokens(turn)
		}
	}
	return sh
}

// Keeps reports whether the keys and values of a task's contexts are kept from turn to turn. It
// follows from the spec alone.
func (rc *Context) Keeps(s *Task) bool {
	return rc.Train.Rollout.KeepValues && s.Suite == nil && s.Turns > 1
}

// scoreMargin rounds the widths of scored rows up, so that few programs serve.
const scoreMargin = 16

// Drawn is the address of an iteration's draws: branches of a run with common random
// numbers share them.
func (rc *Context) Drawn(p draw.Purpose, branch, iteration int) draw.Address {
	if rc.Train.CommonRandom {
		branch = 0
	}
	return draw.Address{Seed: rc.Train.Seed, Purpose: p, Branch: int64(branch), Iteration: int64(iteration)}
}

// rowAddress gives the streams of a row: of its group's initial state, of the
// chances in its episode, and of its samples.
type rowAddress struct{ Instance, Chance, Sample draw.Address }

// Address computes them from (run seed, purpose, branch, iteration, group,
// member); an evaluation's from (suite, instance, sample) alone.
func (rc *Context) Address(s *Task, branch int, r activities.Rollout, group, member int) rowAddress {
	group += r.Round * s.Groups            // groups of a later round continue the index
	a := rc.Drawn("", branch, r.Iteration) // each stream has its own purpose
	a.Group = int64(group)
	purpose := func(p draw.Purpose) draw.Purpose { return p }
	if s.Suite != nil {
		a = draw.Address{Seed: s.Suite.Seed, Group: int64(group)}
		purpose = draw.Evaluation.With
	}
	with := func(p draw.Purpose, member int) draw.Address {
		b := a
		b.Purpose, b.Member = purpose(p), int64(member)
		return b
	}
	return rowAddress{
		Instance: with(draw.Instance, 0),
		Chance:   with(draw.Chance, member),
		Sample:   with(draw.Sample, member),
	}
}

// vocabulary is the tokenizer of a starter. It stands in for a model's own that is not at hand.
func vocabulary(p spec.Policy) starter.Vocabulary {
	if p.Starter == nil {
		return starter.First
	}
	return starter.Vocabulary(p.Starter.Tokenizer)
}

// Tokenizer is the tokenizer of a model's files, nil for a starter, with the variables of a spec's chat
// template.
func Tokenizer(t spec.Train, files map[string][]byte) (*tokenizer.Tokenizer, error) {
	if files == nil {
		files = vocabulary(t.Policy).Files()
	}
	tok, err := tokenizer.Load(files)
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %w: %w", err, activities.ErrModelInvalid)
	}
	return withVariables(tok, t)
}

// WithWidths fills in the widths of contexts that a spec leaves out, for the run and its
// suites, as the environments need them with a model's tokenizer. files are the model
// folder's, nil for a starter.
func WithWidths(t spec.Train, files map[string][]byte) (spec.Train, error) {
	tok, err := Tokenizer(t, files)
	if err != nil {
		return t, err
	}
	if t.Rollout.PromptTokens == nil {
		s, err := trainingTask(t)
		if err != nil {
			return t, err
		}
		if err := s.bind(tok, t.Environment); err != nil {
			return t, err
		}
		if t.Rollout.PromptTokens, err = s.neededWidths(); err != nil {
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
		if err := s.bind(tok, suite.Environment); err != nil {
			return t, fmt.Errorf("suite %s: %w", suite.Name, err)
		}
		if t.Evaluation.Suites[i].PromptTokens, err = s.neededWidths(); err != nil {
			return t, fmt.Errorf("suite %s: %w", suite.Name, err)
		}
	}
	return t, nil
}

// neededWidths are the widths of the contexts, the widest of all parts.
func (s *Task) neededWidths() ([]int, error) {
	var widest []int
	for _, p := range s.Parts {
		widths, err := envs.MaxPromptTokens(p.Environment, s.Tokenizer, s.Protocol, s.Turns, s.MaxNewTokens)
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
