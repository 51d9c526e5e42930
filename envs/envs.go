// Package envs has the environments that a policy acts in. Its turn protocol turns their
// states into messages and sampled text into actions, also at the level of token ids.
//
// # Environments
//
// An episode is a pure function of the environment's options, the address of
// its instance, the address of its chance and the actions taken; nothing of it
// is ever stored. Only the actions are recorded: Replay builds the state again.
//
// The instance (what the group shares: a layout, the order of the arms) and the
// chance (what happens inside one member's episode: payouts, slips) are drawn
// from different addresses, so that the members of a group differ in their luck.
//
// # A new environment
//
// An environment is a folder with a package that implements Environment and
// Episode and calls Register in its init function, and a line in envs/all.
// See envs/guess, to which docs/environments.md links.
//
// # Turns
//
// A turn is one sampled text and the environment's answer to it. Protocol says
// how they are written; see its methods First, Next, Parse and Play, and
// PromptIDs, ContinueIDs and ReadReply for the same on token ids.
package envs

import "github.com/reprise-rl/reprise/model/draw"

// Environment is a kind of task with its options resolved. It has no state and
// may be used by several goroutines.
type Environment interface {
	// Name is the name it is registered under.
	Name() string
	// Instructions are the rules, for the first user message.
	Instructions() string
	// Actions are the names of the legal actions where every state has the same;
	// nil if observations name them.
	Actions() []string
	// MaxActions is the most actions of an episode (RAGEN: 10 for grids, 1 for one-shot tasks).
	MaxActions() int
	// MaxActionsPerTurn is the most actions of a turn (paper: 5).
	MaxActionsPerTurn() int
	// Reset begins an episode. The members of a group have the same instance
	// address (its Member is ignored) and each its own chance address.
	Reset(instance, chance draw.Address) Episode
	// Cases are episodes at their beginning. At least one of them must be as wide, in
	// tokens, as the widest observation of the environment. Every choice that a balanced
	// set of transcripts must balance occurs equally often. Deterministic.
	Cases() []Episode
}

// Episode is the state of one member's episode.
type Episode interface {
	// Observation is the state as text, without a newline at the end.
	Observation() string
	// Legal returns the canonical name of an action that the policy wrote, and whether
	// the action is legal in this state. Case does not count. A canonical name is legal
	// and its own. May be called when Done.
	Legal(action string) (canonical string, ok bool)
	// Choices are the canonical names of the legal actions in this state; of a
	// FreeForm environment, examples of them.
	Choices() []string
	// Step takes a legal action, by its canonical name. It must not be called
	// when Done, and panics on an action that is not legal.
	Step(action string) Outcome
	// StateKey names the state (not its prompt): equal keys, equal states.
	StateKey() string
	// Done says that the episode has ended.
	Done() bool
	// Success says that the task is solved.
	Success() bool
}

// Outcome is what one action led to.
type Outcome struct {
	// Reward of this action alone, raw: without penalties.
	Reward float64
	// Done says that the episode has ended with this action.
	Done bool
	// Effective says that the action changed the state.
	Effective bool
	// Success says that the task is solved.
	Success bool
	// Text is the environment's answer in words; may be empty.
	Text string
}

// Description explains an environment to people.
type Description struct {
	Name    string   `json:"name"`
	Summary string   `json:"summary"`
	Options []Option `json:"options"`
}

// Option describes one option of an environment.
type Option struct {
	Name string `json:"name"`
	// Type is "string", "number", "integer", "boolean" or "object".
	Type string `json:"type"`
	// Default is the value if the option is absent.
	Default any    `json:"default"`
	Doc     string `json:"doc"`
}
