package run

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/calls"
	"github.com/reprise-rl/reprise/envs/completions"
	"github.com/reprise-rl/reprise/model/tokenizer"
	"github.com/reprise-rl/reprise/model/tokenizer/chat"
)

// Speaker turns calls of agents into prompts and samples into answers.
type Speaker struct {
	tok  *tokenizer.Tokenizer
	form calls.Form
	told map[string]toldOf // by the tools as JSON
}

// toldOf is the tokenizer for some tools, and whether its chat template tells the policy about them.
type toldOf struct {
	tok        *tokenizer.Tokenizer
	inTemplate bool
}

// NewSpeaker is the speaker of a policy's tokenizer. Calls of tools have the form of its chat template.
func NewSpeaker(tok *tokenizer.Tokenizer) *Speaker {
	return &Speaker{tok: tok, form: calls.For(tok.ChatTemplate()), told: map[string]toldOf{}}
}

// Answer is what a sample says to a call: its text, and calls of tools if the call has tools and lets the policy choose.
// If one of them cannot be read, or has a tool that there is not, the whole reply is text: the agent decides.
func (sp *Speaker) Answer(r completions.Request, prompt int, g episode.GenerateRow) completions.Completion {
	ids, finish := g.SampledIDs, completions.FinishStop
	if g.Truncated {
		finish = completions.FinishLength
	}
	if n := len(ids); n > 0 && slices.Contains(sp.tok.EndOfTurn(), ids[n-1]) {
		ids = ids[:n-1]
	}
	text := sp.tok.Decode(ids)
	for _, stop := range r.Stop {
		if at := strings.Index(text, stop); at >= 0 {
			text = text[:at]
		}
	}
	out := completions.Completion{
		Text: text, Calls: []completions.ToolCall{}, Finish: finish, PromptTokens: prompt, CompletionTokens: len(g.SampledIDs),
	}
	special := sp.tok.EndOfTurn()
	for i, id := range g.SampledIDs {
		t := completions.Token{Logprob: float64(g.RolloutLogProbs[i])}
		if shown := sp.tok.Bytes(id); slices.Contains(special, id) {
			t.Text = shown
		} else {
			t.Bytes = []byte(shown)
		}
		out.Tokens = append(out.Tokens, t)
	}
	if len(r.Tools) == 0 || r.ToolChoice != "auto" {
		return out
	}
	found, rest := sp.form.Read(text, r.Tools)
	var called []completions.ToolCall
	for _, c := range found {
		known := slices.ContainsFunc(r.Tools, func(t chat.Tool) bool { return t.Name == c.Name })
		if c.Wrong != "" || !known || len(called) == completions.MaxCalls {
			return out
		}
		called = append(called, completions.ToolCall{Name: c.Name, Arguments: string(c.Arguments)})
	}
	if len(called) > 0 {
		if out.Text, out.Calls = strings.TrimSpace(rest), called; !g.Truncated {
			out.Finish = completions.FinishToolCalls
		}
	}
	return out
}

// Prompt gives the whole context of a call, and the address of the call that it continues; "" if it begins anew. It
// continues one whose history and answer it begins with, if only answers of tools and a user's message follow: then its
// ids are those that were sampled, and what is new is encoded. The refusal says what of the call the policy's chat
// template cannot write.
func (sp *Speaker) Prompt(d Dialogue, r completions.Request) (ids []int32, continues string, refusal *completions.Refusal) {
	told, err := sp.tools(r)
	if err != nil {
		return nil, "", unwritable("tools", err)
	}
	if parent := d.parent(r); parent != nil {
		tail := envs.JoinUser(sp.messages(r.Messages[len(parent.Asked.Messages)+1:]))
		closing, err := envs.ClosingIDs(told.tok, parent.Sample.SampledIDs)
		if err == nil {
			var more []int32
			if more, err = told.tok.ContinuationOf(tail); err == nil {
				return slices.Concat(parent.PromptIDs, parent.Sample.SampledIDs, closing, more), parent.Address, nil
			}
		}
	}
	messages := sp.messages(r.Messages)
	if len(r.Tools) > 0 && !told.inTemplate {
		about := sp.form.Describe(r.Tools)
		if messages[0].Role == "system" {
			messages[0].Content += "\n\n" + about
		} else {
			messages = slices.Insert(messages, 0, chat.Message{Role: "system", Content: about})
		}
	}
	if ids, err = told.tok.EncodeChat(envs.JoinUser(messages), true); err != nil {
		return nil, "", unwritable("messages", err)
	}
	return ids, "", nil
}

func unwritable(field string, err error) *completions.Refusal {
	return &completions.Refusal{Status: 400, Code: completions.CodeUnsupported, Param: field, Message: fmt.Sprintf("the policy's chat template: %v", err)}
}

// tools is the tokenizer for a call's tools.
func (sp *Speaker) tools(r completions.Request) (toldOf, error) {
	if len(r.Tools) == 0 {
		return toldOf{tok: sp.tok}, nil
	}
	key, err := json.Marshal(r.Tools)
	if err != nil {
		return toldOf{}, err
	}
	t, ok := sp.told[string(key)]
	if !ok {
		if t.tok, err = sp.tok.WithTools(r.Tools); err != nil {
			return t, err
		}
		t.inTemplate = t.tok.TakesTools() && sp.form.Speaks(sp.tok.ChatTemplate())
		sp.told[string(key)] = t
	}
	return t, nil
}

// messages are a history as the chat template gets it: calls in the policy's form.
func (sp *Speaker) messages(history []completions.Message) []chat.Message {
	var out []chat.Message
	for _, m := range history {
		switch {
		case m.Role == "tool":
			out = append(out, sp.form.Result(m.Content))
			continue
		case len(m.Calls) > 0:
			var called []calls.Call
			for _, c := range m.Calls {
				arguments, err := calls.Canonical([]byte(c.Arguments))
				if err != nil {
					arguments = json.RawMessage(`{}`) // not of the policy, whose calls can be read
				}
				called = append(called, calls.Call{Name: c.Name, Arguments: arguments})
			}
			m.Content = strings.TrimPrefix(m.Content+"\n"+sp.form.Write(called), "\n")
		}
		out = append(out, chat.Message{Role: m.Role, Content: m.Content})
	}
	return out
}
