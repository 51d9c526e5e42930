package calls

import (
	"encoding/json"
	"fmt"

	"github.com/reprise-rl/reprise/infra/strict"
	"github.com/reprise-rl/reprise/model/tokenizer/chat"
)

// TextSchema is the JSON Schema of arguments that are one text under a name, as many tools have them.
func TextSchema(name, description string) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"type":"object","properties":{%s:{"type":"string","description":%s}},"required":[%[1]s]}`,
		encode(name), encode(description)))
}

// TextArgument is the name of a tool's one required argument, if that is a text.
func TextArgument(t chat.Tool) (name string, ok bool) {
	var schema struct {
		Properties map[string]struct {
			Type json.RawMessage `json:"type"`
		} `json:"properties"`
		Required []string `json:"required"`
	}
	if json.Unmarshal(t.Parameters, &schema) != nil || len(schema.Required) != 1 {
		return "", false
	}
	name = schema.Required[0]
	return name, string(schema.Properties[name].Type) == `"string"`
}

// OfText are the arguments {name: text}.
func OfText(name, text string) json.RawMessage {
	object, err := Canonical(encode(map[string]string{name: text}))
	if err != nil {
		panic(fmt.Sprintf("calls: arguments of one text: %v", err)) // one key and a text
	}
	return object
}

// Text is the text that arguments have under a name; not ok if they have none, or two.
func Text(arguments json.RawMessage, name string) (text string, ok bool) {
	n, err := strict.Parse(arguments, strict.Limits{})
	if err != nil {
		return "", false
	}
	for _, m := range n.Written() {
		switch {
		case m.Key != name:
		case m.Again:
			return "", false
		default:
			text, ok = m.Value.Text()
		}
	}
	return text, ok
}
