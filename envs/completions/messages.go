package completions

import (
	"strings"

	"github.com/reprise-rl/reprise/infra/strict"
)

// Message is a message of a call's history.
type Message struct {
	// Role is "system" (as which "developer" counts), "user", "assistant" or "tool".
	Role string `json:"role"`
	// Content is the text. Parts of a text stand in it one after the other, with nothing between them.
	Content string `json:"content"`
	// Calls are what an assistant's message called.
	Calls []ToolCall `json:"calls"`
	// CallID is the id of the call that a tool's message answers: one of the last message before that is no tool's.
	CallID string `json:"call_id,omitempty"`
}

// ToolCall is a call of a tool.
type ToolCall struct {
	// ID is by what an answer names the call. It is empty in a Completion, where it follows from the call's address.
	ID   string `json:"id,omitempty"`
	Name string `json:"name"`
	// Arguments are as they were written: an object in JSON, if the policy wrote one.
	Arguments string `json:"arguments"`
}

// message is one that is being read.
type message struct {
	Message
	at         string
	hasContent bool
}

// readMessages reads the history.
func readMessages(n strict.Node, at string) ([]Message, *Refusal) {
	if refusal := ofKind(n, strict.Array, at, "an array"); refusal != nil {
		return nil, refusal
	}
	items := n.Items()
	if len(items) < 1 || len(items) > MaxMessages {
		return nil, refuse(CodeValue, at, "%s has %d messages, want 1 to %d", at, len(items), MaxMessages)
	}
	messages := make([]Message, 0, len(items))
	open := map[string]bool{} // the calls that a message of a tool may answer here
	for i, item := range items {
		path := strict.Index(at, i)
		m, refusal := readMessage(item, path)
		if refusal != nil {
			return nil, refusal
		}
		if m.Role == "tool" {
			if !open[m.CallID] {
				path := strict.Join(path, "tool_call_id")
				return nil, refuse(CodeValue, path, "%s is %s, want the id of a call of the assistant's message before that has no answer yet",
					path, strict.Quote(m.CallID))
			}
			delete(open, m.CallID)
		} else {
			clear(open)
			for _, call := range m.Calls {
				open[call.ID] = true
			}
		}
		messages = append(messages, m)
	}
	return messages, nil
}

// readMessage reads one message by the fields that its role has.
func readMessage(n strict.Node, at string) (Message, *Refusal) {
	if refusal := ofKind(n, strict.Object, at, "an object"); refusal != nil {
		return Message{}, refusal
	}
	m := message{Message: Message{Calls: []ToolCall{}}, at: at}
	if refusal := m.readRole(n); refusal != nil {
		return Message{}, refusal
	}
	for _, member := range n.Members() {
		if refusal := m.read(member.Key, member.Value); refusal != nil {
			return Message{}, refusal
		}
	}
	if !m.hasContent && len(m.Calls) == 0 {
		path := strict.Join(at, "content")
		return Message{}, refuse(CodeMissing, path, "%s is missing", path)
	}
	if path := strict.Join(at, "tool_call_id"); m.Role == "tool" && m.CallID == "" {
		return Message{}, refuse(CodeMissing, path, "%s is missing", path)
	}
	return m.Message, nil
}

func (m *message) readRole(n strict.Node) *Refusal {
	path := strict.Join(m.at, "role")
	for _, member := range n.Members() {
		if member.Key != "role" {
			continue
		}
		role, refusal := text(member.Value, path, 0)
		if refusal != nil {
			return refusal
		}
		switch role {
		case "developer":
			m.Role = "system"
		case "system", "user", "assistant", "tool":
			m.Role = role
		default:
			return refuse(CodeValue, path, "%s is %s, want system, developer, user, assistant or tool", path, strict.Quote(role))
		}
		return nil
	}
	return refuse(CodeMissing, path, "%s is missing", path)
}

