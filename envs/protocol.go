package envs

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/reprise-rl/reprise/envs/calls"
	"github.com/reprise-rl/reprise/model/tokenizer/chat"
)

// SystemMessage is the first message of every conversation (RAGEN's is as generic).
const SystemMessage = "You are a helpful assistant."

// Separator separates the actions of a turn (RAGEN: agent_proxy.action_sep).
const Separator = "||"

// Protocol is how turns are written and read, after RAGEN's prompt protocol.
// The opening tag is part of the prompt and never sampled, so what is sampled
// begins after it.
type Protocol struct {
	// Think requires <think>…</think> before <answer>…</answer>.
	Think bool
	// Subgoals asks for a switch and a subgoal in the thought (HiPER); see ReadSubgoal.
	Subgoals bool
	// FormatPenalty is added once to a turn that Penalty charges (default −0.1).
	FormatPenalty float64
	// Penalty says which turns are charged; "" is NoAction.
	Penalty Penalty
	// ContextTurns is how many turns a context shows, including the current one; 0 shows
	// all (RAGEN: max_context_window −1).
	ContextTurns int
	// Cuts shorten older observations; nil for none. They exclude ContextTurns.
	Cuts []Cut
	// LengthHint is a number of tokens or words that the prompt requests; 0 for none. It
	// enforces nothing.
	LengthHint int
	// Wording is one of Wordings, how messages are written, or the text that Templates are read
	// from; "" is Ours. Replies are read the same in all.
	Wording string
	// Templates are a user's own wording; nil without. WithWording sets both.
	Templates *Templates
	// Tools are what the policy may call; nil for none. Then a reply is calls, or an answer between its tags, or both,
	// and the prompt ends where the chat template lets the assistant begin.
	Tools *Toolset
}

// Penalty is a rule that says which turns cost the format penalty.
type Penalty string

const (
	// NoAction charges a turn in which nothing was executed: the paper's rule.
	NoAction Penalty = "no_action"
	// AnyInvalid also penalises a turn in which some actions are legal and another is
	// not: the rule of RAGEN's code. All of the turn's actions count, also those that
	// follow the end of the episode; surplus ones do not.
	AnyInvalid Penalty = "any_invalid"
)

// Opening is the tag at the end of every prompt: "<think>" or "<answer>"; none where a reply may be a call.
func (p Protocol) Opening() string {
	switch {
	case p.Think:
		return "<think>"
	case p.Tools != nil:
		return ""
	}
	return "<answer>"
}

// First gives the messages of turn 1: the system's line, and the instructions,
// the legal actions, the budget and the turn's block from the user.
func (p Protocol) First(env Environment, episode Episode) []chat.Message {
	return p.begin(env, episode, 1, env.MaxActions())
}

// begin gives the messages with which a context begins that shows a turn and
// none before it.
func (p Protocol) begin(env Environment, episode Episode, turn, left int) []chat.Message {
	switch {
	case p.Tools != nil:
		return p.toolsBegin(env, episode, left)
	case p.Templates != nil:
		return p.templatesBegin(env, episode, turn, left)
	case p.Wording == Ragen:
		return p.ragenBegin(env, episode, turn, left)
	case p.Wording == Hiper:
		return p.hiperBegin(env, episode, turn)
	case p.Wording == Vagen:
		return p.vagenBegin(env, episode, turn)
	}
	var s strings.Builder
	s.WriteString(env.Instructions())
	s.WriteByte('\n')
	if actions := env.Actions(); len(actions) > 0 {
		fmt.Fprintf(&s, "Actions: %s\n", strings.Join(actions, ", "))
	}
	if n := env.MaxActions(); n > 1 {
		fmt.Fprintf(&s, "You have %d actions in all, at most %d a turn, separated by %s\n", n, env.MaxActionsPerTurn(), Separator)
	}
	s.WriteString(p.block(env, episode, turn, left))
	return []chat.Message{{Role: "system", Content: SystemMessage}, {Role: "user", Content: s.String()}}
}

// Next gives the user's message of a later turn: the reward of the turn before, unless the
// environment is Reticent or the wording has no rewards (Hiper, Vagen), and this turn's block.
func (p Protocol) Next(env Environment, episode Episode, next NextTurn) string {
	reticent, ok := env.(Reticent)
	hidden := ok && reticent.HidesRewards()
	switch {
	case p.Tools != nil && hidden:
		return p.toolsBlock(env, episode, next.ActionsLeft)
	case p.Tools != nil:
		return "Reward: " + FormatReward(next.Reward) + "\n" + p.toolsBlock(env, episode, next.ActionsLeft)
	case p.Templates != nil:
		return p.templatesNext(episode, next, hidden)
	case p.Wording == Hiper:
		return p.hiperNext(env, episode, next.Number)
	case p.Wording == Vagen:
		return p.vagenNext(env, episode)
	case p.Wording == Ragen && hidden:
		return p.ragenBlock(episode, next.Number, next.ActionsLeft)
	case p.Wording == Ragen:
		return "Reward:\n" + FormatReward(next.Reward) + "\n" + p.ragenBlock(episode, next.Number, next.ActionsLeft)
	case hidden:
		return p.block(env, episode, next.Number, next.ActionsLeft)
	}
	return "Reward: " + FormatReward(next.Reward) + "\n" + p.block(env, episode, next.Number, next.ActionsLeft)
}

