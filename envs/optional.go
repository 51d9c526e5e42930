package envs

import (
	"encoding/json"
	"strconv"
	"unicode/utf8"

	"github.com/reprise-rl/reprise/model/draw"
)

// Gridded is implemented by episodes on a grid.
type Gridded interface {
	// Grid gives the rows of the state in the environment's standard glyphs,
	// whatever glyphs and form its observations have.
	Grid() []string
}

// Advised is implemented by episodes whose best play is known: for
// demonstrations, and for the reference line beside a policy's success. Both are
// about success, which may not be what pays most: see Valued.
type Advised interface {
	// Advice gives actions of best play from this state with n actions left, at
	// most n of them. It is at most one action if chance decides what follows: take it,
	// look, and ask again. It is empty if no play succeeds.
	Advice(n int) []string
	// BestSuccess is the highest probability with which at most n more actions
	// succeed; 1 where the task is solved already, NaN if a bounded search did
	// not find out.
	BestSuccess(n int) float64
}

// Valued is implemented by episodes whose highest reward is known.
type Valued interface {
	// BestReward is the highest expected sum of raw rewards, without discount and
	// penalties, of at most n further actions. It is never below 0, the sum of no action.
	// NaN if a bounded search did not find out.
	BestReward(n int) float64
}

// Held is implemented by environments that can hold instances back from training.
// Others are evaluated with their own options.
type Held interface {
	// HeldOut gives the canonical options of the in-distribution evaluation: with
	// them no instance is met that the environment's own options train on, and the
	// rest is as it is. If the options hold nothing out, it returns them with every
	// default filled in.
	HeldOut() json.RawMessage
}

// Bounded is implemented by environments that have more observations than Cases
// could hold.
type Bounded interface {
	// Widest gives episodes that are only shown, never played. Every observation takes at
	// most as many tokens as the observation of one of them, whatever the tokenizer
	// merges.
	Widest() []Episode
}

// Measured is implemented by environments whose observations are texts that no
// formula bounds, and too many for all of them to be cases.
type Measured interface {
	// Longest gives episodes that are only shown, never played; one of them has the
	// widest observation. width gives the tokens of a text as the message of a later
	// turn. It is slow: do not call it for texts that cannot be the widest by their
	// bytes.
	Longest(width func(text string) (int, error)) ([]Episode, error)
}

// MostTokens is more than any tokenizer makes of a text: a token has at least one byte,
// and outside of ASCII a character may be taken apart first, into three times as many.
func MostTokens(text string) int {
	most := 0
	for i := range len(text) {
		if most++; text[i] >= utf8.RuneSelf {
			most += 2
		}
	}
	return most
}

// FreeForm is implemented by environments whose actions are texts of the policy's own,
// more than can be listed. Their episodes give examples as Choices: legal actions of the
// right form, at least one in every state in which an action is legal, and without a hint of
// which one succeeds. States may differ in their number, as where some actions can be listed
// and others cannot; episodes at their beginning have the same examples. Random play chooses
// among them.
type FreeForm interface {
	// ActionForm says in a few words what an action looks like.
	ActionForm() string
}

// Counting is implemented by environments with figures of their own: calls of each of
// their tools, for instance. Metrics show their means an episode.
type Counting interface {
	// Counters are the figures' names: lower case, with underscores.
	Counters() []string
	// Count gives an episode's figures: [counters]. It gets the actions that were executed,
	// by their canonical names, and the keys of the states in which the policy was asked.
	Count(actions, states []string) []int
}

// Reticent is implemented by environments that may keep the rewards of turns to themselves.
type Reticent interface {
	// HidesRewards says that a turn does not see the reward of the one before.
	HidesRewards() bool
}

// Tooled is implemented by environments in which actions may call tools. Metrics show the
// calls of each tool an episode, and which share of the calls was valid.
type Tooled interface {
	// Tools are the tools' names: lower case, with underscores. Empty if the options give none.
	Tools() []string
	// Call reads an action that was executed, by its canonical name: the tool that it calls,
	// "" if it calls none, and whether the tool could do what it was asked.
	Call(action string) (tool string, valid bool)
}

