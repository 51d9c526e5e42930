package calls

import (
	"encoding/json"

	"github.com/reprise-rl/reprise/model/tokenizer/chat"
)

// Example gives arguments that show how a tool is called: its required fields, with "…" in the place of texts and of
// whatever its schema does not say plainly.
func Example(tool chat.Tool) json.RawMessage {
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
	}
	_ = json.Unmarshal(tool.Parameters, &schema) // what cannot be read shows no fields
	arguments := map[string]any{}
	for _, name := range schema.Required {
		arguments[name] = exampleOf(schema.Properties[name])
	}
	canonical, err := Canonical(encode(arguments))
	if err != nil { // an enum's value that is deeper than arguments may be
		return json.RawMessage("{}")
	}
	return canonical
}

func exampleOf(property json.RawMessage) any {
	var p struct {
		Type any   `json:"type"`
		Enum []any `json:"enum"`
	}
	if json.Unmarshal(property, &p) != nil {
		return "…"
	}
	if len(p.Enum) > 0 {
		return p.Enum[0]
	}
	switch p.Type {
	case "integer", "number":
		return 1
	case "boolean":
		return true
	case "array":
		return []any{}
	case "object":
		return map[string]any{}
	}
	return "…"
}
