package envs

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/reprise-rl/reprise/envs/calls"
	"github.com/reprise-rl/reprise/model/tokenizer/chat"
)

// Toolset is what a policy may call while it plays, and how it writes calls. A call changes nothing in an episode, and
// counts as no action of the environment's: it is answered, and the policy takes another turn.
type Toolset struct {
	// Form is how calls are written.
	Form calls.Form
	// PerTurn is the most calls of a turn, at least 1.
	PerTurn int
	// ResultTokens is the most tokens of an answer to a call; the rest is cut off, and the answer says so.
	ResultTokens int
	// InTemplate says that the chat template tells the policy about the tools; otherwise the first message does.
	InTemplate bool

	tools   []Tool
	told    []chat.Tool
	checker *calls.Checker
}

// NewToolset is a set of tools. The error is about two tools of one name, and about a tool whose parameters are no
// schema.
func NewToolset(form calls.Form, tools []Tool, perTurn, resultTokens int) (*Toolset, error) {
	t := &Toolset{Form: form, PerTurn: perTurn, ResultTokens: resultTokens}
	for _, tool := range tools {
		if several, ok := tool.(SeveralTools); ok {
			t.tools = append(t.tools, several.Tools()...)
		} else {
			t.tools = append(t.tools, tool)
		}
	}
	for _, tool := range t.tools {
		t.told = append(t.told, tool.Describe())
	}
	var err error
	if t.checker, err = calls.NewChecker(t.told); err != nil {
		return nil, fmt.Errorf("tools: %w", err)
	}
	return t, nil
}

// Told are the tools as the policy is told about them.
func (t *Toolset) Told() []chat.Tool { return t.told }

// In is the toolset with a form, for a chat template that tells about tools or not.
func (t *Toolset) In(form calls.Form, inTemplate bool) *Toolset {
	other := *t
	other.Form, other.InTemplate = form, inTemplate
	return &other
}

// read finds the calls of a reply, at most PerTurn; those that cannot be answered are Wrong. One more stands for all
// that are too many. rest is the reply without calls.
func (t *Toolset) read(reply string) (found []calls.Call, rest string) {
	found, rest = t.Form.Read(reply, t.told)
	for i, c := range found {
		if i == t.PerTurn {
			found = append(found[:i:i], calls.Call{Wrong: t.tooMany(len(found) - i)})
			break
		}
		found[i] = t.checker.Check(c)
	}
	return found, rest
}

// tooMany says that so many calls of a turn are not answered.
func (t *Toolset) tooMany(n int) string {
	return fmt.Sprintf("only %d calls a turn are answered; %d were not", t.PerTurn, n)
}

// brief names the tools in few words, with a call of each as the form has it.
func (t *Toolset) brief() string {
	var lines []string
	for _, tool := range t.told {
		lines = append(lines, t.Form.Write([]calls.Call{{Name: tool.Name, Arguments: calls.Example(tool)}}))
	}
	return "Call a tool: " + strings.Join(lines, " or ")
}

// Answer answers a call, in at most ResultTokens tokens. An outside tool is not asked: its answer is imagined.
func (t *Toolset) Answer(tok Tokenizer, c calls.Call) (ToolAnswer, error) {
	a := t.answer(c)
	text, err := t.Cut(tok, a.Text)
	a.Text = text
	return a, err
}

func (t *Toolset) answer(c calls.Call) ToolAnswer {
	if c.Wrong != "" {
		return ToolAnswer{Text: "error: " + c.Wrong, Failed: true}
	}
	tool := t.tool(c)
	if tool == nil { // calls are checked when they are read
		return ToolAnswer{Text: "error: there is no tool " + c.Name, Failed: true}
	}
	if _, outside := tool.(OutsideTool); outside {
		return ToolAnswer{Text: imagined}
	}
	return tool.Call(c.Arguments)
}

// imagined stands for the answer of an outside tool where none is asked: in transcripts, which teach the form.
const imagined = "…"

// tool is the tool that a call names; nil if there is none.
func (t *Toolset) tool(c calls.Call) Tool {
	i := slices.IndexFunc(t.told, func(tool chat.Tool) bool { return tool.Name == c.Name })
	if i < 0 {
		return nil
	}
	return t.tools[i]
}

// Outside is the question that a call puts to an outside tool; false if it is wrong, or if the tool is not outside.
func (t *Toolset) Outside(c calls.Call) (ToolQuestion, bool) {
	tool, ok := t.tool(c).(OutsideTool)
	if !ok || c.Wrong != "" {
		return ToolQuestion{}, false
	}
	return tool.Question(c.Arguments), true
}

// AnyOutside reports whether one of the tools is outside.
func (t *Toolset) AnyOutside() bool {
	return slices.ContainsFunc(t.tools, func(tool Tool) bool { _, ok := tool.(OutsideTool); return ok })
}

// Suggestions are calls of the tools that suggest arguments to who has read a text, in the order of the tools.
func (t *Toolset) Suggestions(read string) []calls.Call {
	var out []calls.Call
	for i, tool := range t.tools {
		s, ok := tool.(Suggesting)
		if !ok {
			continue
		}
		for _, arguments := range s.Suggest(read) {
			canonical, err := calls.Canonical(arguments)
			if err != nil {
				panic(fmt.Sprintf("envs: tool %s suggests %s: %v", t.told[i].Name, arguments, err))
			}
			out = append(out, calls.Call{Name: t.told[i].Name, Arguments: json.RawMessage(canonical)})
		}
	}
	return out
}

// Cut is an answer of at most ResultTokens tokens in a message. One that is longer loses its end, and says so.
func (t *Toolset) Cut(tok Tokenizer, text string) (string, error) {
	return cutText(tok, text, t.ResultTokens, func(text string) []chat.Message { return []chat.Message{t.Form.Result(text)} })
}

// StateAfterCalls names the state of an episode after calls: what the policy knows differs with the answers.
func StateAfterCalls(key string, answers []string) string {
	sum := sha256.New()
	for _, text := range append([]string{key}, answers...) {
		fmt.Fprintf(sum, "%d:%s", len(text), text)
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}
