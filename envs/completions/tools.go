package completions

import (
	"bytes"
	"encoding/json"

	"github.com/reprise-rl/reprise/infra/strict"
	"github.com/reprise-rl/reprise/model/tokenizer/chat"
)

// noParameters is the schema of a tool that names none.
const noParameters = `{"type":"object","properties":{}}`

// readTools reads the tools that the policy is told about.
func readTools(n strict.Node, at string) ([]chat.Tool, *Refusal) {
	if refusal := ofKind(n, strict.Array, at, "an array"); refusal != nil {
		return nil, refusal
	}
	if len(n.Items()) > MaxTools {
		return nil, refuse(CodeValue, at, "%s has %d tools, want at most %d", at, len(n.Items()), MaxTools)
	}
	tools, used := make([]chat.Tool, len(n.Items())), map[string]bool{}
	for i, item := range n.Items() {
		path := strict.Index(at, i)
		tool, refusal := readTool(item, path)
		if refusal != nil {
			return nil, refusal
		}
		if used[tool.Name] {
			path := strict.Join(strict.Join(path, "function"), "name")
			return nil, refuse(CodeValue, path, "%s is that of another tool", path)
		}
		used[tool.Name] = true
		tools[i] = tool
	}
	return tools, nil
}

func readTool(n strict.Node, at string) (chat.Tool, *Refusal) {
	o, refusal := readObject(n, at, "type", "function")
	if refusal != nil {
		return chat.Tool{}, refusal
	}
	if refusal := o.constant("type", "function"); refusal != nil {
		return chat.Tool{}, refusal
	}
	function, refusal := o.object("function", "name", "description", "parameters", "strict")
	if refusal != nil {
		return chat.Tool{}, refusal
	}
	tool := chat.Tool{Parameters: json.RawMessage(noParameters)}
	if tool.Name, refusal = function.text("name", 0); refusal != nil {
		return chat.Tool{}, refusal
	}
	if !toolName(tool.Name) {
		path := strict.Join(function.at, "name")
		return chat.Tool{}, refuse(CodeValue, path, "%s is %s, want 1 to %d letters, digits, dashes and underscores",
			path, strict.Quote(tool.Name), MaxName)
	}
	if _, ok := function.fields["description"]; ok {
		if tool.Description, refusal = function.text("description", 0); refusal != nil {
			return chat.Tool{}, refusal
		}
	}
	if given, ok := function.fields["strict"]; ok {
		path := strict.Join(function.at, "strict")
		if refusal := mustBe(false, given, path, "arguments are not forced into the schema"); refusal != nil {
			return chat.Tool{}, refusal
		}
	}
	if given, ok := function.fields["parameters"]; ok {
		tool.Parameters, refusal = readParameters(given, strict.Join(function.at, "parameters"))
	}
	return tool, refusal
}

// readParameters reads a JSON Schema of type object. Nothing else of it is checked.
func readParameters(n strict.Node, at string) (json.RawMessage, *Refusal) {
	if refusal := ofKind(n, strict.Object, at, "an object"); refusal != nil {
		return nil, refusal
	}
	for _, m := range n.Members() {
		if kind, ok := m.Value.Text(); m.Key == "type" && ok && kind == "object" {
			var b bytes.Buffer
			compact(&b, n)
			return b.Bytes(), nil
		}
	}
	path := strict.Join(at, "type")
	return nil, refuse(CodeValue, path, `%s is not "object": arguments are an object`, path)
}

// toolName reports whether a tool may have the name.
func toolName(name string) bool {
	for i := range len(name) {
		c := name[i]
		if c != '_' && c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return false
		}
	}
	return name != "" && len(name) <= MaxName
}

// toolChoice reads "none" or "auto"; to demand a call would be to sample from another distribution.
func (r *reading) toolChoice(n strict.Node, at string) *Refusal {
	choice, ok := n.Text()
	if !ok || choice != "none" && choice != "auto" {
		return refuse(CodeUnsupported, at, `%s is %s, want "none" or "auto"`, at, n.Found())
	}
	r.ToolChoice = choice
	return nil
}

// compact writes a value without blanks and with no more escapes than JSON needs. Keys keep their order and numbers
// their digits, because a chat template shows them.
func compact(b *bytes.Buffer, n strict.Node) {
	switch n.Kind() {
	case strict.Object:
		b.WriteByte('{')
		for i, m := range n.Members() {
			if i > 0 {
				b.WriteByte(',')
			}
			b.Write(encode(m.Key))
			b.WriteByte(':')
			compact(b, m.Value)
		}
		b.WriteByte('}')
	case strict.Array:
		b.WriteByte('[')
		for i, item := range n.Items() {
			if i > 0 {
				b.WriteByte(',')
			}
			compact(b, item)
		}
		b.WriteByte(']')
	case strict.String:
		s, _ := n.Text()
		b.Write(encode(s))
	default:
		b.WriteString(n.Raw())
	}
}
