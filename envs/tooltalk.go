package envs

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/reprise-rl/reprise/envs/calls"
	"github.com/reprise-rl/reprise/model/tokenizer/chat"
)

// toolsBegin gives the messages with which a context begins, where the policy may call tools.
func (p Protocol) toolsBegin(env Environment, episode Episode, left int) []chat.Message {
	system := SystemMessage
	switch {
	case p.Tools.InTemplate:
	case p.Wording == Examples:
		system = p.Tools.Form.Describe(p.Tools.told)
	default:
		system += "\n" + p.Tools.brief()
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
	s.WriteString(p.toolsBlock(env, episode, left))
	messages := []chat.Message{{Role: "system", Content: system}, {Role: "user", Content: s.String()}}
	return slices.DeleteFunc(messages, func(m chat.Message) bool { return m.Content == "" })
}

// toolsBlock is a turn's state, actions left if there is anything to count, and the form of the reply. Turns have no
// number: those of calls show no block.
func (p Protocol) toolsBlock(env Environment, episode Episode, left int) string {
	text := episode.Observation() + "\n"
	if env.MaxActions() > 1 {
		text += fmt.Sprintf("Actions left: %d\n", left)
	}
	form := "<answer> your answer </answer>"
	if p.Think {
		form = "<think> your thoughts </think>" + form
	}
	return text + "Reply: call a tool, or " + form
}

// thoughtPattern is the thought with which a reply begins.
var thoughtPattern = regexp.MustCompile(`(?s)^<think>(.*?)</think>`)

// parseTools is Parse where the policy may call tools: a thought if the protocol has thoughts, then calls, an answer
// between its tags, or both. A reply is formatted if it has one of them.
func (p Protocol) parseTools(sampled string, maxActions int) Reply {
	var r Reply
	text := p.Opening() + sampled
	if p.Think {
		m := thoughtPattern.FindStringSubmatch(text)
		if m == nil {
			return r
		}
		r.Thought, text = clean(m[1]), text[len(m[0]):]
	}
	r.Calls, text = p.Tools.read(text)
	r.Formatted = len(r.Calls) > 0
	if m := answerPattern.FindStringSubmatch(text); m != nil {
		r.Answer, r.Formatted = clean(m[1]), true
		r.split(maxActions)
	}
	return r
}

// messages are what follows a turn: the answers to its calls, each in a message of its own, and the environment's message
// unless calls were all that it had.
func (p Protocol) messages(env Environment, episode Episode, next NextTurn) []chat.Message {
	var out []chat.Message
	for _, text := range next.Results {
		out = append(out, p.Tools.Form.Result(text))
	}
	if len(out) == 0 || next.Acted {
		out = append(out, chat.Message{Role: "user", Content: p.Next(env, episode, next)})
	}
	return JoinUser(out)
}

// JoinUser makes one message of messages of the user that follow each other: not every chat template takes two.
func JoinUser(messages []chat.Message) []chat.Message {
	var out []chat.Message
	for _, m := range messages {
		if n := len(out); n > 0 && m.Role == "user" && out[n-1].Role == "user" {
			out[n-1].Content += "\n" + m.Content
			continue
		}
		out = append(out, m)
	}
	return out
}

// widestResults is the most tokens that can follow a turn, of which the environment's message has up to message.
func (p Protocol) widestResults(tok Tokenizer, env Environment, message int) (int, error) {
	messages := make([]chat.Message, p.Tools.PerTurn)
	for i := range messages {
		messages[i] = p.Tools.Form.Result("")
	}
	more, err := p.Tools.Cut(tok, "error: "+p.Tools.tooMany(calls.MaxCalls))
	if err != nil {
		return 0, fmt.Errorf("widths of answers to calls: %w", err)
	}
	frame, err := tok.ContinuationOf(JoinUser(append(messages, p.Tools.Form.Result(more))))
	if err != nil {
		return 0, fmt.Errorf("widths of answers to calls: %w", err)
	}
	results := 1 + len(frame) + len(messages)*(p.Tools.ResultTokens+1) // with the closing token, and one between messages of the user
	if env.MaxActions() > 1 {
		return message + results, nil
	}
	return max(message, results), nil
}

// widestCut is the most tokens of what follows a turn, of which whole is the most, when it is of an age.
func (p Protocol) widestCut(tok Tokenizer, age, whole int) (int, error) {
	limit := p.limit(age)
	if limit < 0 {
		return whole, nil
	}
	messages := []chat.Message{{Role: "user"}}
	if p.Tools != nil {
		for range p.Tools.PerTurn + 1 {
			messages = append([]chat.Message{p.Tools.Form.Result("")}, messages...)
		}
	}
	for i := range messages {
		messages[i].Content = cutMark
	}
	frame, err := tok.ContinuationOf(JoinUser(messages))
	if err != nil {
		return 0, fmt.Errorf("widths of cut observations: %w", err)
	}
	return min(whole, 1+len(frame)+len(messages)*(limit+1)), nil
}
