package foreign

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/reprise-rl/reprise/infra/strict"
	"github.com/reprise-rl/reprise/model/draw"
)

// Version is the version of the protocol.
const Version = 1

// The names of the calls.
const (
	CallDescribe = "EnvDescribe"
	CallPlay     = "EnvPlay"
)

// The bounds of what a server may answer. They are far above what a policy's context holds.
const (
	// MaxAnswer is the most bytes of an answer to one call.
	MaxAnswer = 16 << 20
	// MaxText is the most bytes of an observation, a step's text or the instructions.
	MaxText = 64 << 10
	// MaxAction is the most bytes of an action's name.
	MaxAction = 4 << 10
	// MaxNames is the most actions of a description and the most choices of a state.
	MaxNames = 4096
	// MaxWidest is the most widest texts of a description.
	MaxWidest = 64
	// MaxSteps is the most actions of an episode.
	MaxSteps = 1000
	// MaxReward is the greatest absolute reward of an action.
	MaxReward = 1e6
	// MaxEpisodes is the most episodes of one call.
	MaxEpisodes = 64
	// depth is the most objects and arrays in each other of an answer.
	depth = 16
)

// Description is what a server says about the environment with its options.
type Description struct {
	// Version of the environment's rules. The server's author changes it with the rules.
	Version string
	// Instructions are the rules, for the first user message.
	Instructions string
	// Actions are the names of the legal actions where every state has the same; nil if
	// states name theirs.
	Actions []string
	// MaxActions of an episode, and of a turn.
	MaxActions, MaxActionsPerTurn int
	// Instances is how many different instances there are; 0 says that they do not end.
	Instances int64
	// Widest are observations at least one of which is as wide as any that occurs.
	Widest []string
	// Replayable says that equal calls get equal answers.
	Replayable bool
}

// Changed says how an environment describes itself now, where this is what it said before: each field that differs, of
// lists what is new and what is gone. It is "" if nothing differs.
func (d Description) Changed(now Description) string {
	var parts []string
	value := func(name string, was, is any) {
		if was != is {
			parts = append(parts, fmt.Sprintf("%s is %s, was %s", name, strict.Shorten(fmt.Sprint(is)), strict.Shorten(fmt.Sprint(was))))
		}
	}
	list := func(name string, was, is []string) {
		if slices.Equal(was, is) {
			return
		}
		var texts []string
		for _, text := range is {
			if !slices.Contains(was, text) {
				texts = append(texts, "+ "+strict.Quote(text))
			}
		}
		for _, text := range was {
			if !slices.Contains(is, text) {
				texts = append(texts, "- "+strict.Quote(text))
			}
		}
		if more := len(texts) - mostChanges; more > 0 {
			texts = append(texts[:mostChanges], fmt.Sprintf("and %d more", more))
		}
		parts = append(parts, name+": "+cmp.Or(strings.Join(texts, ", "), "another order"))
	}
	value("version", d.Version, now.Version)
	value("instructions", d.Instructions, now.Instructions)
	list("actions", d.Actions, now.Actions)
	value("max_actions", d.MaxActions, now.MaxActions)
	value("max_actions_per_turn", d.MaxActionsPerTurn, now.MaxActionsPerTurn)
	value("instances", d.Instances, now.Instances)
	list("widest", d.Widest, now.Widest)
	value("replayable", d.Replayable, now.Replayable)
	return strings.Join(parts, "; ")
}

// mostChanges is how many texts of a list Changed names.
const mostChanges = 4

// Asked is one episode of a call of EnvPlay.
type Asked struct {
	// Instance and Chance determine all that is random; see Number.
	Instance, Chance uint64
	// Played are the canonical actions so far.
	Played []string
	// Chain is the chain after them; "" for an episode that begins, which has no Played
	// and no Next.
	Chain string
	// Next are the actions of this turn as the policy wrote them.
	Next []string
}

// Answer is what the server answers about an episode.
type Answer struct {
	// Observation is the state at the end of the call.
	Observation string
	// Choices are the legal actions there; nil where the description names all actions.
	Choices []string
	// Steps are the legal ones of Next, in order.
	Steps []Step
	// Invalid is how many of Next were not legal.
	Invalid int
	// Done says that the episode has ended, Success that its task is solved.
	Done, Success bool
	// Chain at the end of the call.
	Chain string
	// Err is nil, or wraps ErrDrift, ErrBroken or ErrBusy; then the other fields are zero.
	Err error
}

// Step is one action that the environment executed.
type Step struct {
	// Action is its canonical name.
	Action string
	// Reward of this action alone.
	Reward float64
	// RewardText is the reward as the server wrote it, which the chain contains.
	RewardText string
	// Text is the answer in words; may be empty.
	Text string
	// Effective says that the action changed the state.
	Effective bool
	// Observation is the state after the action.
	Observation string
}

// Number is the number from 0 to 2⁶³−1 that stands for a draw address in a call.
func Number(a draw.Address) uint64 { return a.Rand().Uint64() >> 1 }

// asked is Asked as it travels. The numbers are decimal strings: JavaScript has no
// integers above 2⁵³.
type asked struct {
	Instance string   `json:"instance"`
	Chance   string   `json:"chance"`
	Played   []string `json:"played"`
	Chain    string   `json:"chain"`
	Next     []string `json:"next"`
}

// describeInput is the input of EnvDescribe.
func describeInput(options json.RawMessage) []byte {
	return encode(struct {
		Options json.RawMessage `json:"options"`
	}{orEmpty(options)})
}

// playInput is the input of EnvPlay. The error says which episode breaks a bound.
func playInput(options json.RawMessage, episodes []Asked) ([]byte, error) {
	if len(episodes) == 0 || len(episodes) > MaxEpisodes {
		return nil, fmt.Errorf("ask an environment: %d episodes, want 1 to %d", len(episodes), MaxEpisodes)
	}
	wire := make([]asked, len(episodes))
	for i, e := range episodes {
		if err := e.check(); err != nil {
			return nil, fmt.Errorf("ask an environment: episode %d: %w", i, err)
		}
		wire[i] = asked{
			Instance: strconv.FormatUint(e.Instance, 10), Chance: strconv.FormatUint(e.Chance, 10),
			Played: append([]string{}, e.Played...), Chain: e.Chain, Next: append([]string{}, e.Next...),
		}
	}
	return encode(struct {
		Options  json.RawMessage `json:"options"`
		Episodes []asked         `json:"episodes"`
	}{orEmpty(options), wire}), nil
}

// check says what is wrong with a question.
func (a Asked) check() error {
	switch {
	case a.Instance>>63 != 0 || a.Chance>>63 != 0:
		return fmt.Errorf("instance %d, chance %d, want numbers below 2^63", a.Instance, a.Chance)
	case a.Chain == "" && len(a.Played)+len(a.Next) > 0:
		return fmt.Errorf("it has actions and no chain; ask for its beginning first")
	case len(a.Played)+len(a.Next) > MaxSteps:
		return fmt.Errorf("%d actions, want at most %d", len(a.Played)+len(a.Next), MaxSteps)
	}
	for _, text := range append(append([]string{}, a.Played...), a.Next...) {
		if !utf8.ValidString(text) {
			return fmt.Errorf("action %q is not UTF-8", text)
		}
	}
	return nil
}

func orEmpty(options json.RawMessage) json.RawMessage {
	if len(options) == 0 {
		return json.RawMessage("{}")
	}
	return options
}

// encode is v as JSON. What is encoded here always can be.
func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("foreign: encode %v: %v", v, err)) // texts, and options that were JSON
	}
	return b
}