// read reads a field. Clients send an assistant's message back as they got it, with fields that are empty.
func (m *message) read(key string, n strict.Node) (refusal *Refusal) {
	path := strict.Join(m.at, key)
	null := n.Kind() == strict.Null
	switch {
	case key == "role":
		return nil
	case key == "content":
		if null {
			return nil
		}
		m.hasContent = true
		m.Content, refusal = readContent(n, path)
		return refusal
	case key == "name":
		if name, ok := n.Text(); null || ok && name == "" {
			return nil
		}
		return refuse(CodeUnsupported, path, "%s is %s: names of who speaks are not shown to the policy; leave it out", path, n.Found())
	case m.Role == "tool" && key == "tool_call_id":
		m.CallID, refusal = text(n, path, MaxID)
		return refusal
	case m.Role == "assistant" && key == "tool_calls":
		if null {
			return nil
		}
		m.Calls, refusal = readCalls(n, path)
		return refusal
	case m.Role == "assistant" && (key == "refusal" || key == "audio" || key == "function_call" || key == "annotations"):
		if null || key == "annotations" && n.Kind() == strict.Array && len(n.Items()) == 0 {
			return nil
		}
		return refuse(CodeUnsupported, path, "%s is %s, want null", path, n.Found())
	}
	return refuse(CodeUnknown, path, "%s is not honoured in a message of role %s: leave it out", path, m.Role)
}

// readContent reads a text, or a list of parts that are texts.
func readContent(n strict.Node, at string) (string, *Refusal) {
	if n.Kind() == strict.String {
		return text(n, at, 0)
	}
	if n.Kind() != strict.Array {
		return "", wrongType(n, at, "a text or an array of parts")
	}
	if len(n.Items()) == 0 {
		return "", refuse(CodeValue, at, "%s is an empty array", at)
	}
	parts := make([]string, len(n.Items()))
	for i, item := range n.Items() {
		path := strict.Index(at, i)
		object, refusal := readObject(item, path, "type", "text")
		if refusal != nil {
			return "", refusal
		}
		if refusal := object.constant("type", "text"); refusal != nil {
			return "", refusal
		}
		if parts[i], refusal = object.text("text", 0); refusal != nil {
			return "", refusal
		}
	}
	return strings.Join(parts, ""), nil
}

// readCalls reads the calls of an assistant's message.
func readCalls(n strict.Node, at string) ([]ToolCall, *Refusal) {
	if refusal := ofKind(n, strict.Array, at, "an array"); refusal != nil {
		return nil, refusal
	}
	if len(n.Items()) > MaxCalls {
		return nil, refuse(CodeValue, at, "%s has %d calls, want at most %d", at, len(n.Items()), MaxCalls)
	}
	calls, used := make([]ToolCall, len(n.Items())), map[string]bool{}
	for i, item := range n.Items() {
		call, refusal := readCall(item, strict.Index(at, i), i)
		if refusal != nil {
			return nil, refusal
		}
		if used[call.ID] {
			path := strict.Join(strict.Index(at, i), "id")
			return nil, refuse(CodeValue, path, "%s is that of another call of the message", path)
		}
		used[call.ID] = true
		calls[i] = call
	}
	return calls, nil
}

// readCall reads the call at an index, which clients that have put it together from a stream may send along.
func readCall(n strict.Node, at string, index int) (ToolCall, *Refusal) {
	object, refusal := readObject(n, at, "id", "type", "function", "index")
	if refusal != nil {
		return ToolCall{}, refusal
	}
	if given, ok := object.fields["index"]; ok {
		if i, whole := given.Integer(); !whole || i != int64(index) {
			path := strict.Join(at, "index")
			return ToolCall{}, refuse(CodeValue, path, "%s is %s, want %d, its place", path, given.Found(), index)
		}
	}
	if refusal := object.constant("type", "function"); refusal != nil {
		return ToolCall{}, refusal
	}
	var call ToolCall
	if call.ID, refusal = object.text("id", MaxID); refusal != nil {
		return ToolCall{}, refusal
	}
	if call.ID == "" {
		path := strict.Join(at, "id")
		return ToolCall{}, refuse(CodeValue, path, "%s is empty", path)
	}
	function, refusal := object.object("function", "name", "arguments")
	if refusal != nil {
		return ToolCall{}, refusal
	}
	if call.Name, refusal = function.text("name", 0); refusal != nil {
		return ToolCall{}, refusal
	}
	call.Arguments, refusal = function.text("arguments", 0)
	return call, refusal
}
