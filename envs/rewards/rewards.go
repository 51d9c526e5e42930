// Package rewards has the modules that score episodes beside their environment: the parts
// of a reward. The arithmetic is in model/reward; here is what it reads in an episode.
//
// A module is a pure function of recorded turns and of the states that are replayed from
// them. It works in one of three stages. Turn modules see the turns so far, episode modules
// the whole episode, and group modules all episodes of a group. In addition a module may
// read which texts were frequent in the iteration before ([Past]).
package rewards

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/infra/strict"
)

// ErrUnknown says that no module has a name.
var ErrUnknown = errors.New("unknown reward module")

// Stage is how much of a group a module sees.
type Stage string

// The stages.
const (
	OfTurn    Stage = "turn"
	OfEpisode Stage = "episode"
	OfGroup   Stage = "group"
)

// State is what modules see of an environment's state.
type State struct {
	// Grid are the rows in standard glyphs; nil if the episode is not envs.Gridded.
	Grid    []string
	Success bool
}

// StateOf reads a state.
func StateOf(e envs.Episode) State {
	s := State{Success: e.Success()}
	if g, ok := e.(envs.Gridded); ok {
		s.Grid = g.Grid()
	}
	return s
}

// Turn is a recorded turn.
type Turn struct {
	// Reply is what was written, read as the protocol reads it.
	Reply envs.Reply
	// Executed, Effective and Invalid count actions, as the step table does.
	Executed, Effective, Invalid int
	// Tokens is the number of sampled ids, and Thought how many of them begin in the
	// thought.
	Tokens, Thought int
	// Reward is the environment's, without penalties.
	Reward float64
	// Calls are the executed actions that called a tool, and ValidCalls those of them that
	// the tool could answer.
	Calls, ValidCalls int
	// Before and After are the states around the turn.
	Before, After State
}

// Episode is a recorded episode. Environment is the name of what was played.
type Episode struct {
	Environment string
	Turns       []Turn
	Success     bool
	// Judged are the components of a judge's verdict, in the order of the module that asked for
	// it; nil without a judge. From a judge by turn component i of turn k is at i × turns + k.
	Judged []float64
}

// Said is the text of a tag in a reply.
type Said struct{ Tag, Text string }

// Past are the texts that were frequent in the iteration before; empty in the first.
type Past map[Said]bool

// Module is a module with its options.
type Module struct {
	Name  string
	Stage Stage
	// Frequent is how many of the most frequent texts of an iteration the next one reads;
	// 0 for a module that reads none.
	Frequent int

	// Figures are means over the episodes of a rollout, by the names of their metrics; nil for
	// a module without.
	Figures func([]Episode) map[string]float64

	// Tags are the names of the tags that the module reads in thoughts; nil for one that reads none.
	Tags []string

	// Judge is the judge whose verdicts the module reads in Episode.Judged; nil for one without.
	Judge *Judge

	// Criteria are what the module judges at each turn, for an algorithm of credit that compares them one by
	// one; nil for a module without.
	Criteria *Criteria

	thinks bool // it reads thoughts
	grids  bool // it reads the grids of environments in places
	tools  bool // it reads calls of tools
	score  func(group []Episode, past Past) [][]float64
}

// Criteria are the items of a checklist or the components of a judge by turn.
type Criteria struct {
	// Names are theirs, Weights what each is worth, and After the one before it that each depends on, −1 for none.
	Names   []string
	Weights []float64
	After   []int
	// Holds says which hold at a turn alone, whatever held before: [turns][criteria].
	Holds func(Episode) [][]bool
}

// Score gives the reward of every turn: [members][turns]. Rows of other groups and other
// runs make no difference.
func (m Module) Score(group []Episode, past Past) [][]float64 { return m.score(group, past) }

// Lacks says what an environment, or the protocol, does not have that the module needs; ""
// if nothing is missing. think says that replies have thoughts.
func (m Module) Lacks(env envs.Environment, think bool) string {
	switch {
	case m.thinks && !think:
		return "thoughts (rollout.think)"
	case m.grids && !placed(env):
		return "a grid whose objects the module knows (" + strings.Join(gridded(), ", ") + ")"
	case m.tools && !tooled(env):
		return "tools, such as the calculator of countdown (option calculator)"
	}
	return ""
}

// entry is a module that a spec can name. declare declares its options and gives the module
// that their values make.
type entry struct {
	name, summary string
	declare       func(*envs.Options) Module
}

// modules are all modules, in alphabetical order.
var modules = []entry{
	{"checklist", "items that hold or fail, each with a weight (CM2, arXiv 2602.12268); predicates instead of a judge", checklist},
	{"first_attempt", "the reward of the first turn, at the first turn: a weight of −1 takes it away (SCoRe's first stage, arXiv 2409.12917)", firstAttempt},
	{"foreign", "what a judge of your own says of an episode, or of each of its turns: see docs/own-environments.md", foreignJudge},
	{"improvement", "what the second turn earned more than the first, at the second turn (SCoRe's bonus, arXiv 2409.12917)", improvement},
	{"judge", "what a language model says of an episode, or of each of its turns, behind an address or on the run's own engine: see docs/rewards.md", modelJudge},
	{"length", "short correct rows of a group above long ones (Kimi k1.5, arXiv 2501.12599)", length},
	{"progress", "the change of the distance that is left, in cells", progress},
	{"state", "what a thought says of the state before and after, against the truth (VAGEN, arXiv 2510.16907)", state},
	{"tools", "a bonus for each call of a tool, in episodes that succeed (PyVision-RL, arXiv 2602.20739)", tools},
}

// Names are the modules' names in alphabetical order.
func Names() []string {
	names := make([]string, len(modules))
	for i, m := range modules {
		names[i] = m.name
	}
	return names
}

// New makes a module from its options, which may be absent. The problems have the option as
// their path. The error is of kind ErrUnknown, with the nearest name.
func New(name string, options json.RawMessage) (Module, strict.Problems, error) {
	e, err := find(name)
	if err != nil {
		return Module{}, nil, err
	}
	var m Module
	_, problems := envs.ReadOptions(options, func(o *envs.Options) { m = e.declare(o) })
	m.Name = name
	return m, problems, nil
}

func find(name string) (entry, error) {
	for _, e := range modules {
		if e.name == name {
			return e, nil
		}
	}
	text := "known are: " + strings.Join(Names(), ", ")
	if hint := strict.DidYouMean(name, Names()); hint != "" {
		text += "; " + hint
	}
	return entry{}, fmt.Errorf("%w %q, %s", ErrUnknown, name, text)
}

// byTurn scores each turn by the turns up to it.
func byTurn(score func(soFar Episode, past Past) float64) func([]Episode, Past) [][]float64 {
	return byEpisode(func(e Episode, past Past) []float64 {
		out := make([]float64, len(e.Turns))
		for k := range out {
			soFar := e
			soFar.Turns, soFar.Success = e.Turns[:k+1], e.Turns[k].After.Success
			out[k] = score(soFar, past)
		}
		return out
	})
}

// byEpisode scores the turns of each episode by itself.
func byEpisode(score func(Episode, Past) []float64) func([]Episode, Past) [][]float64 {
	return func(group []Episode, past Past) [][]float64 {
		out := make([][]float64, len(group))
		for i, e := range group {
			out[i] = score(e, past)
		}
		return out
	}
}

// atEnd puts a reward at an episode's last turn.
func atEnd(e Episode, reward float64) []float64 {
	out := make([]float64, len(e.Turns))
	if len(out) > 0 {
		out[len(out)-1] = reward
	}
	return out
}