// NextTurn is the text that the message of a turn after the first has in addition to the
// state.
type NextTurn struct {
	// Number of the turn that begins; the first turn is 1.
	Number int
	// Reward of the turn before, raw.
	Reward float64
	// ActionsLeft of the episode.
	ActionsLeft int
	// Results are the answers to the calls of the turn before, if it had any.
	Results []string
	// Acted says that the environment executed an action in the turn before: then its state is shown after the results.
	Acted bool
}

// block is a turn's number, state, actions left (if there is anything to
// count) and the form of the reply.
func (p Protocol) block(env Environment, episode Episode, turn, left int) string {
	var s strings.Builder
	fmt.Fprintf(&s, "Turn %d:\n%s\n", turn, episode.Observation())
	if env.MaxActions() > 1 {
		fmt.Fprintf(&s, "Actions left: %d\n", left)
	}
	if p.Wording == Examples {
		s.WriteString(p.exampleForm(env, episode, turn, left))
	} else {
		s.WriteString("Reply: " + p.format())
	}
	if p.LengthHint > 0 {
		fmt.Fprintf(&s, "\nMax response length: %d words (tokens).", p.LengthHint)
	}
	return s.String()
}

// format is the form of a reply.
func (p Protocol) format() string {
	if p.Think && p.Subgoals {
		return "<think> <switch> KEEP or SWITCH </switch> <subgoal> your subgoal </subgoal> </think><answer> your action </answer>"
	}
	if p.Think {
		return "<think> your thoughts </think><answer> your action </answer>"
	}
	return "<answer> your action </answer>"
}

// FormatReward writes a reward for a prompt: at most four decimals.
func FormatReward(reward float64) string {
	rounded := math.Round(reward*1e4) / 1e4
	if rounded == 0 {
		rounded = 0 // not -0
	}
	return strconv.FormatFloat(rounded, 'f', -1, 64)
}

// Reply is what a sampled text says.
type Reply struct {
	// Formatted says that the tags were found: all of them closed.
	Formatted bool
	// Thought and Answer are the texts between the tags, trimmed.
	Thought, Answer string
	// Actions are the answer's parts, trimmed, empty ones left out, at most as
	// many as a turn may have. Whether they are legal is the episode's to say.
	Actions []string
	// Surplus is how many more actions the answer had; they cost nothing (as in RAGEN).
	Surplus int
	// Calls are the calls of tools, in order; see Toolset.
	Calls []calls.Call
	// Grade is the answer to what a Graded episode asks about the action; nil where nobody was asked. Parse leaves it nil.
	Grade *ToolAnswer
}

// gap is Python's \s, which Go's is not.
const gap = `[\s\v\x{1c}-\x{1f}\x{85}\p{Z}]*`

var (
	thinkPattern  = regexp.MustCompile(`(?s)<think>(.*?)</think>` + gap + `<answer>(.*?)</answer>`)
	answerPattern = regexp.MustCompile(`(?s)<answer>(.*?)</answer>`)
	// stripTags are taken out of what is between the tags.
	stripTags = []string{"<think>", "</think>", "<answer>", "</answer>", "<|im_start|>", "<|im_end|>"}
)

// Parse reads a sampled text, which begins after the opening tag. It is as
// lenient as RAGEN: the first match counts, whatever surrounds it. Text in
// which the tags do not match is a reply without actions.
func (p Protocol) Parse(sampled string, maxActions int) Reply {
	if p.Tools != nil {
		return p.parseTools(sampled, maxActions)
	}
	text := p.Opening() + sampled
	var r Reply
	if p.Think {
		m := thinkPattern.FindStringSubmatch(text)
		if m == nil {
			return r
		}
		r.Thought, r.Answer = clean(m[1]), clean(m[2])
	} else {
		m := answerPattern.FindStringSubmatch(text)
		if m == nil {
			return r
		}
		r.Answer = clean(m[1])
	}
	r.Formatted = true
	r.split(maxActions)
	return r
}

// split takes the answer apart into actions.
func (r *Reply) split(maxActions int) {
	for action := range strings.SplitSeq(r.Answer, Separator) {
		action = strings.TrimSpace(action)
		if action == "" {
			continue
		}
		if len(r.Actions) == maxActions {
			r.Surplus++
			continue
		}
		r.Actions = append(r.Actions, action)
	}
}

func clean(s string) string {
	for _, tag := range stripTags {
		s = strings.ReplaceAll(s, tag, "")
	}
	return strings.TrimSpace(s)
}

// Writable says that a reply can give an action: Parse reads it again if it is the
// answer. The separator, the protocol's tags and blanks around it do not pass.
func Writable(action string) bool {
	return action != "" && clean(action) == action && !strings.Contains(action, Separator)
}

// Lookup finds an action among names, case ignored: what most episodes' Legal does.
func Lookup(names []string, action string) (canonical string, ok bool) {
	for _, name := range names {
		if strings.EqualFold(name, action) {
			return name, true
		}
	}
	return "", false
}