// Teamed is implemented by environments in which several roles of one policy take turns, as
// one that reads and one that walks. A turn is one role's alone, so MaxActionsPerTurn is 1 if
// an action may pass the turn to another role.
type Teamed interface {
	// Roles are the roles' names, in the order in which metrics list them: lower case, with
	// underscores.
	Roles() []string
	// Role is the role that acts in a state, by the state's key.
	Role(state string) string
}

// Certain is implemented by environments that may leave nothing to chance: after the draw of the
// instance, the actions alone decide what happens. A search may then compare what actions lead to,
// because no luck is in it.
type Certain interface {
	// Certain reports whether they do, with these options.
	Certain() bool
}

// Forked is implemented by episodes with chance that may go on with other luck: branches of a
// rollout begin where another row was, and what happens to them from there on is drawn anew.
type Forked interface {
	// Fork makes the next actions draw from an address.
	Fork(chance draw.Address)
}

// Staged is implemented by environments in which the turns of an episode ask for different
// things, so that its first turns do not show what later ones are like.
type Staged interface {
	// Staged marks the environment; it does nothing.
	Staged()
}

// Pinned is implemented by environments and tools that read a file beside their options.
type Pinned interface {
	// Pin gives the options with the digest of the file filled in: with them the
	// environment or tool is the same wherever it is made, or is not made. They are what
	// a resolved spec holds.
	Pin() (json.RawMessage, error)
}

// Document is a text under a title, as a search finds it.
type Document struct {
	// ID names the document: it is unique in its corpus.
	ID string
	// Title says what the document is about; it may be empty.
	Title string
	Text  string
}

// Library is implemented by environments that have a corpus of documents, in which a tool may search.
type Library interface {
	// Corpus gives the documents, each ID once. Callers must not change them. Empty if the options name no corpus.
	Corpus() []Document
}

// Seeking is implemented by episodes whose best play looks something up first. A policy that is shown best play is shown that too,
// where a tool takes a text.
type Seeking interface {
	// Seek gives the texts to search for, in their order, at the beginning of the episode: each finds what names the next, and the
	// last what the answer is in. None if that is not known.
	Seek() []string
}

// Answered is implemented by episodes that are recordings of an environment elsewhere, which
// says itself what of a reply it executed.
type Answered interface {
	// Answer gives the next turn: the executed actions by their canonical names, and how many
	// of those that the policy wrote were not legal.
	Answer() (actions []string, invalid int)
}

// Tabular is implemented by episodes whose dynamics are a finite table.
type Tabular interface {
	// Transitions gives what may follow: [states][actions][outcomes], states and
	// actions by their number, outcomes not merged.
	Transitions() Table
}

// Table is the dynamics of an episode: [states][actions][outcomes]. Its JSON is
// gymnasium's P: {"P":{state:{action:[[probability,next,reward,done]…]}}}.
type Table [][][]Transition

// Transition is one thing that an action may lead to.
type Transition struct {
	Probability float64
	// Next is the state's number.
	Next   int
	Reward float64
	// Done says that the episode ends with it.
	Done bool
}

// MarshalJSON writes a transition as an array.
func (t Transition) MarshalJSON() ([]byte, error) {
	return json.Marshal([]any{t.Probability, t.Next, t.Reward, t.Done})
}

// MarshalJSON writes the states and actions in the order of their numbers.
func (t Table) MarshalJSON() ([]byte, error) {
	b := []byte(`{"P":{`)
	for state, actions := range t {
		if state > 0 {
			b = append(b, ',')
		}
		b = append(strconv.AppendQuote(b, strconv.Itoa(state)), `:{`...)
		for action, outcomes := range actions {
			if action > 0 {
				b = append(b, ',')
			}
			b = append(strconv.AppendQuote(b, strconv.Itoa(action)), ':')
			encoded, err := json.Marshal(outcomes)
			if err != nil {
				return nil, err
			}
			b = append(b, encoded...)
		}
		b = append(b, '}')
	}
	return append(b, "}}"...), nil
}
